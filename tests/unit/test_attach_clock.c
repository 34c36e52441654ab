/*
 * The kernel's CPU time of processes that are not ours to measure from inside: what attach reads of them lies between
 * their clocks as read right before and right after.
 */
#include "launcher/attach/attach_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "tests/unit/tap.h"

#define MS 1000000ULL
#define TICKS_NS (2 * (long long)CSINK_NS_PER_S / sysconf(_SC_CLK_TCK)) /* of user and system time, cut off */

/* ---- the target: a process that does what it is asked for, and answers */

static int ask[2], answer[2], hold[2];

struct reply {
	int32_t id;
	uint64_t children_ns, thread_ns;
};

static void burn(clockid_t clock, uint64_t ns)
{
	uint64_t end = csink_clock_ns(clock) + ns;

	while (csink_clock_ns(clock) < end)
		;
}

static void *burn_in_thread(void *arg)
{
	burn(CLOCK_THREAD_CPUTIME_ID, *(const uint64_t *)arg);
	return NULL;
}

static uint64_t children_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * CSINK_NS_PER_S +
	       ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

static void many_threads(void)
{
	static const uint64_t ns = MS;
	pthread_t threads[20];

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, burn_in_thread, (void *)&ns);
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
}

/* Each of them starts another one. */
static void brief_children(void)
{
	for (uint32_t i = 0; i < 5; i++) {
		if (fork())
			continue;
		if (!fork()) {
			burn(CLOCK_PROCESS_CPUTIME_ID, 10 * MS);
			_exit(0);
		}
		burn(CLOCK_PROCESS_CPUTIME_ID, 10 * MS);
		wait(NULL);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
}

/* Until the process sleeps, in read(2): then its clock stands still. Not longer than ten seconds. */
static void wait_until_it_sleeps(pid_t pid)
{
	uint64_t deadline_ns = csink_clock_ns(CLOCK_MONOTONIC) + 10 * CSINK_NS_PER_S;
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'S' && csink_clock_ns(CLOCK_MONOTONIC) < deadline_ns) {
		FILE *file = fopen(path, "re");

		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		sched_yield();
	}
}

/* One that has run, and waits. */
static int32_t child_that_waits(void)
{
	int ready[2];
	int32_t pid;
	char byte;

	if (pipe(hold) || pipe(ready))
		exit(1);
	pid = fork();
	if (!pid) {
		close(hold[1]);
		burn(CLOCK_PROCESS_CPUTIME_ID, 30 * MS);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		(void)!read(hold[0], &byte, 1);
		burn(CLOCK_PROCESS_CPUTIME_ID, 30 * MS);
		_exit(0);
	}
	(void)!read(ready[0], &byte, 1);
	wait_until_it_sleeps(pid);
	return pid;
}

static void serve(void)
{
	char what, fds[4][12], *argv[] = {"test_attach_clock", fds[0], fds[1], fds[2], fds[3], NULL};

	while (read(ask[0], &what, 1) == 1) {
		struct reply reply = {0};

		if (what == 'b')
			burn(CLOCK_PROCESS_CPUTIME_ID, 30 * MS);
		else if (what == 't')
			many_threads();
		else if (what == 'c')
			brief_children();
		else if (what == 'w')
			reply.id = child_that_waits();
		else if (what == 'n' || what == 'i') {
			signal(SIGCHLD, what == 'i' ? SIG_IGN : SIG_DFL);
			reply.id = fork();
			if (!reply.id)
				_exit(0);
			wait(NULL);
		} else if (what == 'e') {
			close(hold[1]);
			wait(NULL);
		} else if (what == 'x') {
			for (int i = 0; i < 4; i++)
				snprintf(fds[i], sizeof(fds[i]), "%d", i < 2 ? ask[i] : answer[i - 2]);
			execv("/proc/self/exe", argv);
		}
		reply.children_ns = children_ns();
		if (write(answer[1], &reply, sizeof(reply)) != sizeof(reply))
			break;
	}
	_exit(0);
}

static int32_t start(void)
{
	int32_t pid;

	if (pipe(ask) || pipe(answer))
		exit(1);
	pid = fork();
	if (!pid) {
		close(ask[1]);
		serve();
	}
	return pid;
}

static struct reply tell(char what)
{
	struct reply reply = {0};

	if (write(ask[1], &what, 1) != 1 || read(answer[0], &reply, sizeof(reply)) != sizeof(reply))
		exit(1);
	return reply;
}

/* ---- what is read of it */

static struct csink_attach_clock c;
static int32_t target;
static uint64_t base_least, base_most;

static uint64_t clock_of(int32_t pid)
{
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		exit(1);
	return csink_clock_ns(clock);
}

