/* From run directories to profiles: several processes, images, threads and epochs are added up; no time is lost. */
#include <errno.h>
#include <inttypes.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "tests/unit/collected.h"

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
	r.header->cpu_end_ns = 30 * MS;
	thread = record_thread(&r, 100, "prog");
	cleanup = record_code(&r, CSINK_CODE_PYTHON_LOCATIONS, "__init__", "__init__", NULL, 0);
	frames[1] = record_code_frame(&r, cleanup, 4);
	record_row(&r, thread, record_chain(&r, 5000, 2, frames), frames[1], 10, &weight);
	record_row(&r, thread, NULL, frames[1], 10, &weight);
	record_row(&r, thread, NULL, CSINK_LEAF_IN_EXEC, 10, &weight); /* what only samples from outside have */
	record_write(&r, directory, "100.0.rec");
	p = collect(NULL);
	is_num(sum(p, "task-clock", NULL, NULL), 30 * MS, "the time of leaves that are not shown is kept");
	is_num(self(p, "task-clock", "execve"), 0,
	       "a leaf that means an exec from outside means none in a recording of the library");
	for (uint32_t i = 0; i < p->nr_stack_ids; i++)
		nr_bad += p->stack_ids[i] >= p->nr_locations;
	is_num(nr_bad, 0, "all locations of stacks are in the profile");
	stack = &p->stacks[p->samples[0].stack];
	is_num(stack->nr, 2, "the stack has [anon] in place of its leaf, and lacks the caller that is not shown");
	csink_profile_free(p);
	free(r.bytes);
	end_directory();
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
int main(void)
{
	test_one();
	test_hidden_leaf();
	test_tree();
	test_nothing_injected();
	test_events();
	test_epochs();
	test_damaged();
	test_columns();
	return done();
}
