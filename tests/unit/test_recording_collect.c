/* From run directories to profiles: several processes, images, threads and epochs are added up; no time is lost.
 */
#include "launcher/collect/collect.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "tests/unit/record.h"
#include "tests/unit/tap.h"

#define MS 1000000ULL

static char directory[64];

static void new_directory(void)
{
	strcpy(directory, "/tmp/csink-collect.XXXXXX");
	if (!mkdtemp(directory))
		abort();
}

static void end_directory(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	if (system(command))
		abort();
}

/* The sum of a type over the samples that have this label ("pseudo=exit"), or over all (NULL). */
static int64_t sum(const struct csink_profile *p, const char *type, const char *key, const char *text)
{
	const struct csink_profile_label *label;
	int t = csink_profile_type_find(p, type);
	const struct csink_profile_range *set;
	int64_t total = 0;
	uint32_t i, k;

	for (i = 0; t >= 0 && i < p->nr_samples; i++) {
		set = &p->label_sets[p->samples[i].labels];
		for (k = 0; key && k < set->nr; k++) {
			label = &p->labels[set->first + k];
			if (!strcmp(csink_profile_text(p, label->key), key) &&
			    (label->str ? !strcmp(csink_profile_text(p, label->str), text) : label->num == atoi(text)))
				break;
		}
		if (!key || k < set->nr)
			total += csink_profile_values(p, i)[t];
	}
	return total;
}

/* The sum over the samples whose leaf is this function. */
static int64_t self(const struct csink_profile *p, const char *type, const char *function)
{
	int t = csink_profile_type_find(p, type);
	const struct csink_profile_location *leaf;
	int64_t total = 0;
	uint32_t i;

	for (i = 0; i < p->nr_samples; i++) {
		leaf = &p->locations[p->stack_ids[p->stacks[p->samples[i].stack].first]];
		if (leaf->nr_lines &&
		    !strcmp(csink_profile_text(p, p->functions[p->lines[leaf->first_line].function].name), function))
			total += csink_profile_values(p, i)[t];
	}
	return total;
}

static struct csink_profile *collect(const struct csink_outside *outside)
{
	struct csink_profile *p = NULL;

	is_num(csink_collect(directory, outside, &p), 0, "the run directory is collected");
	return p ? p : csink_profile_create();
}

/* ---- */

static void test_one(void)
{
	uint64_t frames[] = {0x401010, 0x401020}, weight = 30 * MS, less = 10 * MS, rest = 2 * MS;
	struct record r = record_new(8);
	struct csink_rec_thread *main_thread, *worker;
	const struct csink_profile_range *stack;
	struct csink_rec_node *chain;
	struct csink_profile *p;

	new_directory();
	r.header->cpu_start_ns = 5 * MS;
	r.header->cpu_end_ns = 50 * MS;
	r.header->losses[CSINK_LOSS_RING] = 3;
	record_module(&r, "/nowhere/lib.so", 0x500000, 0x500000, 0x510000);
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	main_thread = record_thread(&r, 100, "prog");
	worker = record_thread(&r, 101, "worker");
	chain = record_chain(&r, 5000, 2, frames);
	record_row(&r, main_thread, chain, 0x401008, 30, &weight);
	record_row(&r, worker, chain, 0x500008, 10, &less);
	record_row(&r, worker, NULL, 0, 0, &rest);
	record_note(&r, 1, "be careful");
	record_spawn(&r, CSINK_SPAWN_STATIC, "/usr/bin/busybox");
	record_write(&r, directory, "100.0.rec");
	p = collect(NULL);

	is_num(p->nr_types, 2, "the columns are samples and the event");
	is_num(p->default_type, 1, "the leader is the default column");
	is_num(p->period, 1000000, "the leader's period is known");
	is_num(sum(p, "samples", NULL, NULL), 40, "the samples of all recordings are added up");
	is_num(sum(p, "task-clock", NULL, NULL), 50 * MS, "time is the CPU time of the process");
	is_num(sum(p, "task-clock", "pseudo", "start-up"), 5 * MS, "time before our start is [start-up]");
	is_num(sum(p, "task-clock", "pseudo", "not sampled"), 5 * MS,
	       "time without samples: 2 ms of a thread, 3 ms of no thread");
	is_num(sum(p, "task-clock", "thread", "worker"), 12 * MS, "CPU time is labelled by thread name");
	is_num(sum(p, "task-clock", "tid", "100"), 30 * MS, "CPU time is labelled by TID");
	is_num(sum(p, "task-clock", "pid", "100"), 50 * MS, "CPU time is labelled by PID");
	is_num(sum(p, "task-clock", "process", "prog"), 50 * MS, "CPU time is labelled by process name");
	is_num(self(p, "task-clock", "[start-up: exec and loader]"), 5 * MS, "the start-up pseudo-function is named");

	stack = &p->stacks[p->samples[0].stack];
	is_num(stack->nr, 3, "a stack has its leaf and its callers");
	is_num(p->locations[p->stack_ids[stack->first]].address, 0x401008, "the leaf has its exact address");
	is_num(p->locations[p->stack_ids[stack->first + 1]].address, 0x40100f, "a caller's address is inside its call");
	is_str(csink_profile_text(p, p->mappings[1].file), "/bin/prog", "the program is the first mapping");
	is_str(csink_profile_fact(p, CSINK_FACT_COMMAND, 0), "prog --fast", "the command is a comment");
	is_str(csink_profile_fact(p, CSINK_FACT_LOSS, 0), "3 samples dropped by the kernel", "losses are a comment");
	is_str(csink_profile_fact(p, CSINK_FACT_UNPROFILED, 0), "busybox (static, cannot be preloaded into)",
	       "unprofiled programs are a comment");
	is_str(csink_profile_fact(p, CSINK_FACT_WARNING, 0), "be careful", "warnings are a comment");
	ok(csink_profile_fact(p, CSINK_FACT_WARNING, 1) &&
		   strstr(csink_profile_fact(p, CSINK_FACT_WARNING, 1), "is gone"),
	   "missing objects are a comment");
	is_str(csink_profile_fact(p, CSINK_FACT_PROCESSES, 0), "1", "the number of processes is 1");
	is_str(csink_profile_fact(p, CSINK_FACT_THREADS, 0), "2", "the number of threads is 2");
	is_str(csink_profile_fact(p, CSINK_FACT_ENGINE, 0), "sigtrap", "the engine is a comment");
	is_str(csink_profile_fact(p, CSINK_FACT_WALL, 0), NULL, "the unmeasured wall time has no comment");
	csink_profile_free(p);
	free(r.bytes);
	end_directory();
}