static void begin(void)
{
	memset(&c, 0, sizeof(c));
	c.is_wanted = true;
	csink_attach_clock_begin(&c, 0, -1);
	target = start();
	tell('b');
	base_least = clock_of(target);
	csink_attach_clock_add(&c, target);
	base_most = clock_of(target);
}

/* Beside the target's own time there is that of its children, which /proc has in ticks, and getrusage(2) in us. */
static void check(const struct reply *reply, const char *what)
{
	uint64_t children = reply ? reply->children_ns : 0, most, least = clock_of(target) - base_most + children;
	long long less = children ? TICKS_NS : 0;

	least += reply && reply->id ? clock_of(reply->id) : 0;
	csink_attach_clock_read(&c);
	most = clock_of(target) - base_least + children + (children ? 2000 : 0);
	most += reply && reply->id ? clock_of(reply->id) : 0;
	if (!ok((long long)c.used_ns + less >= (long long)least && c.used_ns <= most, "%s", what))
		fprintf(stderr, "#   got %llu, want %llu (less %lld) to %llu\n", (unsigned long long)c.used_ns,
			(unsigned long long)least, less, (unsigned long long)most);
}

static void end(void)
{
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	csink_attach_clock_free(&c);
	for (int i = 0; i < 2; i++) {
		close(ask[i]);
		close(answer[i]);
	}
}

static void test_process(void)
{
	struct reply reply;

	begin();
	tell('b');
	check(NULL, "a process has the CPU time of its clock since it was attached to");
	tell('t');
	check(NULL, "so it has where threads begin and end between two readings");
	tell('x');
	tell('b');
	check(NULL, "and after an exec");
	reply = tell('c');
	check(&reply, "its children, and theirs, that begin and end between two readings");
	is_num((long long)c.nr_unread, 0, "all of them were waited for by one that is read");
	reply = tell('w');
	csink_attach_clock_add_new(&c, reply.id, target);
	csink_attach_clock_add_new(&c, reply.id, target);
	is_num(c.nr, 2, "a child is known once");
	check(&reply, "a child that waits");
	reply = tell('e');
	check(&reply, "that child has ended, and is not counted twice");
	is_num(c.nr, 1, "nor read any more");
	end();
}

static void test_ends(void)
{
	uint64_t used, gap, resolution = (uint64_t)TICKS_NS * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);

	begin();
	tell('b');
	csink_attach_clock_read(&c);
	used = c.used_ns;
	gap = (uint64_t)csink_attach_clock_gap(&c, used - 7, true);
	is_num((long long)gap, 7, "events lack what is above their count");
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	csink_attach_clock_read(&c);
	is_num((long long)c.used_ns, (long long)used, "a process that the test waits for has what was read of it");
	is_num((long long)c.nr_unread, 1, "that it has ended is counted");
	is_num((long long)csink_attach_clock_gap(&c, used + 1000, true), 7,
	       "what events counted since then takes nothing away");
	c.used_ns += 1003;
	is_num((long long)csink_attach_clock_gap(&c, used + 2000, true), 10, "and later readings add to it");
	is_num((long long)csink_attach_clock_gap(&c, used + 2005, false), 10,
	       "it does not decrease where events may count what is not read");
	is_num((long long)csink_attach_clock_gap(&c, used + 2009, true), 6, "else it does");
	is_num((long long)csink_attach_clock_gap(&c, used + 2015 + resolution, true), 0,
	       "events may be ahead by what is not read yet");
	is_num((long long)csink_attach_clock_gap(&c, used + 2018 + resolution, true), -3 - (long long)resolution,
	       "where it is more, all of it is known to be too much");
	is_num((long long)csink_attach_clock_gap(&c, used + 2020, true), -5, "so is what is left of it later");
	end();
	begin();
	csink_attach_clock_read(&c);
	c.at[0].start_ticks++;
	csink_attach_clock_read(&c);
	is_num(c.nr, 0, "another owner of the PID is not read");
	end();
	begin();
	kill(target, SIGKILL);
	waitid(P_PID, (id_t)target, &(siginfo_t){0}, WEXITED | WNOWAIT);
	check(NULL, "a process that was not waited for yet is read to its end");
	end();
}

