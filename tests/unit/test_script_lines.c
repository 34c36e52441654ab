/* Lines of JavaScript functions: ends of lines, characters of all lengths, files that are not what V8 compiled, URLs.
 */
#include "launcher/collect/script_lines.h"

#include <string.h>

#include "include/internal/base.h"
#include "tests/unit/tap.h"

/* The line of a place in a text of which V8 says that it has @length code units. */
static int64_t line(const char *text, uint32_t at, uint32_t length)
{
	struct csink_script script;
	int64_t line;

	if (csink_script_read(&script, text, strlen(text)) < 0)
		return -1;
	line = csink_script_line(&script, at, length);
	csink_script_free(&script);
	return line;
}

static void ends_of_lines(void)
{
	ok(line("ab\ncd", 0, 5) == 1 && line("ab\ncd", 2, 5) == 1 && line("ab\ncd", 3, 5) == 2, "a line ends with LF");
	ok(line("a\r\nb\rc", 2, 6) == 1 && line("a\r\nb\rc", 3, 6) == 2 && line("a\r\nb\rc", 5, 6) == 3,
	   "CR LF ends one line, CR alone another");
	ok(line("a\xe2\x80\xa8"
		"b\xe2\x80\xa9"
		"c",
		4, 5) == 3,
	   "U+2028 and U+2029 end lines");
	ok(line("\n\n\n", 3, 3) == 4, "a place behind the last character is in the last line");
}

static void characters(void)
{
	ok(line("\xc3\xbc\n\xe5\x90\x8d\nx", 2, 5) == 2 && line("\xc3\xbc\n\xe5\x90\x8d\nx", 4, 5) == 3,
	   "characters of two and three bytes count once");
	ok(line("\xf0\x9f\x98\x80\nx", 3, 4) == 2, "characters outside of the first plane count twice");
	ok(line("\xff\xc3\nx", 3, 4) == 2, "bytes that are no UTF-8 count once each");
}

static void other_sources(void)
{
	ok(line("ab\ncd", 3, 6) == 0 && line("ab\ncd", 3, 4) == 0 && line("ab\ncd", 3, 0) == 0,
	   "no line if the source had another length");
	ok(line("ab\ncd", 6, 5) == 0, "no line behind the end");
	ok(line("\xef\xbb\xbf"
		"a\nb",
		2, 3) == 2,
	   "a byte order mark is not counted");
	ok(line("\xef\xbb\xbf"
		"a\nb",
		3, 4) == 2 &&
		   line("\xef\xbb\xbf"
			"a\nb",
			2, 4) == 1,
	   "... unless it is part of the source");
	ok(line("", 0, 0) == 0, "an empty file has no place");
}

static void paths(void)
{
	char path[16];

	ok(!strcmp(csink_script_path("/a/b.js", path, sizeof(path)), "/a/b.js"), "a path is itself");
	ok(!strcmp(csink_script_path("file:///a%20b/c.mjs", path, sizeof(path)), "/a b/c.mjs"), "a URL is decoded");
	ok(!strcmp(csink_script_path("file:///a.mjs?x=1", path, sizeof(path)), "/a.mjs"),
	   "its query is not part of the path");
	ok(!strcmp(csink_script_path("file:///a%00b%zz%", path, sizeof(path)), "/a%00b%zz%"), "what is no code stays");
	ok(!strcmp(csink_script_path("file:///123456789012345678", path, sizeof(path)), "/12345678901234"),
	   "a long one is cut");
	ok(!strcmp(csink_script_path("file://host/a", path, sizeof(path)), "file://host/a") &&
		   !strcmp(csink_script_path("node:fs", path, sizeof(path)), "node:fs"),
	   "other URLs stay");
}

static void files(void)
{
	struct csink_script script;

	ok(csink_script_open(&script, "/nowhere/none.js") == 0 && csink_script_line(&script, 1, 2) == 0,
	   "a file that cannot be read gives no lines");
	csink_script_free(&script);
	ok(csink_script_open(&script, "relative.js") == 0 && script.length == 0, "a relative path is not read");
	csink_script_free(&script);
}

int main(void)
{
	ends_of_lines();
	characters();
	other_sources();
	paths();
	files();
	return done();
}
