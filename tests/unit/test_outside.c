/* What is known from outside: a table fed with records, and a real tree of processes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/session/outside.h"
#include "launcher/session/process_table.h"
#include "tests/unit/kernel.h"
#include "tests/unit/tap.h"

/* ---- the table ---- */

static uint64_t at_ns = 1000;

static void feed(struct csink_process_table *table, union csink_process_record *record, uint32_t type, size_t size)
{
	record->head.type = type;
	record->head.size = (uint16_t)(size + sizeof(at_ns));
	at_ns += 10;
	memcpy(record->bytes + size, &at_ns, sizeof(at_ns));
	csink_process_table_feed(table, record);
}

static void task(struct csink_process_table *table, uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid,
		 uint32_t ptid)
{
	union csink_process_record record = {.task = {.pid = pid, .ppid = ppid, .tid = tid, .ptid = ptid}};

	feed(table, &record, type, sizeof(record.task));
}

static void comm(struct csink_process_table *table, uint32_t pid, uint32_t tid, const char *name)
{
	union csink_process_record record = {.comm = {.pid = pid, .tid = tid}};

	strcpy(record.comm.comm, name);
	feed(table, &record, PERF_RECORD_COMM, sizeof(record.comm) + 16);
}

static void count(struct csink_process_table *table, uint32_t pid, uint32_t tid, uint64_t value)
{
	union csink_process_record record = {.read = {.pid = pid, .tid = tid, .value = value}};

	feed(table, &record, PERF_RECORD_READ, sizeof(record.read));
}

/* Pids that no kernel gives. */
enum { COMMAND = 900000001, CHILD, THREAD, LATER };

static void test_table(void)
{
	struct csink_process_tree_result result;
	struct csink_process_table table;

	csink_process_table_init(&table, 2);
	comm(&table, COMMAND, COMMAND, "make");
	task(&table, PERF_RECORD_FORK, CHILD, COMMAND, CHILD, COMMAND);
	comm(&table, CHILD, CHILD, "cc1");
	task(&table, PERF_RECORD_FORK, CHILD, CHILD, THREAD, CHILD);
	comm(&table, CHILD, THREAD, "worker");
	task(&table, PERF_RECORD_EXIT, CHILD, COMMAND, THREAD, COMMAND);
	count(&table, CHILD, THREAD, 5);
	count(&table, CHILD, THREAD, 6);
	task(&table, PERF_RECORD_EXIT, CHILD, COMMAND, CHILD, COMMAND);
	count(&table, CHILD, CHILD, 100);
	count(&table, CHILD, CHILD, 0);
	/* The pid is given out again. */
	task(&table, PERF_RECORD_FORK, CHILD, COMMAND, CHILD, COMMAND);
	task(&table, PERF_RECORD_EXIT, CHILD, COMMAND, CHILD, COMMAND);
	count(&table, CHILD, CHILD, 7);
	task(&table, PERF_RECORD_EXIT, COMMAND, 4242, COMMAND, 4242);
	count(&table, COMMAND, COMMAND, 40);
	count(&table, COMMAND, COMMAND, 2);
	is_num(csink_process_table_finish(&table, &result), 0, "table: the results are computed");
	is_num(result.nr_processes, 3, "table: three processes, although two had one pid");
	is_str(result.processes[0].comm, "make", "table: the command's name");
	is_num(result.processes[0].ppid, 4242, "table: a process's parent, known at its end");
	is_num((long long)result.processes[0].cpu_ns, 42, "table: a process's CPU time from all events");
	ok(result.processes[0].has_cpu, "table: a process's CPU time is marked as complete");
	is_str(result.processes[1].comm, "cc1", "table: a thread's name is not the process's");
	is_num((long long)result.processes[1].cpu_ns, 111, "table: CPU time of all threads");
	is_str(result.processes[2].comm, "make", "table: a child that execs nothing has its parent's name");
	ok(!result.processes[2].has_cpu, "table: a count that is missing is not taken for 0");
	is_num(result.nr_running, 0, "table: no process is still running");
	/* Of the processes that had one PID it is not known whose thread a recording means. */
	is_num(result.nr_threads, 2, "table: counts of threads, of the process that alone had its PID");
	is_num(result.threads[0].tid, COMMAND, "table: a thread's TID");
	is_num((long long)(result.threads[0].cpu_ns + result.threads[1].cpu_ns), 42, "table: a thread's counts");
	free(result.processes);
	free(result.threads);
	csink_process_table_free(&table);
}