/* A frame that is not shown among callers, as the leaf of a stack: only a made-up recording has that. */
static void test_hidden_leaf(void)
{
	uint64_t frames[2] = {0x401010}, weight = 10 * MS;
	struct record r = record_new(8);
	struct csink_rec_thread *thread;
	struct csink_rec_code *cleanup;
	const struct csink_profile_range *stack;
	struct csink_profile *p;
	uint32_t nr_bad = 0;

	new_directory();
	r.header->cpu_end_ns = 20 * MS;
	thread = record_thread(&r, 100, "prog");
	cleanup = record_code(&r, CSINK_CODE_PYTHON_LOCATIONS, "__init__", "__init__", NULL, 0);
	frames[1] = record_code_frame(&r, cleanup, 4);
	record_row(&r, thread, record_chain(&r, 5000, 2, frames), frames[1], 10, &weight);
	record_row(&r, thread, NULL, frames[1], 10, &weight);
	record_write(&r, directory, "100.0.rec");
	p = collect(NULL);
	is_num(sum(p, "task-clock", NULL, NULL), 20 * MS, "the time of leaves that are not shown is kept");
	for (uint32_t i = 0; i < p->nr_stack_ids; i++)
		nr_bad += p->stack_ids[i] >= p->nr_locations;
	is_num(nr_bad, 0, "all locations of stacks are in the profile");
	stack = &p->stacks[p->samples[0].stack];
	is_num(stack->nr, 2, "the stack has [anon] in place of its leaf, and lacks the caller that is not shown");
	csink_profile_free(p);
	free(r.bytes);
	end_directory();
}

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

/* A shell that runs a program by exec, a child by fork, a static program, and one that used the pid again. */
static void test_tree(void)
{
	static struct csink_outside_process processes[] = {
		{.pid = 100, .comm = "prog", .cpu_ns = 100 * MS, .has_cpu = 1},
		{.pid = 200, .comm = "child", .cpu_ns = 11 * MS, .has_cpu = 1},
		{.pid = 300, .comm = "static", .cpu_ns = 40 * MS, .has_cpu = 1, .reason = CSINK_SPAWN_STATIC},
		{.pid = 301, .comm = "vforked", .cpu_ns = 0, .has_cpu = 1},
	};
	struct csink_outside outside = {.wall_ns = 500 * MS,
					.user_ns = 140 * MS,
					.sys_ns = 20 * MS,
					.max_rss_bytes = 4096,
					.has_rusage = 1,
					.processes = processes,
					.nr_processes = 4,
					.command_status = 7 << 8,
					.command = "sh -c things"};
	struct record r = record_new(8);
	uint64_t weight = 20 * MS;
	struct csink_profile *p;

	new_directory();
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	record_row(&r, record_thread(&r, 100, "sh"), NULL, 0x401008, 20, &weight);
	r.header->state = CSINK_REC_EXECED;
	r.header->cpu_start_ns = 1 * MS;
	r.header->cpu_end_ns = 21 * MS;
	record_write(&r, directory, "100.0.rec");
	r.header->state = CSINK_REC_EXITED;
	r.header->seq = 1; /* the program after exec: 30 ms up to our constructor, of which 21 were the shell's */
	r.header->start_monotonic_ns = 2000;
	r.header->cpu_start_ns = 30 * MS;
	r.header->cpu_end_ns = 55 * MS;
	record_write(&r, directory, "100.1.rec");
	r.header->pid = 200; /* a child by fork: nothing came before */
	r.header->seq = 0;
	r.header->cpu_start_ns = 0;
	r.header->cpu_end_ns = 20 * MS;
	strcpy(r.header->comm, "child");
	record_write(&r, directory, "200.0.rec");
	r.header->pid = 100; /* the pid again, in another process */
	r.header->seq = 2;
	r.header->start_monotonic_ns = 3000;
	r.header->cpu_start_ns = 2 * MS;
	r.header->cpu_end_ns = 22 * MS;
	record_write(&r, directory, "100.2.rec");
	p = collect(&outside);

	is_num(sum(p, "task-clock", NULL, NULL), 160 * MS, "the profile's sum is the kernel's");
	is_num(sum(p, "task-clock", "pseudo", "start-up"), (1 + 9 + 2) * MS,
	       "start-up after exec leaves out what the image before used");
	is_num(sum(p, "task-clock", "pseudo", "not sampled"), 5 * MS, "time without samples is [not sampled]");
	is_num(sum(p, "task-clock", "pseudo", "exit"), 160 * MS - (80 + 12 + 5 + 40) * MS,
	       "time after the last flush is [exit]");
	is_num(sum(p, "task-clock", "pseudo", "not injected"), 40 * MS,
	       "time of a program that was not injected is [not injected]");
	is_num(self(p, "task-clock", "[not injected: static]"), 40 * MS, "[not injected] has the program's name");
	is_str(csink_profile_fact(p, CSINK_FACT_UNPROFILED, 0), "static (static, cannot be preloaded into)",
	       "the program that was not injected is a comment with its reason");
	is_str(csink_profile_fact(p, CSINK_FACT_UNPROFILED, 1), NULL,
	       "a vfork child that executed nothing is not named");
	is_str(csink_profile_fact(p, CSINK_FACT_PROCESSES, 0), "3", "images of one PID are one process");
	is_str(csink_profile_fact(p, CSINK_FACT_THREADS, 0), "3", "main threads continue through exec");
	is_str(csink_profile_fact(p, CSINK_FACT_EXIT, 0), "status 7", "the exit status is a comment");
	is_str(csink_profile_fact(p, CSINK_FACT_COMMAND, 0), "sh -c things", "the launcher's command is a comment");
	is_num(p->duration_ns, 500 * MS, "the wall time is known");
	csink_profile_free(p);

	outside.user_ns += 10 * MS;
	p = collect(&outside);
	is_num(sum(p, "task-clock", "pseudo", "other"), 10 * MS,
	       "time that the kernel accounted to no process is [other]");
	csink_profile_free(p);
	outside.user_ns -= 10 * MS;

	outside.processes = NULL;
	outside.nr_processes = 0;
	p = collect(&outside);
	is_num(sum(p, "task-clock", NULL, NULL), 160 * MS, "the sum is the kernel's although processes are unknown");
	is_num(self(p, "task-clock", "[exit, or not injected]"), 160 * MS - 97 * MS,
	       "the rest without processes is [exit, or not injected]");
	csink_profile_free(p);

	outside.user_ns = 50 * MS;
	p = collect(&outside);
	is_num(sum(p, "task-clock", NULL, NULL), 97 * MS, "smaller totals from the kernel remove no time");
	csink_profile_free(p);
	free(r.bytes);
	end_directory();
}

