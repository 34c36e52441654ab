/*
 * A process beside the launcher, which waits for each run: one that does not end within its time is killed, with all
 * that it has started. The launcher writes the time that the next run has into a pipe, and 0 when it has ended.
 *
 * Context: the launcher's one thread; the watchdog itself is a child that executes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/clock.h"
#include "launcher/gate/suite/suite.h"

__attribute__((noreturn)) static void watch(int fd, int launcher)
{
	uint64_t end_ns = 0;
	double limit;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct pollfd readable = {.fd = fd, .events = POLLIN};
		uint64_t now_ns = csink_monotonic_ns();
		int left_ms = !end_ns ? -1 : now_ns >= end_ns ? 0 : (int)((end_ns - now_ns) / 1000000) + 1;
		int ready = poll(&readable, 1, left_ms);

		if (ready > 0 && read(fd, &limit, sizeof(limit)) != sizeof(limit))
			_exit(0);
		if (ready > 0)
			end_ns = limit > 0 ? csink_monotonic_ns() + (uint64_t)(limit * 1e9) : 0;
		if (!ready && end_ns) {
			csink_suite_kill_children(launcher, getpid());
			end_ns = 0;
		}
	}
}

int csink_suite_watchdog_start(struct csink_suite *suite)
{
	int fds[2], launcher = getpid();

	suite->watchdog_fd = -1;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	suite->watchdog_pid = fork();
	if (suite->watchdog_pid < 0) {
		int err = -errno;

		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (!suite->watchdog_pid) {
		close(fds[1]);
		watch(fds[0], launcher);
	}
	close(fds[0]);
	suite->watchdog_fd = fds[1];
	return 0;
}

void csink_suite_watchdog_stop(struct csink_suite *suite)
{
	if (suite->watchdog_fd < 0)
		return;
	close(suite->watchdog_fd);
	suite->watchdog_fd = -1;
	kill(suite->watchdog_pid, SIGKILL);
	while (waitpid(suite->watchdog_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void csink_suite_watch(struct csink_suite *suite, double limit_seconds)
{
	/* SIGPIPE is ignored here; a watchdog that is gone watches no more. */
	if (suite->watchdog_fd >= 0 && write(suite->watchdog_fd, &limit_seconds, sizeof(limit_seconds)) < 0)
		csink_suite_watchdog_stop(suite);
}