/* Who waits for a process is what wait4(2)'s times depend on: its own parent, or a process outside the tree. */
static void test_unwaited(void)
{
	enum { DAEMON = LATER, GRANDCHILD };
	struct csink_process_tree_result result;
	struct csink_process_table table;

	csink_process_table_init(&table, 1);
	comm(&table, COMMAND, COMMAND, "sh");
	task(&table, PERF_RECORD_FORK, CHILD, COMMAND, CHILD, COMMAND);
	task(&table, PERF_RECORD_FORK, DAEMON, CHILD, DAEMON, CHILD);
	task(&table, PERF_RECORD_FORK, GRANDCHILD, DAEMON, GRANDCHILD, DAEMON);
	task(&table, PERF_RECORD_EXIT, GRANDCHILD, DAEMON, GRANDCHILD, DAEMON);
	task(&table, PERF_RECORD_EXIT, CHILD, COMMAND, CHILD, COMMAND);
	task(&table, PERF_RECORD_EXIT, DAEMON, 1, DAEMON, 1);
	task(&table, PERF_RECORD_EXIT, COMMAND, 4242, COMMAND, 4242);
	is_num(csink_process_table_finish(&table, &result), 0, "unwaited: the results are computed");
	ok(!result.processes[0].is_unwaited, "unwaited: the launcher waits for the command");
	ok(!result.processes[1].is_unwaited, "unwaited: its parent waited for a child");
	ok(result.processes[2].is_unwaited, "unwaited: no process of the tree waited for one whose parent had ended");
	ok(result.processes[3].is_unwaited, "unwaited: nor do the command's times have what that one waited for");
	free(result.processes);
	free(result.threads);
	csink_process_table_free(&table);
}

static void test_many(void)
{
	struct csink_process_tree_result result;
	struct csink_process_table table;
	uint64_t sum = 0;
	int complete = 0;

	csink_process_table_init(&table, 1);
	for (uint32_t i = 0; i < 20000; i++)
		task(&table, PERF_RECORD_FORK, LATER + i, COMMAND, LATER + i, COMMAND);
	for (uint32_t i = 0; i < 20000; i++) {
		task(&table, PERF_RECORD_EXIT, LATER + i, COMMAND, LATER + i, COMMAND);
		count(&table, LATER + i, LATER + i, i);
	}
	csink_process_table_finish(&table, &result);
	for (uint32_t i = 0; i < result.nr_processes; i++) {
		sum += result.processes[i].cpu_ns;
		complete += result.processes[i].has_cpu;
	}
	is_num(result.nr_processes, 20000, "many: the number of processes");
	is_num(complete, 20000, "many: all processes have their CPU time");
	is_num((long long)sum, 19999LL * 20000 / 2, "many: each count belongs to its own process");
	free(result.processes);
	free(result.threads);
	csink_process_table_free(&table);
}

/* ---- a real tree ---- */

static void burn(double ms)
{
	struct timespec ts;
	double until;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	until = (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6 + ms;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while ((double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6 < until);
}

/* What the command does, after its exec: `test_outside tree`. */
static int be_tree(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid) {
			burn(20 * (i + 1));
			if (!fork())
				_exit(0);
			wait(NULL);
			_exit(0);
		}
	}
	burn(10);
	while (wait(NULL) > 0)
		;
	return 0;
}

/* Leaves a child behind that lives until its stdin ends: `test_outside daemon`. */
static int be_daemon(void)
{
	char c;

	if (!fork()) {
		if (read(STDIN_FILENO, &c, 1) < 0)
			_exit(1);
		_exit(0);
	}
	return 0;
}

static atomic_int nr_together;

static void *end_together(void *arg)
{
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET(*(int *)arg, &own);
	sched_setaffinity(0, sizeof(own), &own); /* refused: both where they are */
	atomic_fetch_add(&nr_together, 1);
	for (long i = 0; i < 10000000 && atomic_load(&nr_together) < 2; i++)
		if (i % 100000 == 99999)
			sched_yield();
	return NULL;
}