static void test_nothing_injected(void)
{
	struct csink_outside outside = {.user_ns = 3 * MS, .has_rusage = 1, .command_status = 9};
	struct csink_profile *p = NULL;

	new_directory();
	is_num(csink_collect(directory, NULL, &p), -ENOENT, "an empty directory is no run: ENOENT");
	p = collect(&outside);
	is_num(sum(p, "task-clock", NULL, NULL), 3 * MS, "an empty directory with totals from outside has their time");
	is_num(self(p, "task-clock", "[not injected]"), 3 * MS,
	       "the time of a program that was not injected is [not injected]");
	is_str(csink_profile_fact(p, CSINK_FACT_EXIT, 0), "signal 9 (Killed)",
	       "the signal that ended the run is a comment");
	csink_profile_free(p);
	end_directory();
	is_num(csink_collect("/nowhere/at/all", NULL, &p), -ENOENT, "a missing directory: ENOENT");
}

/* Events differ by process: there is a column for each event of any process. */
static void test_events(void)
{
	struct record r = record_new(8);
	uint64_t weights[2] = {100, 7 * MS};
	struct csink_profile *p;

	new_directory();
	r.header->nr_events = 2;
	r.header->events[1] = r.header->events[0];
	r.header->events[1].flags = CSINK_EVENT_CPU_NS | CSINK_EVENT_IMPLIED;
	r.header->events[0] = (struct csink_rec_event){.name = "cycles", .unit = "count", .flags = CSINK_EVENT_LEADER};
	record_row(&r, record_thread(&r, 1, "a"), NULL, 0x5000, 1, weights);
	r.header->cpu_end_ns = 8 * MS;
	record_write(&r, directory, "1.0.rec");
	r.header->pid = 2;
	r.header->events[0].flags |= CSINK_EVENT_REFUSED;
	record_write(&r, directory, "2.0.rec");
	r.header->pid = 3;
	r.header->unstored[1] = 500;
	r.header->losses[CSINK_LOSS_RECORDING_FULL] = 4;
	record_write(&r, directory, "3.0.rec");
	p = collect(NULL);
	is_num(p->nr_types, 3, "the columns are those of all processes");
	is_num(sum(p, "cycles", NULL, NULL), 100, "a refused event's weights are ignored");
	is_num(sum(p, "task-clock", NULL, NULL), 24 * MS, "time is counted in each process");
	is_num(self(p, "task-clock", "[lost: recording full]"), 500, "lost samples keep their weight");
	is_num(self(p, "samples", "[lost: recording full]"), 4, "lost samples keep their number");
	is_str(csink_profile_fact(p, CSINK_FACT_REFUSED, 0), "cycles (2 times)", "refused events are a comment");
	csink_profile_free(p);
	free(r.bytes);
	end_directory();
}

/* Two libraries at one address, one after the other; and code in no object. */
static void test_epochs(void)
{
	uint64_t frames[1][1] = {{0x10001010}}, weight = MS, times[4] = {1500, 2500, 4000, 900};
	struct record r = record_new(8);
	struct csink_rec_thread *thread = record_thread(&r, 100, "t");
	struct csink_rec_module *first, *second;
	const struct csink_profile_range *stack;
	struct csink_profile *p;
	uint32_t i, got[4] = {0};
	const char *file;

	new_directory();
	first = record_module(&r, "/nowhere/first.so", 0x10000000, 0x10001000, 0x10002000);
	first->load_ns = 1000;
	first->unload_ns = 2000;
	second = record_module(&r, "/nowhere/second.so", 0x10000800, 0x10000800, 0x10003000);
	second->load_ns = 3000; /* sighted a while after it was mapped */
	for (i = 0; i < 4; i++)
		record_row(&r, thread, record_chain(&r, times[i], 1, frames[0]), 0x77770000 + i, 1, &weight);
	record_write(&r, directory, "100.0.rec");
	p = collect(NULL);
	for (i = 0; i < 4 && i < p->nr_samples; i++) {
		stack = &p->stacks[p->samples[i].stack];
		file = csink_profile_text(p, p->mappings[p->locations[p->stack_ids[stack->first + 1]].mapping].file);
		got[i] = !strcmp(file, "/nowhere/first.so") ? 1 : !strcmp(file, "/nowhere/second.so") ? 2 : 0;
	}
	is_num(got[0], 1, "an address belongs to the library mapped at that time");
	is_num(got[1], 2, "an address after the first library was unmapped belongs to the next one");
	is_num(got[2], 2, "an address belongs to the second library in its time");
	is_num(got[3], 1, "an address before the first sighting belongs to the first library");
	stack = &p->stacks[p->samples[0].stack];
	file = csink_profile_text(p, p->mappings[p->locations[p->stack_ids[stack->first]].mapping].file);
	is_str(file, "[anon]", "code in no object is in [anon]");
	csink_profile_free(p);
	free(r.bytes);
	end_directory();
}

