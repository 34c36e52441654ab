/* What the guests share: programs that look closely at what a profiler could have changed. Their output is the same in
 * every run, whoever watches; what they burn, they burn in guest_work() or a function named after their purpose. */
#ifndef CSINK_TESTS_GUEST_H
#define CSINK_TESTS_GUEST_H

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static __attribute__((noinline, noclone, unused)) uint64_t guest_work(uint64_t ms)
{
	__asm__ volatile(""); /* or several calls become one */
	return spin(ms, ms * ROUNDS_MS);
}

/* Keeps a result from being optimised away. */
static volatile uint64_t guest_sink __attribute__((unused));

static inline void guest_burn(uint64_t ms)
{
	guest_sink = guest_work(ms);
}

static inline void guest_print_set(const char *what, const sigset_t *set)
{
	printf("%s:", what);
	for (int signo = 1; signo < 65; signo++)
		if (sigismember(set, signo) == 1)
			printf(" %d", signo);
	putchar('\n');
}

/* Dispositions, the mask and what is pending, as libc's functions report them. */
static inline void guest_print_signals(const char *where)
{
	sigset_t set;
	struct sigaction act;

	printf("%s: handlers:", where);
	for (int signo = 1; signo < 65; signo++)
		if (sigaction(signo, NULL, &act) == 0 && act.sa_handler != SIG_DFL)
			printf(" %d%s", signo, act.sa_handler == SIG_IGN ? "i" : "");
	putchar('\n');
	sigprocmask(SIG_BLOCK, NULL, &set);
	guest_print_set("  blocked", &set);
	sigpending(&set);
	guest_print_set("  pending", &set);
}

static inline void guest_print_fds(const char *where)
{
	printf("%s: fds:", where);
	for (int fd = 0; fd < 300; fd++) {
		char link[64], to[256];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, to, sizeof(to) - 1);
		if (n < 0)
			continue;
		to[n] = 0;
		printf(" %d", fd);
		if (fd > 2)
			printf("=%s", strchr(to, '[') ? "special" : to);
	}
	putchar('\n');
}

static inline int guest_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static inline void guest_print_status(const char *who, int status)
{
	if (WIFSIGNALED(status))
		printf("%s: signal %d%s\n", who, WTERMSIG(status), WCOREDUMP(status) ? " (core)" : "");
	else
		printf("%s: status %d\n", who, WEXITSTATUS(status));
	fflush(stdout);
}

/* A way of a guest, by its name on the command line. */
struct guest_way {
	const char *name;
	int (*run)(int argc, char **argv);
};

static inline int guest_main(const struct guest_way *ways, int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; ways->name; ways++)
		if (argc > 1 && !strcmp(argv[1], ways->name))
			return ways->run(argc - 1, argv + 1);
	fprintf(stderr, "%s: no such way: %s\n", argv[0], argc > 1 ? argv[1] : "(none)");
	return 2;
}

#endif