/* Pairs of threads, on two CPUs, that end at one moment: `test_outside together`. */
static int be_together(void)
{
	int cpus[2] = {0, 1};

	for (int i = 0; i < 100; i++) {
		pthread_t threads[2];

		nr_together = 0;
		for (int k = 0; k < 2; k++)
			if (pthread_create(&threads[k], NULL, end_together, &cpus[k]))
				return 1;
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
	}
	return 0;
}

static pid_t start(const char *what, int stdin_fd)
{
	pid_t pid = fork();

	if (!pid) {
		if (stdin_fd >= 0)
			dup2(stdin_fd, STDIN_FILENO);
		execl("/proc/self/exe", "test_outside", what, NULL);
		_exit(127);
	}
	return pid;
}

static uint32_t parse_events(struct csink_event_spec *specs, const char *list)
{
	struct csink_event_error err;
	int nr = csink_events_parse(list, specs, CSINK_MAX_EVENTS, &err);

	return nr > 0 ? (uint32_t)nr : 0;
}

/* In ticks, of all CPUs: what the host of this machine took from it. */
static unsigned long read_stolen(void)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned long stolen = 0;

	if (f && fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %lu", &stolen) != 1)
		stolen = 0;
	if (f)
		fclose(f);
	return stolen;
}

static pid_t watch_tree(struct csink_outside *out, struct rusage *usage)
{
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_outside_watch watch;
	int status;
	pid_t pid;

	csink_outside_open(&watch, specs,
			   parse_events(specs, "task-clock,page-faults,{context-switches,cpu-migrations}"));
	pid = start("tree", -1);
	wait4(pid, &status, 0, usage);
	csink_outside_finish(&watch, usage, pid, 0, out);
	csink_outside_close(&watch);
	return pid;
}

static bool clocks_agree(const struct csink_outside *out)
{
	uint64_t rusage_ns = out->user_ns + out->sys_ns;

	return !out->has_counts ||
	       (out->counts[0].value > rusage_ns * 9 / 10 && out->counts[0].value < rusage_ns * 11 / 10);
}

/* From Linux 5.13 on, before some version until 6.18, the kernel does not write what a process used when it ends. */
static bool may_lack_ends(void)
{
	return !kernel_before(5, 13) && kernel_before(6, 18);
}