static void test_damaged(void)
{
	struct record r = record_new(8);
	struct csink_profile *p;
	uint64_t weight = MS;
	char path[128];
	uint32_t i;
	FILE *junk;

	new_directory();
	snprintf(path, sizeof(path), "%s/9.0.rec", directory);
	junk = fopen(path, "w");
	fputs("this is no recording", junk);
	fclose(junk);
	record_row(&r, record_thread(&r, 1, "a"), NULL, 0x5000, 1, &weight);
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%u.0.rec", i + 1);
		record_note(&r, 0, "noted by each");
		record_write(&r, directory, path);
	}
	p = collect(NULL);
	is_num(sum(p, "task-clock", NULL, NULL), 3 * MS, "a file that is no recording costs no other recording");
	ok(csink_profile_fact(p, CSINK_FACT_WARNING, 0) &&
		   strstr(csink_profile_fact(p, CSINK_FACT_WARNING, 0), "9.0.rec"),
	   "a file that is no recording is named");
	is_str(csink_profile_fact(p, CSINK_FACT_NOTE, 1), NULL, "a note of several recordings is one comment");
	csink_profile_free(p);

	/* Impossible numbers. */
	r.header->cpu_start_ns = UINT64_MAX;
	r.header->cpu_end_ns = 1ULL << 63;
	r.header->pid = INT32_MIN;
	record_write(&r, directory, "1.0.rec");
	p = collect(NULL);
	is_num(sum(p, "task-clock", NULL, NULL), 3 * MS, "impossible CPU times are ignored");
	csink_profile_free(p);
	free(r.bytes);
	end_directory();
}

static bool warns_of(const struct csink_profile *p, const char *text)
{
	const char *fact;

	for (uint32_t i = 0; (fact = csink_profile_fact(p, CSINK_FACT_WARNING, i)); i++) {
		if (strstr(fact, text))
			return true;
	}
	return false;
}

static void write_with_events(const char *name, uint32_t nr, const char *words)
{
	uint64_t weights[CSINK_MAX_EVENTS] = {5 * MS};
	struct record r = record_new(8);

	r.header->nr_events = nr;
	r.header->pid = atoi(name);
	for (uint32_t i = 1; i < nr; i++)
		snprintf(r.header->events[i].name, sizeof(r.header->events[i].name), "%s-%u", words, i);
	record_row(&r, record_thread(&r, 100, "prog"), NULL, 0x1000, 5, weights);
	record_write(&r, directory, name);
	free(r.bytes);
}

/* Each of these events has a column, or words that say why not; how many have words. */
static uint32_t columns_or_words(const struct csink_profile *p, uint32_t nr, const char *words)
{
	uint32_t nr_told = 0;

	for (uint32_t i = 1; i < nr; i++) {
		char name[32], warning[96];
		bool has_column, is_told;

		snprintf(name, sizeof(name), "%s-%u", words, i);
		snprintf(warning, sizeof(warning), "%s has no column: other processes count other events", name);
		has_column = csink_profile_type_find(p, name) >= 0;
		is_told = warns_of(p, warning);
		ok(has_column != is_told, "%s has a column, or a warning that it has none", name);
		nr_told += is_told;
	}
	return nr_told;
}

/* Processes with other events than the earlier ones: events without room are reported. */
static void test_columns(void)
{
	struct collector *c;
	struct csink_profile *p;
	uint32_t nr_told;

	new_directory();
	write_with_events("100.0.rec", CSINK_MAX_EVENTS, "first");
	write_with_events("101.0.rec", 3, "second");
	p = collect(NULL);
	is_num(p->nr_types, 1 + CSINK_MAX_EVENTS, "there is the maximum number of columns");
	/* Whose recording is found first is the file system's to say. */
	nr_told = columns_or_words(p, CSINK_MAX_EVENTS, "first") + columns_or_words(p, 3, "second");
	is_num(nr_told, 2, "events without a column are reported");
	csink_profile_free(p);
	end_directory();

	new_directory();
	write_with_events("2147483646.0.rec", 1, "none");
	c = csink_collect_begin(NULL);
	is_num(csink_collect_take(c, directory, 1), 1, "the recording of an ended process is taken");
	write_with_events("101.0.rec", 2, "late");
	p = NULL;
	is_num(csink_collect_finish(c, directory, &p), 0,
	       "a recording written after the first take is collected at the end");
	ok(p && warns_of(p, "late-1 has no column: processes that ended before did not count it"),
	   "additional events of later recordings are reported");
	csink_profile_free(p);
	end_directory();
}

/* A recording of samples from outside: 10 of them, in one thread. */
static struct record outside_record(int32_t pid, uint64_t start_ns, uint64_t weight)
{
	struct record r = record_new(8);

	r.header->engine = CSINK_ENGINE_OUTSIDE;
	r.header->pid = pid;
	r.header->start_monotonic_ns = start_ns;
	r.header->cpu_end_ns = weight;
	strcpy(r.header->comm, "still");
	record_module(&r, "/bin/still", 0x400000, 0x401000, 0x402000);
	return r;
}

/* Of one process each: samples that weigh what was counted, and samples that weigh a period; and one that the library
 * records as well, from a moment on. */
