/* Writing JSON: see json.h. */
#include "launcher/output/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "include/internal/base.h"

/* The bytes of the UTF-8 character at text; 0 if it is none (over-long forms and surrogates are none either). */
static uint32_t utf8_length(const unsigned char *text)
{
	static const struct {
		unsigned char mask, lead;
	} forms[] = {{0x80, 0x00}, {0xe0, 0xc0}, {0xf0, 0xe0}, {0xf8, 0xf0}};
	uint32_t length = 0;

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(forms) && !length; i++)
		if ((text[0] & forms[i].mask) == forms[i].lead)
			length = i + 1;
	for (uint32_t i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((length == 2 && text[0] < 0xc2) || (length == 3 && text[0] == 0xe0 && text[1] < 0xa0) ||
	    (length == 3 && text[0] == 0xed && text[1] > 0x9f) || (length == 4 && text[0] == 0xf0 && text[1] < 0x90) ||
	    (length == 4 && (text[0] > 0xf4 || (text[0] == 0xf4 && text[1] > 0x8f))))
		return 0;
	return length;
}

void csink_json_quote(FILE *out, const char *text, bool in_html)
{
	const unsigned char *at = (const unsigned char *)text;

	putc('"', out);
	while (*at) {
		uint32_t length = utf8_length(at);

		if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < 0x20 || (in_html && strchr("<>&", *at)))
			fprintf(out, "\\u%04x", *at);
		else if (!length)
			fputs("\\ufffd", out);
		else
			fwrite(at, 1, length, out);
		at += length ? length : 1;
	}
	putc('"', out);
}

void csink_json_init(struct csink_json *json, FILE *out)
{
	json->out = out;
	json->depth = 0;
	json->wrote[0] = false;
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
	if (!text) {
		csink_json_null(json, key);
		return;
	}
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
	if (!isfinite(value)) {
		csink_json_null(json, key);
		return;
	}
	begin(json, key);
	fprintf(json->out, "%.10g", value);
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
