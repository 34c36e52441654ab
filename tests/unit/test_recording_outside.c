/* From run directories to profiles: recordings of what was sampled from outside, by its own events and by CPUs'. */
#include <inttypes.h>
#include <stdio.h>

#include "include/internal/base.h"
#include "launcher/profile/facts.h"
#include "tests/unit/collected.h"

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
	uint64_t weight = 20 * MS, exec = 5 * MS;
	struct csink_rec_thread *thread;
	struct csink_profile *p;
	struct record r;

	new_directory();
	r = outside_record(200, 1000, weight);
	thread = record_thread(&r, 200, "still");
	thread->nr_samples = 10;
	record_row(&r, thread, NULL, 0x401008, 10, &weight);
	record_row(&r, thread, NULL, CSINK_LEAF_IN_EXEC, 3, &exec);
	record_write(&r, directory, "200.0.rec");
	free(r.bytes);
	p = collect(NULL);
	is_num(sum(p, "task-clock", NULL, NULL), 25 * MS,
	       "samples from outside, of which the launcher has written no more: they are the profile");
	is_num(self(p, "task-clock", "execve"), 5 * MS, "those in an exec are execve");
	csink_profile_free(p);
	end_directory();
}
int main(void)
{
	test_outside();
	test_uncounted();
	test_unseen();
	test_not_followed();
	test_stolen();
	test_threads();
	test_outside_left();
	return done();
}
