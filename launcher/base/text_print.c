/* printf for foreign text: see text.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/text.h"

/* Where it goes: a stream, or a buffer that may be too small. */
struct sink {
	FILE *out;
	enum csink_text_form form; /* of a stream; a buffer has lines */
	char *buf;
	size_t size, used; /* used: of a stream, what was written */
	bool is_full;
};

/* Add a character or an escape as a whole. If it and "..." do not fit into a buffer, the text ends there. */
static void put(struct sink *s, const char *piece, size_t len)
{
	static const char cut[] = "...";

	if (s->out) {
		s->used += fwrite(piece, 1, len, s->out);
		return;
	}
	if (s->is_full)
		return;
	if (s->used + len + sizeof(cut) <= s->size) {
		memcpy(s->buf + s->used, piece, len);
		s->used += len;
		return;
	}
	s->is_full = true;
	if (s->used + sizeof(cut) <= s->size) {
		memcpy(s->buf + s->used, cut, sizeof(cut) - 1);
		s->used += sizeof(cut) - 1;
	}
}

static void pad(struct sink *s, uint32_t nr)
{
	while (nr--)
		put(s, " ", 1);
}

/* One conversion of a format. */
struct conversion {
	char flags[8];
	int width, precision; /* precision: -1 none */
	char length;          /* as printf's, 'L' for "ll", 'H' for "hh"; 0 none */
	char letter;
};

/* Characters that `len` bytes of a text take when printed; they go to the sink, if there is one. */
static uint32_t put_text(struct sink *s, const char *text, size_t len)
{
	struct csink_text_char c;
	char escaped[CSINK_TEXT_ESCAPED];
	uint32_t nr, columns = 0;

	for (const char *at = text; at < text + len; at += c.bytes) {
		c = csink_text_next(text, at);
		nr = csink_text_escape(escaped, at, &c);
		columns += c.is_shown ? 1 : nr;
		if (s)
			put(s, escaped, nr);
	}
	return columns;
}

static void put_string(struct sink *s, const struct conversion *conv, const char *text)
{
	size_t len;
	uint32_t columns;
	CSINK_AUTO_FREE char *copy = NULL;

	if (!text)
		text = "(null)";
	len = conv->precision < 0 ? strlen(text) : strnlen(text, (size_t)conv->precision);
	if (conv->precision >= 0 && len == (size_t)conv->precision) {
		/* It may go on behind that, and not be terminated: look at this part alone, without half a character.
		 */
		size_t whole = len, back = 0;

		while (back < 3 && back < whole && ((unsigned char)text[whole - 1 - back] & 0xc0) == 0x80)
			back++;
		copy = strndup(text, len);
		if (!copy)
			return;
		text = copy;
		if (back < whole && (unsigned char)copy[whole - 1 - back] >= 0xc2 &&
		    (unsigned char)copy[whole - 1 - back] < 0xf5 &&
		    !csink_text_next(copy, copy + whole - 1 - back).is_valid)
			copy[len = whole - 1 - back] = 0;
	}
	columns = conv->width > 0 ? put_text(NULL, text, len) : 0;
	if (conv->width > 0 && !strchr(conv->flags, '-'))
		pad(s, (uint32_t)CSINK_MAX(conv->width - (int)columns, 0));
	if (s->form == CSINK_TEXT_LINE)
		put_text(s, text, len);
	else
		csink_text_put(s->out, s->form, text);
	if (conv->width > 0 && strchr(conv->flags, '-'))
		pad(s, (uint32_t)CSINK_MAX(conv->width - (int)columns, 0));
}

static int read_number(const char **at)
{
	int n = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		n = n < 100000 ? n * 10 + **at - '0' : n;
	return n;
}