static void test_outside(void)
{
	struct csink_outside_process processes[] = {
		{.pid = 200, .comm = "still", .cpu_ns = 30 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 201, .comm = "still", .cpu_ns = 50 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 202, .comm = "prog", .cpu_ns = 20 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 203, .comm = "brief", .cpu_ns = 1 * MS, .has_cpu = 1, .is_sampled = 1},
	};
	struct csink_outside outside = {
		.user_ns = 101 * MS, .has_rusage = 1, .processes = processes, .nr_processes = 4};
	uint64_t weight = 20 * MS, loader = 1 * MS, inside = 18 * MS;
	struct csink_rec_thread *thread;
	struct csink_profile *p;
	struct record r;

	new_directory();
	for (int32_t pid = 200; pid < 202; pid++) {
		r = outside_record(pid, 1000, weight);
		r.header->events[0].flags |= pid == 201 ? CSINK_EVENT_BY_PERIOD : 0;
		thread = record_thread(&r, pid, "still");
		thread->nr_samples = 10;
		record_row(&r, thread, NULL, 0x401008, 10, &weight);
		record_write(&r, directory, pid == 200 ? "200.0.rec" : "201.0.rec");
		free(r.bytes);
	}
	r = outside_record(202, 1000, loader);
	thread = record_thread(&r, 202, "prog");
	thread->nr_samples = 18;
	record_row(&r, thread, NULL, 0x401008, 1, &loader);
	record_row(&r, thread, NULL, 0x401010, 17, &inside)->head.aux = CSINK_PHASE_INJECTED;
	record_write(&r, directory, "202.0.rec");
	free(r.bytes);
	r = record_new(8);
	r.header->pid = 202;
	r.header->start_monotonic_ns = 2000;
	r.header->cpu_start_ns = 2 * MS;
	r.header->cpu_end_ns = 20 * MS;
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	record_row(&r, record_thread(&r, 202, "prog"), NULL, 0x401020, 18, &inside);
	record_write(&r, directory, "202.1.rec");
	free(r.bytes);
	p = collect(&outside);

	is_num(sum(p, "task-clock", NULL, NULL), 101 * MS, "with samples from outside all time is there, once");
	is_num(sum(p, "task-clock", "pid", "200"), 30 * MS, "samples that weigh counts: the process has its CPU time");
	is_num(sum(p, "task-clock", "pseudo", "not sampled"), 9 * MS,
	       "no more than a sample's weight is added for a thread; what had no sample is [not sampled]");
	is_num(self(p, "task-clock", "[not sampled: still]"), 8 * MS, "[not sampled] has the program's name");
	is_num(self(p, "task-clock", "[not sampled: brief]"), 1 * MS,
	       "[not sampled] has the name of one without samples");
	is_num(sum(p, "task-clock", "pid", "201"), 50 * MS,
	       "samples that weigh periods are scaled to their process's CPU time");
	is_num(sum(p, "samples", "pid", "202"), 19, "what the library recorded is not counted twice");
	is_num(sum(p, "task-clock", "pseudo", "start-up"), 1 * MS, "samples from before the library's are kept");
	is_str(csink_profile_fact(p, CSINK_FACT_UNPROFILED, 0), NULL,
	       "what was sampled from outside is not unprofiled");
	csink_profile_free(p);
	end_directory();
}

/* A recording of the library, the first of its process: all of its CPU time is in one row. */
static void write_inside(int32_t pid, enum csink_rec_state state, uint64_t nr_samples, uint64_t ns)
{
	struct record r = record_new(8);
	char name[32];

	snprintf(name, sizeof(name), "%d.0.rec", (int)pid);
	r.header->pid = pid;
	r.header->state = state;
	r.header->cpu_end_ns = ns;
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	record_row(&r, record_thread(&r, pid, "prog"), NULL, 0x401020, nr_samples, &ns);
	record_write(&r, directory, name);
	free(r.bytes);
}

/* Two processes that were sampled from outside, of 10 and 20 ms, and one of the library that used 13 ms, 2 of them
 * before it was sampled and 1 after. */
static struct csink_profile *collect_uncounted(const struct csink_outside *outside)
{
	uint64_t inside = 10 * MS;
	struct csink_profile *p;
	struct record r;

	new_directory();
	for (int32_t pid = 200; pid < 202; pid++) {
		uint64_t weight = pid == 200 ? 10 * MS : 20 * MS;
		struct csink_rec_thread *thread;

		r = outside_record(pid, 1000, weight);
		r.header->events[0].flags |= pid == 200 ? CSINK_EVENT_BY_PERIOD : 0;
		thread = record_thread(&r, pid, "still");
		thread->nr_samples = weight / MS;
		record_row(&r, thread, NULL, 0x401008, weight / MS, &weight);
		record_write(&r, directory, pid == 200 ? "200.0.rec" : "201.0.rec");
		free(r.bytes);
	}
	r = record_new(8);
	r.header->pid = 203;
	r.header->state = CSINK_REC_EXITED;
	r.header->cpu_start_ns = 2 * MS;
	r.header->cpu_end_ns = 13 * MS;
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	record_row(&r, record_thread(&r, 203, "prog"), NULL, 0x401020, 10, &inside);
	record_write(&r, directory, "203.0.rec");
	free(r.bytes);
	p = collect(outside);
	end_directory();
	return p;
}

