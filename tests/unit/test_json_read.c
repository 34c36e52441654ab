/* Reading JSON: values, escapes, and texts that are none. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/json_read.h"
#include "tests/unit/tap.h"

static void reads_text(const char *json, const char *want, const char *what)
{
	struct csink_json_value *value = csink_json_read(json, strlen(json));

	ok(value && value->kind == CSINK_JSON_TEXT && !strcmp(value->text, want), "%s", what);
	csink_json_free(value);
}

static void refuses(const char *json, const char *what)
{
	struct csink_json_value *value = csink_json_read(json, strlen(json));

	ok(!value, "refused: %s", what);
	csink_json_free(value);
}

static void test_texts(void)
{
	reads_text("\"\"", "", "an empty text");
	reads_text(" \"a\\\"\\\\\\/\\n\\tb\" ", "a\"\\/\n\tb", "short escapes");
	reads_text("\"\\u0041\\u00e9\\u20ac\"", "A\xc3\xa9\xe2\x82\xac", "characters of one, two and three bytes");
	reads_text("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", "a character of two halves");
	reads_text("\"\xff\\\\xff\"", "\xff\\xff", "bytes that are no UTF-8 pass");
	reads_text("\"a\\u0000b\"", "ab", "a NUL in a text is left out");
	refuses("\"abc", "a text without an end");
	refuses("\"abc\\\"", "a text that ends in an escaped quote");
	refuses("\"\\", "a text that ends in a backslash");
	refuses("\"\\x41\"", "an unknown escape");
	refuses("\"\\u12g4\"", "an escape that is no number");
	refuses("\"\\ud83d\\u0041\"", "the first half of a character before another one");
}

static void test_numbers(void)
{
	static const char text[] = "[1, -2.5e3, 0.125, null, true]";
	struct csink_json_value *array = csink_json_read(text, strlen(text)), *one = array ? array->first : NULL;
	double want[] = {1, -2500, 0.125};

	for (int i = 0; i < 3 && one; i++, one = one->next)
		ok(one->kind == CSINK_JSON_NUMBER && one->number == want[i], "number %d of an array", i);
	ok(one && one->kind == CSINK_JSON_NULL && one->next->kind == CSINK_JSON_TRUE && !one->next->next,
	   "null and true of an array, which ends");
	csink_json_free(array);
	refuses("1-2", "a number that is two");
	refuses("0x10", "a hexadecimal number");
	refuses("nan", "nan");
}

static void test_structure(void)
{
	static const char text[] = "{\"a\":{\"x\":[1,[2],{}]},\"b\":true,\"c\":\"d\",\"e\":5} ";
	struct csink_json_value *value = csink_json_read(text, strlen(text));
	char deep[201];

	ok(csink_json_get(csink_json_get(value, "a"), "x") && !csink_json_get(value, "x"), "members of an object");
	is_str(csink_json_get_text(value, "c"), "d", "the text of a member");
	ok(csink_json_get_number(value, "e") == 5 && isnan(csink_json_get_number(value, "c")),
	   "the number of a member");
	ok(!csink_json_get_text(value, "b") && !csink_json_get(NULL, "b"), "a member that is no text, and of nothing");
	csink_json_free(value);
	refuses("", "nothing");
	refuses("{\"a\":1", "an object without an end");
	refuses("{\"a\" 1}", "a member without a colon");
	refuses("{a:1}", "a key without quotes");
	refuses("{\"a\":1,}", "a comma before the end");
	refuses("[1 2]", "elements without a comma");
	refuses("[1}", "a bracket that closes another one");
	refuses("[1] 2", "something behind the value");
	refuses("tru", "a word that ends early");
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	deep[200] = '\0';
	refuses(deep, "brackets that are too deep");
	deep[150] = '\0';
	value = csink_json_read(deep + 50, 100);
	ok(value && value->first, "brackets as deep as is allowed");
	csink_json_free(value);
}

int main(void)
{
	test_texts();
	test_numbers();
	test_structure();
	return done();
}
