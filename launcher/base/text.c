/* Foreign text in each output format: see text.h. */
#include "launcher/base/text.h"

#include <ctype.h>
#include <string.h>

#include "include/internal/base.h"

/* An ASCII character that means something in a form. `text` is where the text begins. */
typedef void put_special_fn(FILE *out, const char *text, const char *at);

/* "::error::" at the beginning of a line is a command to that runner, too; '#' begins a comment. */
static void put_folded(FILE *out, const char *text, const char *at)
{
	if (*at == ';')
		putc(':', out); /* as all writers of folded stacks have it */
	else if (at == text && (*at == '#' || at[1] == ':'))
		fprintf(out, "\\x%02x", *at);
	else
		putc(*at, out);
}

static void put_callgrind(FILE *out, const char *text, const char *at)
{
	if (at == text)
		fprintf(out, "\\x%02x", *at);
	else
		putc(*at, out);
}

static void put_backslashed(FILE *out, const char *text, const char *at)
{
	(void)text;
	putc('\\', out);
	putc(*at, out);
}

static void put_entity(FILE *out, const char *text, const char *at)
{
	(void)text;
	fprintf(out, "&#%d;", *at);
}

static bool is_alphanumeric(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/*
 * A character reference prevents Markdown's own mark-up, but GitHub searches the rendered text for mentions and issues:
 * an element around each '@' and '#' prevents that. Punctuation between words and blanks stays unchanged.
 */
static void put_markdown(FILE *out, const char *text, const char *at)
{
	if (is_alphanumeric(*at) || (at > text && strchr("(),;=/+-%'", *at)) ||
	    (at > text && *at == '.' && strncasecmp(at - (at - text < 3 ? at - text : 3), "www", 3)) ||
	    (at > text && *at == ':' && at[1] == ' '))
		putc(*at, out);
	else if (strchr("|\\`*_[]", *at))
		put_backslashed(out, text, at);
	else if (*at == '@' || *at == '#')
		fprintf(out, "<span>&#%d;</span>", *at);
	else
		put_entity(out, text, at);
}

static void put_percent(FILE *out, const char *text, const char *at)
{
	(void)text;
	fprintf(out, "%%%02X", *at);
}

static const struct {
	const char *special;
	put_special_fn *put;
} forms[CSINK_NR_TEXT_FORMS] = {
	[CSINK_TEXT_LINE] = {"", NULL},
	[CSINK_TEXT_FOLDED] = {";:#", put_folded},
	[CSINK_TEXT_CALLGRIND] = {"(", put_callgrind},
	[CSINK_TEXT_TAP] = {"#\\", put_backslashed},
	[CSINK_TEXT_YAML] = {"\"\\", put_backslashed},
	[CSINK_TEXT_XML] = {"<>&\"'", put_entity},
	[CSINK_TEXT_MARKDOWN] = {"!\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~", put_markdown},
	[CSINK_TEXT_GITHUB] = {"%", put_percent},
	[CSINK_TEXT_GITHUB_PROPERTY] = {"%:,", put_percent},
};

void csink_text_put(FILE *out, enum csink_text_form form, const char *text)
{
	struct csink_text_char c;
	char escaped[CSINK_TEXT_ESCAPED], byte[2] = "";

	for (const char *at = text; *at; at += c.bytes) {
		size_t plain = csink_text_plain(at, forms[form].special);

		fwrite(at, 1, plain, out);
		at += plain;
		if (!*at)
			break;
		c = csink_text_next(text, at);
		if (c.is_shown && strchr(forms[form].special, *at)) {
			forms[form].put(out, text, at);
			continue;
		}
		for (uint32_t i = 0, nr = csink_text_escape(escaped, at, &c); i < nr; i++) {
			*byte = escaped[i];
			if (!c.is_shown && *byte == '\\' && strchr(forms[form].special, '\\'))
				forms[form].put(out, byte, byte);
			else
				putc(*byte, out);
		}
	}
}

/* Characters that make a cell a formula, also in their full-width forms. */
static bool begins_formula(const char *text)
{
	static const char *const wide[] = {"\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};

	if (*text && strchr("=+-@", *text))
		return true;
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(wide); i++) {
		if (!strncmp(text, wide[i], strlen(wide[i])))
			return true;
	}
	return false;
}

void csink_text_put_csv(FILE *out, const char *text)
{
	/* Some programs divide cells at these, whatever the file's name says; blanks around a cell are dropped by
	 * others. */
	bool is_quoted = strpbrk(text, ",;\t\"\r\n|") || *text == ' ' || *text == '\'';
	const char *seen = text + strspn(text, " \t\r\n");
	struct csink_text_char c;
	char escaped[CSINK_TEXT_ESCAPED];

	if (is_quoted)
		putc('"', out);
	if (begins_formula(seen))
		putc('\'', out);
	for (const char *at = text; *at; at += c.bytes) {
		c = csink_text_next(text, at);
		if (*at == '"')
			putc('"', out);
		fwrite(escaped, 1, csink_text_escape(escaped, at, &c), out);
	}
	if (is_quoted)
		putc('"', out);
}

size_t csink_text_utf8(char *buf, const char *text, size_t len)
{
	struct csink_text_char c;
	char escaped[CSINK_TEXT_ESCAPED];
	size_t used = 0, bytes;

	for (size_t at = 0; at < len; at += c.bytes) {
		c = csink_text_next(text, text + at);
		c.is_shown = c.is_valid; /* this is no terminal */
		bytes = csink_text_escape(escaped, text + at, &c);
		if (buf)
			memcpy(buf + used, escaped, bytes);
		used += bytes;
	}
	return used;
}

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

size_t csink_text_undo_percent(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (*at == '%' && hex(at[1]) >= 0 && hex(at[2]) >= 0) {
			*to++ = (char)(hex(at[1]) << 4 | hex(at[2]));
			at += 2;
		} else {
			*to++ = *at;
		}
	}
	*to = 0;
	return (size_t)(to - text);
}