/* The kernel counted no process: what samples from outside lack is what the library left of the sum. */
static void test_uncounted(void)
{
	struct csink_outside_process processes[] = {
		{.pid = 200, .comm = "still", .is_sampled = 1},
		{.pid = 201, .comm = "still", .is_sampled = 1},
		{.pid = 202, .comm = "brief", .is_sampled = 1},
		{.pid = 203, .comm = "prog"},
	};
	struct csink_outside outside = {
		.user_ns = 106 * MS, .has_rusage = 1, .processes = processes, .nr_processes = 4};
	struct csink_profile *p = collect_uncounted(&outside);

	is_num(sum(p, "task-clock", NULL, NULL), 106 * MS, "without counts of processes all time is there, once");
	is_num(sum(p, "task-clock", "pid", "203"), 13 * MS, "the library's has all that it used");
	is_num(sum(p, "task-clock", "pid", "200"), 30 * MS, "samples from outside have what the library left");
	is_num(sum(p, "task-clock", "pid", "201"), 60 * MS, "in proportion to what they weigh");
	is_num(self(p, "task-clock", "[of no known process]"), 3 * MS, "but for a period of each process");
	csink_profile_free(p);
	processes[2].is_sampled = 0;
	p = collect_uncounted(&outside);
	is_num(sum(p, "task-clock", "pid", "201"), 20 * MS,
	       "what a process used that nothing sampled is not given to others");
	csink_profile_free(p);
	processes[2].is_sampled = 1;
	processes[2].reason = CSINK_SPAWN_SETUID;
	p = collect_uncounted(&outside);
	is_num(sum(p, "task-clock", "pid", "201"), 20 * MS, "nor that of a program with more rights");
	is_num(sum(p, "task-clock", NULL, NULL), 106 * MS, "all time is there, once");
	csink_profile_free(p);
}

/*
 * Samples of CPUs, of processes that have none of their own: each program's share the CPU time of all such processes of
 * it, less what the library recorded before their exec. Samples after the end of a process's events weigh at most what
 * no event counted.
 */
static void test_unseen(void)
{
	struct csink_outside_process processes[] = {
		{.pid = 211, .comm = "brief", .cpu_ns = 1 * MS, .has_cpu = 1, .is_sampled = 1, .is_unseen = 1},
		{.pid = 212, .comm = "brief", .cpu_ns = 2 * MS, .has_cpu = 1, .is_sampled = 1, .is_unseen = 1},
		{.pid = 213, .comm = "brief", .cpu_ns = 10 * MS, .has_cpu = 1, .is_sampled = 1, .is_unseen = 1},
		{.pid = 214, .comm = "single", .cpu_ns = 4 * MS, .has_cpu = 1, .is_sampled = 1, .is_unseen = 1},
		{.pid = 215, .comm = "long", .cpu_ns = 20 * MS, .has_cpu = 1, .is_sampled = 1, .ending_ns = 5 * MS},
		{.pid = 216, .comm = "large", .cpu_ns = 0, .has_cpu = 1, .ending_ns = 15 * MS},
	};
	struct csink_outside outside = {.user_ns = 41 * MS, .has_rusage = 1, .processes = processes, .nr_processes = 6};
	uint64_t weight = 5 * MS, all = 20 * MS, before = 7 * MS;
	struct csink_rec_thread *thread;
	struct csink_profile *p;
	struct record r;

	new_directory();
	for (int32_t pid = 211; pid < 213; pid++) { /* the first has one sample, the second two */
		uint64_t sum = weight * (uint64_t)(pid - 210);

		r = outside_record(pid, 1000, sum);
		strcpy(r.header->comm, "still"); /* it was a fork of another program when it was hit */
		r.header->events[0].flags |= CSINK_EVENT_BY_CPU;
		thread = record_thread(&r, pid, "still");
		record_row(&r, thread, NULL, 0x401008, 1, &weight);
		if (pid == 212)
			record_row(&r, thread, NULL, CSINK_LEAF_IN_EXEC, 1, &weight);
		record_write(&r, directory, pid == 211 ? "211.0.rec" : "212.0.rec");
		free(r.bytes);
	}
	write_inside(213, CSINK_REC_EXECED, 7, before); /* what became the third */
	r = outside_record(215, 1000, all);
	record_row(&r, record_thread(&r, 215, "long"), NULL, 0x401008, 20, &all);
	record_write(&r, directory, "215.0.rec");
	free(r.bytes);
	p = collect(&outside);

	is_num(sum(p, "task-clock", NULL, NULL), 41 * MS, "samples of CPUs: all time is there, once");
	is_num(sum(p, "task-clock", "pid", "211") * 2, sum(p, "task-clock", "pid", "212"),
	       "samples of CPUs: their shares are those of their numbers");
	is_num(sum(p, "task-clock", "pid", "211") + sum(p, "task-clock", "pid", "212"), 6 * MS,
	       "samples of CPUs: together they have what processes of their program used since their exec");
	is_num(self(p, "task-clock", "execve"), sum(p, "task-clock", "pid", "211"),
	       "samples of CPUs: between exec and program they are the kernel's execve");
	is_num(sum(p, "task-clock", "pid", "213"), 7 * MS, "samples of CPUs: what the library recorded stays");
	is_num(self(p, "task-clock", "[not sampled: single]"), 4 * MS,
	       "samples of CPUs: a program that none has hit is [not sampled]");
	is_num(sum(p, "task-clock", "pid", "215") - 20 * MS, 1 * MS, "ends: of what no event counted, in proportion");
	is_num(sum(p, "task-clock", "pid", "216"), 3 * MS, "ends: likewise, of a process with no other sample");
	is_num(self(p, "task-clock", "do_exit"), 4 * MS, "ends: they have the name of the kernel's function");
	is_num(self(p, "task-clock", "[kernel: exits and switches]"), 0, "ends: no more than there is");
	is_str(csink_profile_fact(p, CSINK_FACT_PROCESSES, 0), "5",
	       "samples of CPUs: a process is counted once, also with a recording of the library before");
	csink_profile_free(p);
	processes[4].ending_ns = 1 * MS;
	processes[5].ending_ns = 0;
	p = collect(&outside);
	is_num(self(p, "task-clock", "do_exit"), 1 * MS, "ends: what was sampled, where that is less");
	is_num(self(p, "task-clock", "[kernel: exits and switches]"), 3 * MS, "ends: the rest has its row");
	csink_profile_free(p);
	p = collect(NULL);
	is_num(sum(p, "task-clock", "pid", "212"), 10 * MS,
	       "samples of CPUs: without the kernel's counts they weigh a period");
	csink_profile_free(p);
	end_directory();
}

