/* Lines of JavaScript functions: ends of lines, characters of all lengths, files that are not what V8 compiled, URLs.
 */
#include "launcher/collect/script_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

	ok(!strcmp(csink_script_path("/a/b.js", path, sizeof(path)), "/a/b.js"), "a path stays as it is");
	ok(!strcmp(csink_script_path("file:///a%20b/c.mjs", path, sizeof(path)), "/a b/c.mjs"), "a URL is decoded");
	ok(!strcmp(csink_script_path("file:///a.mjs?x=1", path, sizeof(path)), "/a.mjs"),
	   "the query of a URL is not part of the path");
	ok(!strcmp(csink_script_path("file:///a%00b%zz%", path, sizeof(path)), "/a%00b%zz%"),
	   "a URL: characters that are no code stay");
	ok(!strcmp(csink_script_path("file:///123456789012345678", path, sizeof(path)), "/12345678901234"),
	   "a long path is cut");
	ok(!strcmp(csink_script_path("file://host/a", path, sizeof(path)), "file://host/a") &&
		   !strcmp(csink_script_path("node:fs", path, sizeof(path)), "node:fs"),
	   "other URLs stay");
}

static char directory[] = "/tmp/csink-scripts.XXXXXX";

/* The path of a file, or of one that is made with this text, and as many bytes (0: of its text). */
static const char *path_of(const char *name, const char *text, off_t bytes)
{
	static char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = text ? fopen(path, "w") : NULL;
	if (text && (!file || fputs(text, file) < 0 || fclose(file) || (bytes && truncate(path, bytes))))
		exit(1);
	return path;
}

static void files(void)
{
	struct csink_scripts scripts = {0};
	const struct csink_script *script = csink_scripts_find(&scripts, 1, "/nowhere/none.js");

	ok(script && csink_script_line(script, 1, 2) == 0, "a file that cannot be read gives no lines");
	script = csink_scripts_find(&scripts, 2, "relative.js");
	ok(script && script->length == 0, "a relative path is not read");
	path_of("one.js", "a\nb", 0);
	if (link(path_of("one.js", NULL, 0), "link.js"))
		exit(1);
	script = csink_scripts_find(&scripts, 3, path_of("one.js", NULL, 0));
	ok(script && csink_script_line(script, 2, 3) == 2, "a file is read");
	script = csink_scripts_find(&scripts, 4, path_of("././/one.js", NULL, 0));
	ok(script && csink_script_line(script, 2, 3) == 2, "a script is found by another path of its file");
	script = csink_scripts_find(&scripts, 5, path_of("link.js", NULL, 0));
	ok(script && csink_script_line(script, 2, 3) == 2, "a script is found by a link to its file");
	is_num(scripts.nr_files, 1, "a file of three paths is read once");
	unlink(path_of("one.js", NULL, 0));
	unlink(path_of("link.js", NULL, 0));
	script = csink_scripts_find(&scripts, 3, "/nowhere/none.js");
	ok(script && csink_script_line(script, 2, 3) == 2, "a path is opened once");
	csink_scripts_free(&scripts);
}

/* Files as large as are read at all: only some of them are read. */
static void large_files(void)
{
	enum { NR = 5, EACH = 64 << 20 };
	struct csink_scripts scripts = {0};
	bool is_found = true;
	char name[16];

	for (uint32_t i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "%u.js", i);
		is_found &= csink_scripts_find(&scripts, i + 1, path_of(name, "a\n", EACH)) != NULL;
	}
	ok(is_found && scripts.bytes <= CSINK_SCRIPTS_MAX_BYTES, "all files together are read up to the limit");
	is_num(scripts.nr_left_out, NR - 3, "files that were not read are counted");
	for (uint32_t i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "%u.js", i);
		unlink(path_of(name, NULL, 0));
	}
	csink_scripts_free(&scripts);
}

int main(void)
{
	if (!mkdtemp(directory) || chdir(directory))
		return 1;
	ends_of_lines();
	characters();
	other_sources();
	paths();
	files();
	large_files();
	return chdir("/") | rmdir(directory) | done();
}
