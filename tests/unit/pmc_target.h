/* For the tests of PMCs: targets that touch new pages on command, so that page faults show which was counted. */
#ifndef CSINK_TESTS_PMC_TARGET_H
#define CSINK_TESTS_PMC_TARGET_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/pmc.h"
#include "tests/unit/kernel.h"
#include "tests/unit/refuse.h"
#include "tests/unit/tap.h"

#define UNPRIVILEGED_ID 65534
#define HAS_NO_EVENTS 98
#define PAGES 1000
/* faults of starting a thread or a process, and of libc; a sanitizer's own memory comes on top */
#ifdef __SANITIZE_ADDRESS__
#define SLACK 500
#else
#define SLACK 250
#endif
#define EVENT "page-faults:u"

/* ---- targets ---- */

struct target {
	pid_t pid;
	int tell, hear;
};

__attribute__((unused)) static void touch_pages(void)
{
	char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		((volatile char *)pages)[i * 4096] = 1;
	munmap(pages, PAGES * 4096);
}

__attribute__((unused)) static void *touching_thread(void *arg)
{
	touch_pages();
	return arg;
}

static int in, out;

/* A thread and a process that existed before the attach; each gets its commands by a pipe. */
__attribute__((unused)) static void *waiting_thread(void *arg)
{
	char byte;

	while (read(((int *)arg)[0], &byte, 1) == 1) {
		touch_pages();
		if (write(out, &byte, 1) != 1)
			break;
	}
	return NULL;
}

/* t: touch; T: in a new thread; P: in a new process; o: in the old thread; c: in the old child; x: end. */
__attribute__((unused)) static void serve(void)
{
	static int old[2], child[2];
	pthread_t thread;
	char byte;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pipe(old) || pipe(child))
		_exit(1);
	pthread_create(&thread, NULL, waiting_thread, old);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(child[1]);
		waiting_thread(child);
		_exit(0);
	}
	if (write(out, "r", 1) != 1)
		_exit(1);
	while (read(in, &byte, 1) == 1 && byte != 'x') {
		if (byte == 'o' || byte == 'c') {
			if (write(byte == 'o' ? old[1] : child[1], &byte, 1) != 1)
				break;
			continue; /* they answer */
		}
		if (byte == 't')
			touch_pages();
		if (byte == 'T' && !pthread_create(&thread, NULL, touching_thread, NULL))
			pthread_join(thread, NULL);
		if (byte == 'P') {
			pid = fork();
			if (!pid) {
				touch_pages();
				_exit(0);
			}
			waitpid(pid, NULL, 0);
		}
		if (write(out, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

__attribute__((unused)) static void tell(const struct target *target, char what)
{
	char byte = 0;

	if (write(target->tell, &what, 1) != 1 || read(target->hear, &byte, 1) != 1 || byte != what)
		ok(0, "the target answers '%c'", what);
}

__attribute__((unused)) static struct target start_target(void)
{
	int to[2], from[2];
	struct target target;
	char byte;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		abort();
	target.pid = fork();
	if (!target.pid) {
		in = to[0];
		out = from[1];
		close(to[1]);
		close(from[0]);
		serve();
	}
	close(to[0]);
	close(from[1]);
	target.tell = to[1];
	target.hear = from[0];
	if (read(target.hear, &byte, 1) != 1)
		abort();
	return target;
}

__attribute__((unused)) static void end_target(const struct target *target)
{
	close(target->tell);
	close(target->hear);
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
}

/* ---- helpers ---- */

/* What csink_pmc_attach returns without CSINK_PMC_DESCENDANTS: 1 before Linux 5.13, where later threads are not
 * counted. */
__attribute__((unused)) static int one_if_old(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = PERF_ATTR_SIZE_VER0,
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .disabled = 1,
				       .inherit = 1,
				       .inherit_thread = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EINVAL;
}

__attribute__((unused)) static void is_err(int got, int want, const char *name, const char *what)
{
	char reason[400];

	is_num(got, want, what);
	if (got >= 0)
		return;
	csink_pmc_reason(reason, sizeof(reason));
	if (!ok(!strncmp(reason, name, strlen(name)) && reason[strlen(name)] == ':', "%s: the reason begins with %s",
		what, name))
		fprintf(stderr, "#   reason: %s\n", reason);
}

__attribute__((unused)) static csink_pmc_id_t allocate(unsigned flags)
{
	csink_pmc_id_t pmc = csink_pmc_allocate(EVENT, flags, -1);
	char reason[400];

	if (pmc <= 0) {
		ok(0, "a PMC can be allocated");
		fprintf(stderr, "#   %s\n", csink_pmc_reason(reason, sizeof(reason)));
	}
	return pmc;
}

__attribute__((unused)) static long long value_of(csink_pmc_id_t pmc)
{
	struct csink_pmc_value value;
	int err = csink_pmc_read(pmc, &value);

	return err ? err : (long long)value.value;
}

__attribute__((unused)) static void is_about(long long got, long long want, const char *what)
{
	if (!ok(got >= want && got < want + SLACK, "%s", what))
		fprintf(stderr, "#   got %lld, want %lld and a little\n", got, want);
}

__attribute__((unused)) static int nr_open_fds(void)
{
	int nr = 0;

	for (int fd = 0; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Run a part in a child of its own, after giving up root, and take over its points. */
__attribute__((unused)) static void in_child(int (*part)(void), int drop, const char *what)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		tap_nr = tap_failed = 0;
		if (drop && !geteuid() && (setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID)))
			_exit(99);
		if (drop && level_refuses_all())
			_exit(HAS_NO_EVENTS);
		prctl(PR_SET_DUMPABLE, 1);
		_exit(part());
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == HAS_NO_EVENTS)
		skip(what, "kernel.perf_event_paranoid is 3: users have no events");
	else
		is_num(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, what);
}

#endif