static void write_outside(int32_t pid, uint64_t start_ns, uint64_t ns, enum csink_rec_state state, bool is_left_out)
{
	struct record r = outside_record(pid, start_ns, ns);
	char name[32];

	r.header->state = state;
	if (is_left_out) {
		strcpy(r.header->comm, "other");
		r.header->events[0].flags |= CSINK_EVENT_NOT_FOLLOWED;
	}
	record_row(&r, record_thread(&r, pid, "still"), NULL, 0x401008, ns / MS, &ns);
	snprintf(name, sizeof(name), "%d.%u.rec", pid, (unsigned)start_ns);
	record_write(&r, directory, name);
	free(r.bytes);
}

/*
 * Programs that a process executes one after the other, of which one is not followed, or has no sample: its time is
 * neither that of the program before it nor of the one after it.
 */
static void test_not_followed(void)
{
	struct csink_outside_process processes[] = {
		{.pid = 221, .comm = "still", .cpu_ns = 60 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 222, .comm = "other", .cpu_ns = 30 * MS, .has_cpu = 1},
		{.pid = 223, .comm = "other", .cpu_ns = 12 * MS, .has_cpu = 1},
		{.pid = 224, .comm = "brief", .cpu_ns = 11 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 225, .comm = "brief", .cpu_ns = 1 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 226, .comm = "other", .cpu_ns = 10 * MS, .has_cpu = 1},
		{.pid = 227, .comm = "last", .cpu_ns = 10 * MS, .has_cpu = 1},
	};
	struct csink_outside_thread threads[] = {{225, 225, MS / 2}, {225, 228, MS / 2}};
	struct csink_outside outside = {.threads = threads,
					.nr_threads = 2,
					.user_ns = 134 * MS,
					.has_rusage = 1,
					.is_filtered = 1,
					.processes = processes,
					.nr_processes = 7};
	struct csink_profile *p;

	new_directory();
	write_outside(221, 1000, 10 * MS, CSINK_REC_EXECED, false);
	write_outside(221, 2000, 20 * MS, CSINK_REC_EXECED, true);
	write_outside(221, 3000, 30 * MS, CSINK_REC_EXITED, false);
	write_outside(222, 1000, 10 * MS, CSINK_REC_EXECED, false);
	write_outside(222, 2000, 20 * MS, CSINK_REC_EXITED, true);
	write_outside(223, 1000, 10 * MS, CSINK_REC_EXECED, false);
	write_outside(224, 1000, 10 * MS, CSINK_REC_EXECED, false);
	write_outside(226, 1000, 10 * MS, CSINK_REC_EXITED, true);
	write_outside(227, 1000, 7 * MS, CSINK_REC_EXECED, true);
	p = collect(&outside);
	is_num(sum(p, "task-clock", NULL, NULL), 134 * MS, "not followed: all time is there, once");
	is_num(sum(p, "task-clock", "pid", "221"), 60 * MS,
	       "not followed, between two others: the process has its time");
	is_num(self(p, "task-clock", "[not sampled: brief]"), 2 * MS,
	       "after an exec, a program without samples has what is left");
	is_num(self(p, "task-clock", "[not followed: other]"), (20 + 20 + 2 + 10 + 7) * MS,
	       "not followed: sampled or not, the program has its own time");
	is_num(self(p, "task-clock", "[not followed: last]"), 3 * MS, "not followed: what it became has the rest");
	is_num(self(p, "samples", "[not followed: other]"), 0, "not followed: it has no samples");
	is_str(csink_profile_fact(p, CSINK_FACT_UNPROFILED, 0), "other (not followed) (5 times)",
	       "not followed: the program is named, once for each process");
	is_str(csink_profile_fact(p, CSINK_FACT_PROCESSES, 0), "5",
	       "processes: those in the profile, with and without samples of their own");
	is_str(csink_profile_fact(p, CSINK_FACT_THREADS, 0), "6", "threads: likewise");
	csink_profile_free(p);
	end_directory();
}

/*
 * The host took CPU time away, in which task-clock goes on: the kernel accounted 50 ms, 10 of them the library's. What
 * is from outside weighs 40 ms in all, whichever way it was sampled.
 */
static void test_stolen(void)
{
	struct csink_outside_process processes[] = {
		{.pid = 231, .comm = "prog", .cpu_ns = 11 * MS, .has_cpu = 1},
		{.pid = 232, .comm = "still", .cpu_ns = 20 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 233, .comm = "still", .cpu_ns = 30 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 234, .comm = "brief", .cpu_ns = 30 * MS, .has_cpu = 1, .is_sampled = 1, .is_unseen = 1},
	};
	struct csink_outside outside = {.user_ns = 50 * MS, .has_rusage = 1, .processes = processes, .nr_processes = 4};
	uint64_t weight = 10 * MS;
	struct csink_profile *p;
	struct record r;

	new_directory();
	write_inside(231, CSINK_REC_EXITED, 10, weight);
	write_outside(232, 1000, 20 * MS, CSINK_REC_EXITED, false);
	write_outside(233, 1000, 30 * MS, CSINK_REC_EXITED, false);
	r = outside_record(234, 1000, weight);
	r.header->events[0].flags |= CSINK_EVENT_BY_CPU;
	record_row(&r, record_thread(&r, 234, "brief"), NULL, 0x401008, 1, &weight);
	record_write(&r, directory, "234.0.rec");
	free(r.bytes);
	p = collect(&outside);
	is_num(sum(p, "task-clock", NULL, NULL), 50 * MS, "stolen time: all rows are what the kernel accounted");
	is_num(sum(p, "task-clock", "pid", "231"), 10 * MS, "stolen time: the library has its own");
	is_num(sum(p, "task-clock", "pid", "232"), 10 * MS, "stolen time: what is from outside has its share");
	is_num(sum(p, "task-clock", "pid", "234"), 15 * MS, "stolen time: samples of CPUs, too");
	csink_profile_free(p);
	processes[0].is_unwaited = 1;
	p = collect(&outside);
	is_num(sum(p, "task-clock", "pid", "232"), 20 * MS, "a process that no other waited for: the sum is not known");
	csink_profile_free(p);
	end_directory();

	new_directory();
	write_outside(232, 1000, 20 * MS, CSINK_REC_EXITED, false);
	write_outside(233, 1000, 30 * MS, CSINK_REC_EXITED, false);
	processes[1].cpu_ns = 40 * MS;
	processes[2].cpu_ns = 10 * MS;
	outside = (struct csink_outside){
		.user_ns = 45 * MS, .has_rusage = 1, .processes = processes + 1, .nr_processes = 2};
	p = collect(&outside);
	is_num(sum(p, "task-clock", "pid", "232"), 36 * MS,
	       "stolen time: a process has its share of what it is counted");
	is_num(sum(p, "task-clock", "pid", "233"), 9 * MS, "stolen time: so has one with too many samples");
	csink_profile_free(p);
	end_directory();
}

