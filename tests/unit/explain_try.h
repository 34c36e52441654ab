/*
 * What the tests of explanations share: a call of perf_event_open that works, which each test spoils in its way, and
 * the fault that must be found then. Everyone's faults are provoked twice: with the right to see the kernel, where this
 * process has it, and in a child without privileges.
 */
#ifndef CSINK_TESTS_EXPLAIN_TRY_H
#define CSINK_TESTS_EXPLAIN_TRY_H

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/event.h"
#include "preload/core/perf_system.h"
#include "tests/unit/tap.h"

#define UNPRIVILEGED_ID 65534

/* The calls are plain task-clock events of our own, which open, with what the test changes in them. */
static struct perf_event_attr attr;
static struct csink_perf_call call;
static struct csink_explanation found[CSINK_EXPLAIN_MAX];
static unsigned nr_found;
static bool may_kernel; /* observing the kernel is allowed, so faults can be provoked with it or without */

static void plain(void)
{
	memset(&attr, 0, sizeof(attr));
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof(attr);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.disabled = 1;
	attr.exclude_kernel = !may_kernel;
	attr.sample_period = 1000000;
	call = (struct csink_perf_call){&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC};
}

static int lowest_fd(void)
{
	int fd = dup(STDOUT_FILENO);

	close(fd);
	return fd;
}

/* Open the call as it is; it must fail with err, and field must be found to blame. Starts the next one afresh. */
__attribute__((unused)) static void blames(const char *what, int err, const char *field, enum csink_cause cause)
{
	struct perf_event_attr as_passed = attr;
	char line[640] = "it opened";
	int fds = lowest_fd(), fd, same;

	/* E2BIG overwrites attr.size: explain what was passed, not what came back. */
	fd = csink_perf_open(&as_passed, call.pid, call.cpu, call.group_fd, call.flags);
	nr_found = 0;
	if (fd >= 0) {
		close(fd);
	} else {
		errno = 4711;
		nr_found = (unsigned)csink_explain_open(&call, -fd, found, CSINK_EXPLAIN_MAX);
		csink_explain_print(&found[0], line, sizeof(line));
	}
	same = fd == -err && found[0].err == err && !strcmp(found[0].field, field) && found[0].cause == cause &&
	       errno == 4711 && lowest_fd() == fds;
	if (!ok(same, "%s: %s, %s", what, csink_errno_name(err), field[0] ? field : "no field"))
		printf("#   got %s, cause %d, field '%s', errno %d, fd %d for %d\n", csink_errno_name(-fd),
		       found[0].cause, found[0].field, errno, lowest_fd(), fds);
	printf("# %s\n", line);
	plain();
}

/* The call as it is, with err given instead of making it: no kernel gives it here, or it has overwritten the attr.
 */
__attribute__((unused)) static void blames_given(const char *what, int err, const char *field, enum csink_cause cause)
{
	char line[640];

	nr_found = (unsigned)csink_explain_open(&call, err, found, CSINK_EXPLAIN_MAX);
	if (!ok(nr_found == 1 && found[0].err == err && found[0].cause == cause && !strcmp(found[0].field, field),
		"%s: %s, %s", what, csink_errno_name(err), field[0] ? field : "no field"))
		printf("#   %u found, errno %d, cause %d, field '%s'\n", nr_found, found[0].err, found[0].cause,
		       found[0].field);
	printf("# %s\n", csink_explain_print(&found[0], line, sizeof(line)));
}

/* The same, and another fault behind the first. */
__attribute__((unused)) static void blames_two(const char *what, int err, const char *field, enum csink_cause cause,
					       const char *second)
{
	blames(what, err, field, cause);
	if (!ok(nr_found >= 2 && !strcmp(found[1].field, second), "%s: and %s behind it", what, second))
		printf("#   %u found; the second '%s'\n", nr_found, nr_found > 1 ? found[1].field : "");
}

__attribute__((unused)) static void breakpoint_at(uint64_t address, uint64_t length, uint32_t type)
{
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.config = 0;
	attr.bp_addr = address;
	attr.bp_len = length;
	attr.bp_type = type;
	attr.sample_period = 1;
}

__attribute__((unused)) static void ring_blames(const char *what, size_t bytes, int flags, int err, const char *field,
						enum csink_cause cause)
{
	int fd = csink_perf_open(&attr, call.pid, call.cpu, -1, PERF_FLAG_FD_CLOEXEC), got;
	void *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	char line[640];

	got = ring == MAP_FAILED ? errno : 0;
	csink_explain_mmap(&attr, fd, bytes, PROT_READ | PROT_WRITE, flags, got, &found[0]);
	if (!ok(got == err && found[0].cause == cause && !strcmp(found[0].field, field), "%s: %s, %s", what,
		csink_errno_name(err), field))
		printf("#   got %s, cause %d, field '%s'\n", csink_errno_name(got), found[0].cause, found[0].field);
	printf("# %s\n", csink_explain_print(&found[0], line, sizeof(line)));
	if (ring != MAP_FAILED)
		munmap(ring, bytes);
	close(fd);
	plain();
}

__attribute__((unused)) static void in_child(void (*test)(void))
{
	int *counts = mmap(NULL, sizeof(int[2]), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		test();
		fflush(stdout);
		counts[0] = tap_nr;
		counts[1] = tap_failed;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && counts[0]) {
		tap_nr = counts[0];
		tap_failed = counts[1];
	} else {
		ok(0, "a child of the test ended well (status 0x%x)", status);
	}
	munmap(counts, sizeof(int[2]));
}

__attribute__((unused)) static bool become_nobody(void)
{
	struct csink_perf_system system;

	/* A change of uid makes a process one that cannot be dumped, and so one that its own children cannot look at.
	 */
	if (geteuid() == 0 && (setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID) || prctl(PR_SET_DUMPABLE, 1))) {
		skip("an unprivileged user", "setuid is refused");
		return false;
	}
	csink_perf_system_read(&system);
	if (system.paranoid != 2 || system.has_perfmon) {
		skip("an unprivileged user at paranoid 2",
		     "kernel.perf_event_paranoid differs, or CAP_PERFMON is held");
		return false;
	}
	may_kernel = false;
	plain();
	printf("# an unprivileged user at paranoid 2\n");
	return true;
}

/* False, and reported, where perf_event_open is refused altogether: there is no fault to be found. */
static bool can_explain(void)
{
	struct csink_perf_system system;
	struct csink_explanation refusal;

	csink_perf_system_read(&system);
	if (csink_explain_refusal(NULL, &system, &refusal)) {
		skip("explanations", refusal.text);
		return false;
	}
	may_kernel = csink_perf_system_allows(&system, -1);
	plain();
	return true;
}

static void (*explain_test_all)(void);

static void explain_as_nobody(void)
{
	if (become_nobody())
		explain_test_all();
}

/* All tests as the user who runs them, where that one may see the kernel, and as one without rights. */
__attribute__((unused)) static int explain_as_both(void (*test_all)(void))
{
	explain_test_all = test_all;
	if (!can_explain())
		return done();
	if (may_kernel) {
		printf("# a privileged user\n");
		test_all();
	}
	in_child(explain_as_nobody);
	return done();
}

#endif