/* Nothing of it was ever read. */
static void test_unread_child(void)
{
	struct reply reply;

	begin();
	reply = tell('n');
	csink_attach_clock_add_new(&c, reply.id, target);
	csink_attach_clock_read(&c);
	is_num((long long)c.nr_unsure, 0, "a child that its parent has waited for");
	reply = tell('i');
	csink_attach_clock_add_new(&c, reply.id, target);
	csink_attach_clock_read(&c);
	is_num((long long)c.nr_unsure, 1,
	       "a child of a process that ignores SIGCHLD: nothing is known of its CPU time");
	csink_attach_clock_add_new(&c, reply.id, reply.id);
	csink_attach_clock_read(&c);
	is_num((long long)c.nr_unsure, 2, "nor of the child of a process that is not read");
	is_num((long long)c.nr, 1, "none of them is read any more");
	end();
}

/* Those that wait are not read again and again from /proc. */
static void test_idle(void)
{
	struct reply reply;

	begin();
	reply = tell('w');
	csink_attach_clock_add_new(&c, reply.id, target);
	csink_attach_clock_read(&c);
	for (int32_t pid = 1 << 23; pid < (1 << 23) + 2000; pid++) /* above any that the kernel gives out */
		csink_attach_clock_add_new(&c, pid, target);
	csink_attach_clock_read(&c);
	is_num(c.nr, 2, "2,000 processes that have ended are not read any more");
	csink_attach_clock_add_new(&c, reply.id, target);
	csink_attach_clock_add(&c, target);
	is_num(c.nr, 2, "those that are left are known");
	c.at[1].start_ticks++;
	csink_attach_clock_read(&c);
	is_num(c.nr, 2, "of a child that has not run /proc is not read again");
	c.at[1].cpu_ns--;
	csink_attach_clock_read(&c);
	is_num(c.nr, 1, "of one that has, it is");
	end();
}

static void test_denied(void)
{
	struct reply reply;

	begin();
	c.lacks_children = true;
	reply = tell('c');
	ok(reply.children_ns > 0, "the target waited for children");
	check(NULL, "where children may not be attached to, none are counted");
	end();
}

static void test_self(void)
{
	uint64_t before, after;
	int32_t pid;

	memset(&c, 0, sizeof(c));
	c.is_wanted = true;
	before = children_ns();
	csink_attach_clock_add_self(&c);
	pid = fork();
	if (!pid) {
		burn(CLOCK_PROCESS_CPUTIME_ID, 30 * MS);
		_exit(0);
	}
	csink_attach_clock_add_new(&c, pid, getpid());
	csink_attach_clock_read(&c);
	waitpid(pid, NULL, 0);
	after = children_ns();
	csink_attach_clock_read(&c);
	ok(after > before, "the test waited for a child");
	ok(llabs((long long)(c.used_ns - (after - before))) <= 2000,
	   "a command that we wait for has what wait4(2) has");
	csink_attach_clock_free(&c);
}