/*
 * The kernel counted each thread. From outside: one of two threads was sampled; samples of a process together weigh
 * more than it used. By the library: threads whose end it did not see, while the process's clock went on.
 */
static void test_threads(void)
{
	struct csink_outside_process processes[] = {
		{.pid = 204, .comm = "still", .cpu_ns = 40 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 206, .comm = "still", .cpu_ns = 10 * MS, .has_cpu = 1, .is_sampled = 1},
		{.pid = 207, .comm = "prog", .cpu_ns = 40 * MS, .has_cpu = 1},
	};
	struct csink_outside_thread threads[] = {{208, 1, 5},        {207, 209, 12 * MS}, {207, 207, 20 * MS},
						 {204, 205, 9 * MS}, {204, 204, 23 * MS}, {206, 206, 10 * MS},
						 {207, 209, 8 * MS}, {204, 210, 8 * MS}};
	struct csink_outside outside = {.user_ns = 100 * MS,
					.has_rusage = 1,
					.processes = processes,
					.nr_processes = 3,
					.threads = threads,
					.nr_threads = CSINK_ARRAY_SIZE(threads)};
	uint64_t weight = 20 * MS, half = 10 * MS;
	struct csink_rec_thread *thread;
	struct csink_profile *p;
	struct record r;

	new_directory();
	r = outside_record(204, 1000, weight);
	thread = record_thread(&r, 204, "still");
	record_row(&r, thread, NULL, 0x401008, 10, &weight);
	record_thread(&r, 205, "still");
	record_write(&r, directory, "204.0.rec");
	free(r.bytes);
	r = outside_record(206, 1000, weight);
	record_row(&r, record_thread(&r, 206, "still"), NULL, 0x401008, 10, &weight);
	record_write(&r, directory, "206.0.rec");
	free(r.bytes);
	r = record_new(8);
	r.header->pid = 207;
	r.header->state = CSINK_REC_LIVE;
	r.header->engine = CSINK_ENGINE_SIGNAL;
	r.header->cpu_end_ns = 50 * MS;
	record_module(&r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	for (int32_t tid = 207; tid < 211; tid += 2) {
		thread = record_thread(&r, tid, "prog");
		thread->nr_samples = 10;
		thread->totals[0] = half;
		record_row(&r, thread, NULL, tid == 207 ? 0x401020 : 0x401040, 10, &half);
	}
	record_write(&r, directory, "207.0.rec");
	free(r.bytes);
	p = collect(&outside);

	is_num(sum(p, "task-clock", NULL, NULL), 100 * MS, "threads: all time is there, once");
	is_num(self(p, "task-clock", "[not sampled: still]"), 15 * MS,
	       "threads: what the sampled one lacks is its own, and a sample's weight of the other one's time");
	is_num(sum(p, "task-clock", "pid", "206"), 10 * MS, "threads: samples weigh no more than their process used");
	is_num(sum(p, "task-clock", "pid", "207"), 50 * MS,
	       "threads: with what the process's clock has, and no event counted");
	is_num(sum(p, "task-clock", "tid", "209"), 25 * MS,
	       "threads: the library saw no end: what the kernel counted, and a share of the switching");
	is_num(sum(p, "task-clock", "pseudo", "not sampled"), 15 * MS, "threads: nothing else is [not sampled]");
	csink_profile_free(p);
	end_directory();
}

/* A run directory whose launcher has been killed. */
static void test_outside_left(void)
{
	uint64_t weight = 20 * MS;
	struct csink_rec_thread *thread;
	struct csink_profile *p;
	struct record r;

	new_directory();
	r = outside_record(200, 1000, weight);
	thread = record_thread(&r, 200, "still");
	thread->nr_samples = 10;
	record_row(&r, thread, NULL, 0x401008, 10, &weight);
	record_write(&r, directory, "200.0.rec");
	free(r.bytes);
	p = collect(NULL);
	is_num(sum(p, "task-clock", NULL, NULL), 20 * MS,
	       "samples from outside, of which the launcher has written no more: they are the profile");
	csink_profile_free(p);
	end_directory();
}

int main(void)
{
	test_one();
	test_hidden_leaf();
	test_files();
	test_languages();
	test_long_tables();
	test_outside();
	test_uncounted();
	test_unseen();
	test_not_followed();
	test_stolen();
	test_threads();
	test_outside_left();
	test_tree();
	test_nothing_injected();
	test_events();
	test_epochs();
	test_damaged();
	test_columns();
	return done();
}
