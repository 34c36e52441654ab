/* Writing JSON: see json.h. */
#include "launcher/base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "launcher/base/text.h"

/* A character that is not shown as it is. What a person reads in a page is what a terminal would show. */
static void put_hidden(FILE *out, const char *at, const struct csink_text_char *c, bool in_html)
{
	if (!c->is_valid || in_html) {
		for (uint32_t i = 0; i < c->bytes; i++)
			fprintf(out, "\\\\x%02x", (unsigned char)at[i]);
	} else if (c->code > 0xffff) {
		fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((c->code - 0x10000) >> 10), 0xdc00 + (c->code & 0x3ff));
	} else {
		fprintf(out, "\\u%04x", c->code);
	}
}

void csink_json_quote(FILE *out, const char *text, bool in_html)
{
	struct csink_text_char c;

	if (!text) {
		fputs("null", out);
		return;
	}
	putc('"', out);
	for (const char *at = text; *at; at += c.bytes) {
		size_t plain = csink_text_plain(at, "\"\\<>&");

		fwrite(at, 1, plain, out);
		at += plain;
		if (!*at)
			break;
		c = csink_text_next(text, at);
		if (!c.is_shown)
			put_hidden(out, at, &c, in_html);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (in_html && strchr("<>&", *at))
			fprintf(out, "\\u%04x", *at);
		else
			fwrite(at, 1, c.bytes, out);
	}
	putc('"', out);
}

void csink_json_put_real(FILE *out, double value, int digits)
{
	if (isfinite(value))
		fprintf(out, "%.*g", digits, value);
	else
		fputs("null", out);
}

void csink_json_init(struct csink_json *json, FILE *out, char bracket)
{
	*json = (struct csink_json){.out = out};
	if (bracket)
		csink_json_open(json, NULL, bracket);
}

static void begin(struct csink_json *json, const char *key)
{
	if (json->wrote[json->depth])
		putc(',', json->out);
	if (json->depth)
		fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
	json->wrote[json->depth] = true;
	if (!key)
		return;
	csink_json_quote(json->out, key, false);
	fputs(": ", json->out);
}

void csink_json_open(struct csink_json *json, const char *key, char bracket)
{
	begin(json, key);
	putc(bracket, json->out);
	json->depth++;
	json->wrote[json->depth] = false;
}

void csink_json_close(struct csink_json *json, char bracket)
{
	bool wrote = json->wrote[json->depth--];

	if (wrote)
		fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
	putc(bracket, json->out);
	if (!json->depth)
		putc('\n', json->out);
}

void csink_json_text(struct csink_json *json, const char *key, const char *text)
{
	begin(json, key);
	csink_json_quote(json->out, text, false);
}

void csink_json_number(struct csink_json *json, const char *key, int64_t value)
{
	begin(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void csink_json_real(struct csink_json *json, const char *key, double value)
{
	begin(json, key);
	csink_json_put_real(json->out, value, 10);
}

void csink_json_bool(struct csink_json *json, const char *key, bool value)
{
	begin(json, key);
	fputs(value ? "true" : "false", json->out);
}

void csink_json_null(struct csink_json *json, const char *key)
{
	begin(json, key);
	fputs("null", json->out);
}

void csink_json_known(struct csink_json *json, const char *key, bool is_known, int64_t value)
{
	if (is_known)
		csink_json_number(json, key, value);
	else
		csink_json_null(json, key);
}

void csink_json_texts(struct csink_json *json, const char *key, char *const *texts, uint32_t nr)
{
	csink_json_open(json, key, '[');
	for (uint32_t i = 0; i < nr; i++)
		csink_json_text(json, NULL, texts[i]);
	csink_json_close(json, ']');
}
