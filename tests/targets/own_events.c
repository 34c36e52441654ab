/*
 * own_events: counters that the program itself opened, in what a profiler does at a failed exec, a spawn, a pause and a
 * thread's end. Prints for each case what share of the CPU time the counters have: "none", "some" or "all"; the same
 * with and without a profiler.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <countersink.h>

#define SPIN_NS 20000000ULL

enum { NONE_ENABLED, ENABLED, INHERITED, NR };

static int fds[NR];

/* No library sees it, as with code that makes its system calls itself. */
static int raw_open(struct perf_event_attr *attr, pid_t tid)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = -1;
	register long r8 __asm__("r8") = PERF_FLAG_FD_CLOEXEC;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(SYS_perf_event_open), "D"(attr), "S"((long)tid), "d"(-1L), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return (int)ret;
#else
	return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
#endif
}

static int open_clock(int disabled, int inherit, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.disabled = disabled != 0,
		.inherit = inherit != 0,
		.exclude_kernel = 1,
	};

	return raw_open(&attr, tid);
}

static uint64_t count(int fd)
{
	uint64_t value = 0;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		return UINT64_MAX;
	return value;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void spin(void)
{
	uint64_t end = cpu_ns() + SPIN_NS;

	while (cpu_ns() < end)
		;
}

static const char *share(uint64_t counted)
{
	return counted == 0 ? "none" : counted < SPIN_NS * 7 / 10 ? "some" : "all";
}

/* Do it, then run for a while: what has been counted since it was done? */
static void try_case(const char *name, void (*act)(void))
{
	uint64_t before[NR];

	act();
	for (int i = 0; i < NR; i++)
		before[i] = count(fds[i]);
	spin();
	printf("%s: disabled %s, enabled %s, inherited %s\n", name, share(count(fds[NONE_ENABLED]) - before[0]),
	       share(count(fds[ENABLED]) - before[1]), share(count(fds[INHERITED]) - before[2]));
	fflush(stdout);
}

static char *const nothing[] = {(char *)"/nonexistent", NULL};
static char *const just_true[] = {(char *)"true", NULL};

static void do_nothing(void)
{
}

static void fail_execve(void)
{
	execve(nothing[0], nothing, nothing);
}

static void fail_execveat(void)
{
	syscall(SYS_execveat, AT_FDCWD, nothing[0], nothing, nothing, 0);
}

static void fail_execvp(void)
{
	execvp("no-such-program-anywhere", nothing);
}

static void fail_spawn(void)
{
	pid_t pid;

	posix_spawn(&pid, nothing[0], NULL, NULL, nothing, nothing);
}

static void spawn_true(void)
{
	pid_t pid;

	if (!posix_spawnp(&pid, "true", NULL, NULL, just_true, environ))
		waitpid(pid, NULL, 0);
}

static void vfork_and_fail(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execve(nothing[0], nothing, nothing);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

static void fork_and_fail(void)
{
	pid_t pid = fork();

	if (!pid) {
		execve(nothing[0], nothing, nothing);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void pause_and_resume(void)
{
	countersink_pause();
	spin();
	countersink_resume();
	countersink_phase_begin("a phase");
	countersink_phase_end();
}

static void only_pause(void)
{
	countersink_pause();
}

/* What a thread opened on another one goes on after its end. */
static pid_t main_tid;
static int opened_by_thread[2];

static void *open_on_main(void *arg)
{
	(void)arg;
	opened_by_thread[0] = open_clock(1, 0, main_tid);
	opened_by_thread[1] = open_clock(0, 0, main_tid);
	return NULL;
}

static void try_thread(void)
{
	pthread_t thread;
	uint64_t before;

	main_tid = (pid_t)syscall(SYS_gettid);
	pthread_create(&thread, NULL, open_on_main, NULL);
	pthread_join(thread, NULL);
	before = count(opened_by_thread[1]);
	spin();
	printf("opened by a thread that has ended: disabled %s, enabled %s\n", share(count(opened_by_thread[0])),
	       share(count(opened_by_thread[1]) - before));
	fflush(stdout);
}

/* After the library's own end. */
__attribute__((destructor)) static void at_the_end(void)
{
	if (fds[0])
		try_case("after exit", do_nothing);
}

int main(void)
{
	fds[NONE_ENABLED] = open_clock(1, 0, 0);
	fds[ENABLED] = open_clock(0, 0, 0);
	fds[INHERITED] = open_clock(0, 1, 0);
	if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0) {
		printf("no counters\n");
		_exit(0);
	}
	try_case("nothing done", do_nothing);
	try_case("execve", fail_execve);
	try_case("execveat by syscall", fail_execveat);
	try_case("execvp", fail_execvp);
	try_case("posix_spawn fails", fail_spawn);
	try_case("posix_spawn", spawn_true);
	try_case("vfork, execve", vfork_and_fail);
	try_case("fork, execve", fork_and_fail);
	try_case("pause and resume", pause_and_resume);
	try_case("paused", only_pause);
	countersink_resume();
	try_thread();
	return 0;
}
