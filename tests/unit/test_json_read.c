/* Reading JSON: values, escapes, and texts that are none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/json_read.h"
#include "tests/unit/tap.h"

static struct csink_json_reader of(const char *text)
{
	struct csink_json_reader r;

	csink_json_read_init(&r, text, strlen(text));
	return r;
}

static void reads_text(const char *json, const char *want, const char *what)
{
	struct csink_json_reader r = of(json);
	char *got = csink_json_read_text(&r);

	is_str(got, want, what);
	ok(csink_json_read_end(&r), "%s: valid", what);
	free(got);
}

static void refuses(const char *json, const char *what)
{
	struct csink_json_reader r = of(json);

	csink_json_read_skip(&r);
	ok(!csink_json_read_end(&r), "refused: %s", what);
}

static void test_texts(void)
{
	reads_text("\"\"", "", "an empty text");
	reads_text(" \"a\\\"\\\\\\/\\n\\tb\" ", "a\"\\/\n\tb", "short escapes");
	reads_text("\"\\u0041\\u00e9\\u20ac\"", "A\xc3\xa9\xe2\x82\xac", "characters of one, two and three bytes");
	reads_text("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", "a character of two halves");
	reads_text("\"\xff\\\\xff\"", "\xff\\xff", "bytes that are no UTF-8 pass");
	reads_text("null", NULL, "null");
	refuses("\"abc", "a text without an end");
	refuses("\"abc\\\"", "a text that ends in an escaped quote");
	refuses("\"\\", "a text that ends in a backslash");
	refuses("\"\\x41\"", "an unknown escape");
	refuses("\"\\u12g4\"", "an escape that is no number");
	refuses("\"\\ud83d\"", "the first half of a character alone");
	refuses("\"\\ude00\"", "the second half of a character alone");
	refuses("\"\\u0000\"", "a NUL in a text");
	refuses("\"\n\"", "a newline in a text");
}

static void test_numbers(void)
{
	struct csink_json_reader r = of("[1, -2.5e3, 0.125, null]");
	double want[] = {1, -2500, 0.125};

	csink_json_read_open(&r, '[');
	for (int i = 0; i < 3; i++)
		ok(csink_json_read_element(&r) && csink_json_read_real(&r) == want[i], "number %d of an array", i);
	ok(csink_json_read_element(&r) && isnan(csink_json_read_real(&r)), "null is no number");
	ok(!csink_json_read_element(&r) && csink_json_read_end(&r), "the array ends");
	refuses("1e999", "a number that is too large");
	refuses("nan", "nan");
	refuses("Infinity", "Infinity");
	refuses("+1", "a number with a plus");
	refuses("1-2", "a number that is two");
	refuses("0x10", "a hexadecimal number");
}

static void test_structure(void)
{
	struct csink_json_reader r = of("{\"a\":{\"x\":[1,[2],{}]},\"b\":true,\"c\":\"d\"} ");
	char *key, *text = NULL, keys[8] = "";
	char deep[200];

	csink_json_read_open(&r, '{');
	while (csink_json_read_member(&r, &key)) {
		strcat(keys, key);
		if (*key == 'c')
			text = csink_json_read_text(&r);
		else
			csink_json_read_skip(&r);
		free(key);
	}
	is_str(keys, "abc", "members, of which some are passed");
	is_str(text, "d", "the value of a member");
	ok(csink_json_read_end(&r), "the object ends");
	free(text);
	refuses("", "nothing");
	refuses("{\"a\":1", "an object without an end");
	refuses("{\"a\" 1}", "a member without a colon");
	refuses("{a:1}", "a key without quotes");
	refuses("{\"a\":1,}", "a comma before the end");
	refuses("[1 2]", "elements without a comma");
	refuses("[1}", "a bracket that closes another one");
	refuses("[1] 2", "something behind the value");
	refuses("tru", "a word that ends early");
	memset(deep, '[', sizeof(deep));
	memset(deep + 100, ']', 100);
	deep[199] = '\0';
	refuses(deep, "brackets that are too deep");
	memset(deep, '[', CSINK_JSON_DEPTH);
	memset(deep + CSINK_JSON_DEPTH, ']', CSINK_JSON_DEPTH);
	deep[CSINK_JSON_DEPTH * 2] = '\0';
	r = of(deep);
	csink_json_read_skip(&r);
	ok(csink_json_read_end(&r), "brackets as deep as is allowed");
}

int main(void)
{
	test_texts();
	test_numbers();
	test_structure();
	return done();
}
