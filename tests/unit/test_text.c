/* The printers for foreign text: what is shown, what is escaped, and the printf that does it (launcher/base/text.h).
 */
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/text.h"
#include "tests/unit/tap.h"

static const char *put(enum csink_text_form form, const char *text)
{
	static char *buf;
	size_t size;
	FILE *out;

	free(buf);
	out = open_memstream(&buf, &size);
	if (form < CSINK_NR_TEXT_FORMS)
		csink_text_put(out, form, text);
	else
		csink_text_put_csv(out, text);
	fclose(out);
	return buf;
}

static void test_characters(void)
{
	static const struct {
		const char *text;
		bool is_valid, is_shown;
		uint32_t bytes;
	} cases[] = {
		{"a", true, true, 1},
		{"\xc3\xa9", true, true, 2},
		{"\xef\xbf\xbd", true, true, 3},
		{"\xf0\x9f\x98\x80", true, true, 4},
		{"\xcc\x81", true, true, 2},
		{"\x1b", true, false, 1},
		{"\x7f", true, false, 1},
		{"\xc2\x9b", true, false, 2},
		{"\xc2\xa0", true, true, 2},
		{"\xe2\x80\xae", true, false, 3},
		{"\xe2\x81\xa6", true, false, 3},
		{"\xe2\x80\xa8", true, false, 3},
		{"\xe2\x80\x8d", true, false, 3},
		{"\xef\xbb\xbf", true, false, 3},
		{"\xef\xbf\xbf", true, false, 3},
		{"\xf3\xa0\x81\x81", true, false, 4},
		{"\xf4\x8f\xbf\xbf", true, false, 4},
		{"\xc0\x80", false, false, 1},
		{"\xc1\xbf", false, false, 1},
		{"\xe0\x9f\xbf", false, false, 1},
		{"\xed\xa0\x80", false, false, 1},
		{"\xed\x9f\xbf", true, true, 3},
		{"\xf0\x8f\xbf\xbf", false, false, 1},
		{"\xf4\x90\x80\x80", false, false, 1},
		{"\xf8\x88\x80\x80\x80", false, false, 1},
		{"\xe2\x80", false, false, 1},
		{"\xff", false, false, 1},
	};
	struct csink_text_char c;
	char once[64];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(cases); i++) {
		c = csink_text_next(cases[i].text, cases[i].text);
		ok(c.is_valid == cases[i].is_valid && c.is_shown == cases[i].is_shown && c.bytes == cases[i].bytes,
		   "character %zu: %s", i, put(CSINK_TEXT_LINE, cases[i].text));
	}
	is_str(put(CSINK_TEXT_LINE, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb"),
	       "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", "a joiner between pictures is shown");
	is_str(put(CSINK_TEXT_LINE, "\xf0\x9f\x91\xa9\xe2\x80\x8d"), "\xf0\x9f\x91\xa9\\xe2\\x80\\x8d",
	       "a joiner at the end of a text is escaped");
	snprintf(once, sizeof(once), "%s", put(CSINK_TEXT_LINE, "a\x1b\xff\\"));
	is_str(once, "a\\x1b\\xff\\", "unprintable bytes become \\xNN, a backslash stays");
	is_str(put(CSINK_TEXT_LINE, once), once, "escaping an escaped text changes nothing");
}