static void test_tree(void)
{
	struct csink_outside out = {0};
	uint64_t sum = 0, rusage_ns;
	unsigned long stolen;
	struct rusage usage;
	int complete = 0, tries = 0;
	bool lacks_ends;
	pid_t pid;

	/* The event's clock counts time that the host took while a process ran, wait4() does not: once more then. */
	do {
		csink_outside_free(&out);
		out = (struct csink_outside){0};
		stolen = read_stolen();
		pid = watch_tree(&out, &usage);
	} while (!clocks_agree(&out) && read_stolen() != stolen && ++tries < 50);
	if (!out.has_counts) {
		ok(out.counts_reason[0], "tree: a refusal has its reason");
		skip("tree: a real one", out.counts_reason);
		return;
	}
	/* Some count in the kernel only, which is hidden from some users: then a note says so. */
	is_num(out.nr_counts + out.nr_notes, 4, "tree: each event was counted, or its refusal noted");
	is_str(out.counts[0].name, "task-clock", "tree: the clock's name");
	is_str(out.counts[0].unit, "nanoseconds", "tree: the clock's unit");
	for (uint32_t i = 0; i < out.nr_processes; i++) {
		sum += out.processes[i].cpu_ns;
		complete += out.processes[i].has_cpu;
	}
	lacks_ends = !complete && may_lack_ends();
	is_num(out.nr_processes, 7, "tree: the run has seven processes");
	is_num(complete, lacks_ends ? 0 : 7, "tree: all processes have their CPU time, where the kernel counts it");
	is_num(out.processes[0].pid, pid, "tree: the command is the first");
	is_num(out.processes[0].ppid, getpid(), "tree: the command's parent is this process");
	is_num(out.processes[1].ppid, pid, "tree: the command is the second process's parent");
	/* Counters of the same tree, read in two ways. */
	ok(lacks_ends || (sum <= out.counts[0].value && out.counts[0].value - sum < out.counts[0].value / 100),
	   "tree: the processes' times (%llu) add up to the total (%llu)", (unsigned long long)sum,
	   (unsigned long long)out.counts[0].value);
	rusage_ns = out.user_ns + out.sys_ns;
	ok(clocks_agree(&out), "tree: the total is within 10 %% of wait4's CPU time (%llu)",
	   (unsigned long long)rusage_ns);
	ok(out.counts[1].value > 100 && out.counts[1].value < (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt,
	   "tree: page faults (%llu) are fewer than wait4's (%ld), which has those of the kernel",
	   (unsigned long long)out.counts[1].value, usage.ru_minflt + usage.ru_majflt);
	ok(out.nr_notes == 0 || geteuid() != 0, "tree: for root there are no notes");
	csink_outside_free(&out);
}

/* One command: is it seen, and with its CPU time? */
static void watch_once(const char *name, int nr_yields, int *nr, int *incomplete)
{
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_outside out = {0};
	struct csink_outside_watch watch;
	pid_t pid;

	csink_outside_open(&watch, specs, parse_events(specs, "task-clock"));
	pid = start(name, -1);
	for (int i = 0; i < nr_yields; i++)
		sched_yield();
	waitpid(pid, NULL, 0);
	csink_outside_finish(&watch, NULL, pid, 0, &out);
	*nr += out.nr_processes == 1;
	*incomplete += out.nr_processes == 1 && !out.processes[0].has_cpu;
	csink_outside_close(&watch);
	csink_outside_free(&out);
}

/* However often launcher and command switch to each other, the command's own count is there. */
static void test_switches(void)
{
	int incomplete = 0, nr = 0;
	cpu_set_t one, all;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &one);
			break;
		}
	}
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 50; i++)
		watch_once("nothing", 20, &nr, &incomplete);
	sched_setaffinity(0, sizeof(all), &all);
	if (!nr) {
		skip("switches: between launcher and command", "the kernel gives no records here");
		return;
	}
	is_num(nr, 50, "switches: the command is always seen");
	is_num(incomplete, may_lack_ends() && incomplete ? nr : 0,
	       "switches: always with its CPU time, where the kernel counts it");
}

/* Where tasks end on two CPUs at one moment, nothing of what the kernel writes of them is lost. */
static void test_together(void)
{
	int incomplete = 0, nr = 0;

	for (int i = 0; i < 10; i++)
		watch_once("together", 0, &nr, &incomplete);
	if (!nr) {
		skip("together: tasks that end on two CPUs", "the kernel gives no records here");
		return;
	}
	is_num(nr, 10, "together: the command is always seen");
	is_num(incomplete, may_lack_ends() && incomplete ? nr : 0,
	       "together: always with its CPU time, where the kernel counts it");
}

static void test_running(void)
{
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_outside out = {0};
	struct csink_outside_watch watch;
	int fds[2], running = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return;
	csink_outside_open(&watch, specs, parse_events(specs, "task-clock"));
	pid = start("daemon", fds[0]);
	waitpid(pid, NULL, 0);
	csink_outside_finish(&watch, NULL, pid, 0, &out);
	csink_outside_close(&watch);
	if (!out.processes) {
		skip("running: what outlives the command", "the kernel gives no records here");
	} else {
		for (uint32_t i = 0; i < out.nr_processes; i++)
			running += out.processes[i].still_running && out.processes[i].pid != pid &&
				   out.processes[i].has_cpu;
		is_num(running, 1, "running: the process that outlives the command has its CPU time so far");
		ok(!out.processes[0].still_running, "running: the command is not marked as running");
		ok(!out.has_rusage, "running: without rusage, has_rusage is not set");
	}
	csink_outside_free(&out);
	close(fds[0]);
	close(fds[1]);
}

/* What start() runs. Ends at once: a sanitizer's last check forks. */
static void be(const char *what)
{
	if (!strcmp(what, "tree"))
		_exit(be_tree());
	if (!strcmp(what, "daemon"))
		_exit(be_daemon());
	if (!strcmp(what, "together"))
		_exit(be_together());
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		be(argv[1]);
	test_table();
	test_unwaited();
	test_many();
	test_tree();
	test_switches();
	test_together();
	test_running();
	return done();
}
