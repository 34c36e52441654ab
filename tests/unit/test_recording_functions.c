/* From run directories to profiles: functions of interpreters, with their files, languages and long line tables. */
#include <stdio.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "tests/unit/collected.h"

/*
 * A recording of one sample, in a function of a kind, with these texts of its file: "file" or
 * "file|directory|directory". Returns its profile; *of is the function in it, all 0 if there is none.
 */
static struct csink_profile *collect_function(uint16_t kind, const char *texts, struct csink_profile_function *of)
{
	uint64_t weight = MS;
	struct record r = record_new(8);
	struct csink_rec_code *code = record_code(&r, kind, "function", texts, NULL, 0);
	struct csink_rec_thread *thread = record_thread(&r, 100, "prog");
	struct csink_profile *p;

	for (char *at = code->text + sizeof("function"); (at = strchr(at, '|'));)
		*at++ = 0;
	r.header->cpu_end_ns = MS;
	record_row(&r, thread, NULL, record_code_frame(&r, code, 3), 1, &weight);
	record_write(&r, directory, "100.0.rec");
	free(r.bytes);
	p = collect(NULL);
	*of = (struct csink_profile_function){0};
	for (uint32_t i = 1; i < p->nr_functions; i++) {
		if (!strcmp(csink_profile_text(p, p->functions[i].name), "function"))
			*of = p->functions[i];
	}
	return p;
}

/* The file that a function has in the profile. */
static void test_file(uint16_t kind, const char *texts, const char *want, const char *title)
{
	struct csink_profile_function function;
	struct csink_profile *p = collect_function(kind, texts, &function);

	is_str(csink_profile_text(p, function.file), want, title);
	csink_profile_free(p);
}

static void make_file(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file || fclose(file))
		abort();
}

static void test_files(void)
{
	char first[100], second[100], path[200], texts[400];

	new_directory();
	snprintf(first, sizeof(first), "%s/first", directory);
	snprintf(second, sizeof(second), "%s/second", directory);
	snprintf(path, sizeof(path), "%s/both", first);
	if (mkdir(first, 0700) || mkdir(second, 0700))
		abort();
	make_file(path);
	snprintf(texts, sizeof(texts), "./both|%s|%s", first, second);
	test_file(CSINK_CODE_PERL, texts, path, "a relative name is that of the file in the first directory");
	snprintf(path, sizeof(path), "%s/both", second);
	make_file(path);
	snprintf(texts, sizeof(texts), "both|%s|%s", first, second);
	snprintf(path, sizeof(path), "%s/both", first);
	test_file(CSINK_CODE_PYTHON_LINES, texts, path,
		  "a relative name that both directories have is that of the first");
	snprintf(path, sizeof(path), "%s/later", second);
	make_file(path);
	snprintf(texts, sizeof(texts), "later|%s|%s", first, second);
	test_file(CSINK_CODE_PERL, texts, path, "a relative name that the second directory has is that of the second");
	snprintf(texts, sizeof(texts), "nowhere|%s|%s", first, second);
	test_file(CSINK_CODE_PERL, texts, "nowhere", "a relative name that no directory has stays as it is");
	snprintf(texts, sizeof(texts), "/absolute|%s|%s", first, second);
	test_file(CSINK_CODE_PERL, texts, "/absolute", "an absolute name stays as it is");
	test_file(CSINK_CODE_PERL, "later|", "later", "a directory without a name is none");
	test_file(CSINK_CODE_RUBY, "<internal:/usr/lib/ruby/kernel_require.rb>", "/usr/lib/ruby/kernel_require.rb",
		  "Ruby: a file that is called internal has its path");
	test_file(CSINK_CODE_RUBY, "<internal:kernel>", "<internal:kernel>", "Ruby: its own code is in no file");
	end_directory();
}

static void test_languages(void)
{
	static const char *const languages[] = {
		[CSINK_CODE_PYTHON_LNOTAB] = "Python",
		[CSINK_CODE_PYTHON_LINES] = "Python",
		[CSINK_CODE_PYTHON_LOCATIONS] = "Python",
		[CSINK_CODE_PHP] = "PHP",
		[CSINK_CODE_PERL] = "Perl",
		[CSINK_CODE_RUBY] = "Ruby",
		[CSINK_CODE_V8] = "JavaScript",
		[CSINK_CODE_HOTSPOT] = "Java",
		[CSINK_CODE_HOTSPOT_20] = "Java",
		[CSINK_NR_CODE_KINDS] = "",
	};
	struct csink_profile_function function;

	for (uint16_t kind = 0; kind <= CSINK_NR_CODE_KINDS; kind++) {
		struct csink_profile *p;
		const char *got;

		new_directory();
		p = collect_function(kind, "/no/ending", &function);
		got = function.name ? csink_profile_text(p, function.language) : "none";
		ok(!strcmp(got, languages[kind]), "a function of kind %d has its language: '%s'", kind, got);
		csink_profile_free(p);
		end_directory();
	}
}

/* Samples at very many positions of a function with a long line table. */
static void test_long_tables(void)
{
	enum { NR = 20000, MAX = CSINK_CODE_MAX_TABLE };
	static const char text[] = "a recording has more positions in long line tables than are looked up";
	static const uint16_t kinds[] = {CSINK_CODE_PYTHON_LOCATIONS, CSINK_CODE_V8};
	uint64_t weight = MS;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		bool is_v8 = kinds[k] == CSINK_CODE_V8;
		struct csink_rec_v8_lines lines = {.start = 1, .length = 100, .nr_positions = MAX - sizeof(lines)};
		struct record r = record_new(600);
		struct csink_rec_thread *thread;
		struct csink_rec_code *code;
		struct csink_profile *p;
		const char *fact;

		new_directory();
		r.header->cpu_end_ns = NR * MS;
		thread = record_thread(&r, 100, "prog");
		code = record_code(&r, kinds[k], "long", "no.py", NULL, MAX);
		if (is_v8)
			memcpy(code->text + code->nr_names, &lines, sizeof(lines));
		for (uint32_t i = 0; i < NR; i++) {
			record_row(&r, thread, NULL, record_code_frame(&r, code, 0x10000000 + i), 1, &weight);
		}
		record_write(&r, directory, "100.0.rec");
		p = collect(NULL);
		ok(self(p, "task-clock", "long") == NR * MS, "kind %d: all positions are their function's", kinds[k]);
		fact = csink_profile_fact(p, CSINK_FACT_WARNING, 0);
		ok(fact && strstr(fact, text), "kind %d: lines that were not looked up are reported", kinds[k]);
		csink_profile_free(p);
		free(r.bytes);
		end_directory();
	}
}

int main(void)
{
	test_files();
	test_languages();
	test_long_tables();
	return done();
}