static void *thread_that_waits(void *arg)
{
	int *fds = arg;
	struct reply reply = {.id = gettid()};
	char byte;

	while (write(fds[1], &reply, sizeof(reply)) == sizeof(reply) && read(fds[2], &byte, 1) == 1) {
		burn(CLOCK_THREAD_CPUTIME_ID, 30 * MS);
		reply.thread_ns = csink_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	return NULL;
}

static void test_thread(void)
{
	int fds[4];
	struct reply reply;
	pthread_t thread;
	uint64_t before;

	if (pipe(fds) || pipe(fds + 2) || pthread_create(&thread, NULL, thread_that_waits, fds))
		exit(1);
	memset(&c, 0, sizeof(c));
	c.is_wanted = true;
	if (read(fds[0], &reply, sizeof(reply)) != sizeof(reply) || write(fds[3], "b", 1) != 1 ||
	    read(fds[0], &reply, sizeof(reply)) != sizeof(reply))
		exit(1);
	csink_attach_clock_begin(&c, reply.id, -1);
	before = reply.thread_ns;
	burn(CLOCK_THREAD_CPUTIME_ID, 100 * MS);
	if (write(fds[3], "b", 1) != 1 || read(fds[0], &reply, sizeof(reply)) != sizeof(reply))
		exit(1);
	csink_attach_clock_read(&c);
	if (c.is_known)
		ok(c.used_ns > 0 && c.used_ns < reply.thread_ns - before + 50 * MS,
		   "a thread alone has its own time, not that of its process");
	else
		skip("a thread alone", "this kernel has no /proc/TID/schedstat");
	close(fds[3]);
	pthread_join(thread, NULL);
	/* The kernel removes it from /proc a little later. */
	for (uint64_t until = csink_monotonic_ns() + 30 * CSINK_NS_PER_S; c.nr && csink_monotonic_ns() < until;)
		csink_attach_clock_read(&c);
	is_num(c.nr, 0, "it has ended");
	csink_attach_clock_free(&c);
}

static void write_stat(int directory, const char *text)
{
	int fd = openat(directory, "cpu.stat", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		exit(1);
	close(fd);
}

static void write_procs(int directory, int32_t pid)
{
	char text[16];
	int fd = openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	snprintf(text, sizeof(text), "%d", pid);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		exit(1);
	close(fd);
}

/* The kernel's own, which needs no controller: processes that work in it and end, and one that leaves it. */
static void count_in_group(int group)
{
	int32_t pid = 0;
	uint64_t least = 0;

	memset(&c, 0, sizeof(c));
	c.is_wanted = true;
	csink_attach_clock_begin(&c, 0, group);
	for (int i = 0; i < 2; i++) {
		struct rusage usage;

		pid = fork();
		if (!pid) {
			write_procs(group, 0);
			burn(CLOCK_PROCESS_CPUTIME_ID, 30 * MS);
			_exit(0);
		}
		wait4(pid, NULL, 0, &usage);
		least += (uint64_t)(csink_timeval_ns(&usage.ru_utime) + csink_timeval_ns(&usage.ru_stime));
	}
	/* The kernel adds a process's last time to the group after its parent has waited for it. */
	for (uint64_t until = csink_monotonic_ns() + 30 * CSINK_NS_PER_S;
	     c.used_ns < 60 * MS - 2000 && csink_monotonic_ns() < until;)
		csink_attach_clock_read(&c);
	/* They used some before they came into it, and a little when they had ended. */
	ok(c.is_known && c.used_ns <= least + 5 * MS && c.used_ns >= 60 * MS - 2000,
	   "a control group of version 2: %llu ns of %llu", (unsigned long long)c.used_ns, (unsigned long long)least);
	is_num(c.nr, 1, "it goes on when its processes have ended");
	csink_attach_clock_free(&c);
}

static void test_real_cgroup(void)
{
	char root[] = "/tmp/csink-clock.XXXXXX", path[64];
	int group = -1;

	if (!mkdtemp(root))
		exit(1);
	snprintf(path, sizeof(path), "%s/csink-clock.%d", root, (int)getpid());
	if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("none", root, "cgroup2", 0, NULL) && !mkdir(path, 0700))
		group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group >= 0 && !faccessat(group, "cpu.stat", R_OK, 0))
		count_in_group(group);
	else
		skip("a control group of version 2", "none can be made");
	if (group >= 0)
		close(group);
	for (int i = 0; rmdir(path) && errno == EBUSY && i < 3000; i++)
		poll(NULL, 0, 10);
	umount(root);
	rmdir(root);
}

static void test_cgroup(void)
{
	char path[] = "/tmp/csink-clock.XXXXXX";
	int directory = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY) : -1;

	memset(&c, 0, sizeof(c));
	c.is_wanted = true;
	csink_attach_clock_begin(&c, 0, directory);
	csink_attach_clock_read(&c);
	ok(!c.is_known && !csink_attach_clock_gap(&c, 5, true), "a control group of version 1 has no clock");
	write_stat(directory, "usage_usec 1000\nuser_usec 600\nsystem_usec 400\n");
	csink_attach_clock_begin(&c, 0, directory);
	write_stat(directory, "nr_periods 7\nusage_usec 3500\nuser_usec 3000\nsystem_usec 500\n");
	csink_attach_clock_add_new(&c, getpid(), getppid());
	csink_attach_clock_read(&c);
	is_num((long long)c.used_ns, 2500000,
	       "one of version 2 has what it used since then, whatever processes are in it");
	unlinkat(directory, "cpu.stat", 0);
	rmdir(path);
	close(directory);
	csink_attach_clock_free(&c);
}

static void test_unwanted(void)
{
	memset(&c, 0, sizeof(c));
	csink_attach_clock_begin(&c, 0, -1);
	csink_attach_clock_add(&c, getpid());
	csink_attach_clock_add_new(&c, getpid(), getppid());
	csink_attach_clock_add_self(&c);
	csink_attach_clock_read(&c);
	ok(!c.nr && !c.is_known && !csink_attach_clock_gap(&c, 0, true), "nothing is read where it is not asked for");
}

int main(int argc, char **argv)
{
	if (argc == 5) { /* after its exec */
		struct reply reply = {0};

		for (int i = 0; i < 4; i++)
			*(i < 2 ? &ask[i] : &answer[i - 2]) = atoi(argv[i + 1]);
		if (write(answer[1], &reply, sizeof(reply)) == sizeof(reply))
			serve();
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	test_process();
	test_ends();
	test_unread_child();
	test_idle();
	test_denied();
	test_self();
	test_thread();
	test_cgroup();
	test_real_cgroup();
	test_unwanted();
	return done();
}