static void test_forms(void)
{
	is_str(put(CSINK_TEXT_LINE, "#[inline] ##[error]"), "#[inline] ##\\x5berror]",
	       "a line: a CI runner's command is escaped");
	is_str(put(CSINK_TEXT_FOLDED, "a;b\nc"), "a:b\\x0ac", "folded: a separator in a frame is replaced");
	is_str(put(CSINK_TEXT_FOLDED, "::error::x"), "\\x3a:error::x", "folded: a CI runner's command is escaped");
	is_str(put(CSINK_TEXT_CALLGRIND, "(1) f(2)"), "\\x281) f(2)", "callgrind: a name like a number is escaped");
	is_str(put(CSINK_TEXT_TAP, "a # SKIP \\ \x1b"), "a \\# SKIP \\\\ \\\\x1b", "TAP: a directive is escaped");
	is_str(put(CSINK_TEXT_YAML, "\"\\\xff"), "\\\"\\\\\\\\xff", "YAML: the reader gets \\xNN for a control byte");
	is_str(put(CSINK_TEXT_XML, "<a b=\"'\">&\xef\xbf\xbf"), "&#60;a b=&#34;&#39;&#34;&#62;&#38;\\xef\\xbf\\xbf",
	       "XML: characters of markup are escaped");
	is_str(put(CSINK_TEXT_MARKDOWN, "a@b #1 operator+(A&)"),
	       "a<span>&#64;</span>b <span>&#35;</span>1 operator+(A&#38;)",
	       "Markdown: characters of markup are escaped");
	is_str(put(CSINK_TEXT_MARKDOWN, "- 1. x"), "&#45; 1. x", "Markdown: a list item is escaped");
	is_str(put(CSINK_TEXT_MARKDOWN, "http://www.a.b"), "http&#58;//www&#46;a.b", "Markdown: a link is escaped");
	is_str(put(CSINK_TEXT_GITHUB, "50%\n"), "50%25\\x0a", "a workflow command's message is escaped");
	is_str(put(CSINK_TEXT_GITHUB_PROPERTY, "a:b,c%"), "a%3Ab%2Cc%25", "a workflow command's property is escaped");
	is_str(put(CSINK_NR_TEXT_FORMS, "operator+"), "operator+", "CSV: a plain name is unchanged");
	is_str(put(CSINK_NR_TEXT_FORMS, "=A1"), "'=A1", "CSV: a formula is escaped");
	is_str(put(CSINK_NR_TEXT_FORMS, " -1,2\""), "\"' -1,2\"\"\"", "CSV: a formula in a quoted cell is escaped");
	is_str(put(CSINK_NR_TEXT_FORMS, ""), "", "CSV: an empty text is unchanged");
}

__attribute__((format(printf, 3, 4))) static size_t format(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	size_t length;

	va_start(ap, fmt);
	length = csink_text_vformat(buf, size, fmt, ap);
	va_end(ap);
	return length;
}

/* Compares with libc's printf, for texts of ASCII. */
#define SAME(...)                                                                                                      \
	do {                                                                                                           \
		char want[256], got[256];                                                                              \
		size_t len = format(got, sizeof(got), __VA_ARGS__);                                                    \
		snprintf(want, sizeof(want), __VA_ARGS__);                                                             \
		is_str(got, want, "as printf: " #__VA_ARGS__);                                                         \
		if (len != strlen(want))                                                                               \
			ok(false, "the formatted length differs from printf's");                                       \
	} while (0)

static void test_printf(void)
{
	char unterminated[3] = {'a', 'b', 'c'}, buf[64];

	SAME("%d %i %u %x %#o %c %% %5d|%-5d|%05d|%+d", -1, 2, 3u, 0xabu, 8u, 'x', 4, 5, 6, 7);
	SAME("%ld %lld %lu %llu %zu %jd %td", -1L, -2LL, 3UL, 4ULL, (size_t)5, (intmax_t)-6, (ptrdiff_t)7);
	SAME("%hhd %hu %hhx", 300, 70000, 0x1ff);
	SAME("%f %.2f %+8.3f|%-8.1f|%g %.0e %5.1f %%", 1.5, 2.345, 3.0, 4.0, 5e20, 6.0, 7.0);
	SAME("%s|%5s|%-5s|%.2s|%*s|%.*s|%-*.*s|", "a", "b", "c", "defg", 4, "h", 3, "ijkl", 6, 2, "mnop");
	SAME("%*d|%.3d|%*.*f", -4, 5, 6, 9, 2, 7.0);
	SAME("%.3s", unterminated);
	SAME("\xe2\x94\x9c\033[K\r\n%s", "");
	format(buf, sizeof(buf), "%4s|%-4s|", "\xc3\xa9", "\xff");
	is_str(buf, "   \xc3\xa9|\\xff|", "a width counts the characters of the escaped text");
	format(buf, sizeof(buf), "%.2s|%.1s", "a\xc3\xa9", "\xff");
	is_str(buf, "a|\\xff", "a precision ends before half a character");
	format(buf, sizeof(buf), "%c%c", 27, 'x');
	is_str(buf, "\\x1bx", "a single character is escaped as foreign text");
	is_num(format(buf, 8, "%s", "abcdefgh"), 7, "text longer than the buffer is cut");
	is_str(buf, "abcd...", "cut text ends with dots");
	format(buf, 8, "%s", "abc\x1bz");
	is_str(buf, "abc...", "an escape that does not fit is left out");
	format(buf, 8, "%s", "abcdefg");
	is_str(buf, "abcd...", "a text longer than the buffer is cut");
	is_num(format(buf, 1, "%s", "a"), 0, "a buffer of one byte is empty");
	setlocale(LC_ALL, "C");
	format(buf, sizeof(buf), "%s", "\xc3\xa9");
	is_str(buf, "\xc3\xa9", "UTF-8 passes in the C locale");
}

int main(void)
{
	test_characters();
	test_forms();
	test_printf();
	return done();
}