/* Read what comes after '%'. Returns what comes behind it. */
static const char *read_conversion(const char *at, struct conversion *conv, va_list *ap)
{
	size_t nr = strspn(at, "-+ #0"), kept = CSINK_MIN(nr, sizeof(conv->flags) - 2);

	*conv = (struct conversion){.precision = -1};
	memcpy(conv->flags, at, kept);
	at += nr;
	conv->width = *at == '*' ? (at++, va_arg(*ap, int)) : read_number(&at);
	if (conv->width < 0) {
		conv->flags[kept] = '-';
		conv->width = conv->width == INT_MIN ? 0 : -conv->width;
	}
	if (*at == '.') {
		at++;
		conv->precision = *at == '*' ? (at++, va_arg(*ap, int)) : read_number(&at);
	}
	for (; *at && strchr("hljzt", *at); at++) {
		if (conv->length == *at)
			conv->length = (char)(*at == 'l' ? 'L' : 'H');
		else
			conv->length = *at;
	}
	conv->letter = *at;
	return *at ? at + 1 : at;
}

_Static_assert(sizeof(long) == sizeof(long long) && sizeof(intmax_t) == sizeof(long long) &&
		       sizeof(size_t) == sizeof(long long) && sizeof(ptrdiff_t) == sizeof(long long),
	       "integers that are longer than int are all read as long long");

/* Numbers are libc's to print: no byte of them is foreign. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void put_figure(struct sink *s, const struct conversion *conv, va_list *ap)
{
	bool is_real = strchr("fFeEgGaA", conv->letter), is_long = conv->length && strchr("lLjzt", conv->length);
	const char *length = is_long ? "ll" : conv->length == 'h' ? "h" : conv->length == 'H' ? "hh" : "";
	char fmt[32], text[512];
	int len;

	snprintf(fmt, sizeof(fmt), "%%%s*.*%s%c", conv->flags, is_real ? "" : length, conv->letter);
	if (is_real)
		len = snprintf(text, sizeof(text), fmt, conv->width, conv->precision, va_arg(*ap, double));
	else if (conv->letter == 'p')
		len = snprintf(text, sizeof(text), "%*p", conv->width, va_arg(*ap, void *));
	else if (is_long)
		len = snprintf(text, sizeof(text), fmt, conv->width, conv->precision, va_arg(*ap, long long));
	else
		len = snprintf(text, sizeof(text), fmt, conv->width, conv->precision, va_arg(*ap, int));
	put(s, text, len < 0 ? 0 : CSINK_MIN((size_t)len, sizeof(text) - 1));
}

#pragma GCC diagnostic pop

static void print(struct sink *s, const char *fmt, va_list *ap)
{
	struct conversion conv;
	char letter[2] = "";

	while (*fmt) {
		size_t literal = *fmt == '%' ? 0 : 1;

		/* A character of several bytes is one piece. */
		while (literal && ((unsigned char)fmt[literal] & 0xc0) == 0x80)
			literal++;
		if (literal) {
			put(s, fmt, literal);
			fmt += literal;
			continue;
		}
		fmt = read_conversion(fmt + 1, &conv, ap);
		if (conv.letter == 's') {
			put_string(s, &conv, va_arg(*ap, const char *));
		} else if (conv.letter == 'c') {
			*letter = (char)va_arg(*ap, int);
			put_string(s, &conv, letter);
		} else if (conv.letter == '%') {
			put(s, "%", 1);
		} else if (conv.letter) {
			put_figure(s, &conv, ap);
		}
	}
}

size_t csink_text_print(FILE *out, const char *fmt, ...)
{
	struct sink s = {.out = out};
	va_list ap;

	va_start(ap, fmt);
	print(&s, fmt, &ap);
	va_end(ap);
	return s.used;
}

void csink_text_print_as(FILE *out, enum csink_text_form form, const char *fmt, ...)
{
	struct sink s = {.out = out, .form = form};
	va_list ap;

	va_start(ap, fmt);
	print(&s, fmt, &ap);
	va_end(ap);
}

size_t csink_text_vformat(char *buf, size_t size, const char *fmt, va_list ap)
{
	struct sink s = {.buf = buf, .size = size};
	va_list copy;

	if (!size)
		return 0;
	va_copy(copy, ap);
	print(&s, fmt, &copy);
	va_end(copy);
	buf[s.used] = 0;
	return s.used;
}
