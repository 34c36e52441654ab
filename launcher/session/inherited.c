/* What the launcher hands on untouched: see inherited.h. */
#include "launcher/session/inherited.h"

#include <string.h>

/* Signals of which the launcher changes the disposition for itself. */
static const int own_signals[] = {SIGPIPE, SIGCHLD, SIGXFSZ};

static struct sigaction file_size_action; /* of SIGXFSZ, as the launcher was started with it */

void csink_inherited_begin(void)
{
	struct sigaction own = {.sa_handler = SIG_IGN};

	sigaction(SIGXFSZ, &own, &file_size_action);
}

void csink_inherited_end(void)
{
	sigaction(SIGXFSZ, &file_size_action, NULL);
}

void csink_inherited_take(struct csink_inherited *inherited)
{
	struct sigaction own = {.sa_handler = SIG_DFL};
	struct rlimit files;

	memset(inherited, 0, sizeof(*inherited));
	sigprocmask(SIG_SETMASK, NULL, &inherited->mask);
	for (int signo = 1; signo < _NSIG; signo++)
		sigaction(signo, NULL, &inherited->actions[signo]);
	inherited->actions[SIGXFSZ] = file_size_action;
	/* Ignored, it would make the kernel reap the command before we ask how it ended. */
	sigaction(SIGCHLD, &own, NULL);
	/* The report may go to a pager that was left. */
	own.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &own, NULL);
	getrlimit(RLIMIT_NOFILE, &inherited->files);
	files = inherited->files;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

void csink_inherited_restore(const struct csink_inherited *inherited)
{
	for (size_t i = 0; i < sizeof(own_signals) / sizeof(own_signals[0]); i++)
		sigaction(own_signals[i], &inherited->actions[own_signals[i]], NULL);
	setrlimit(RLIMIT_NOFILE, &inherited->files);
	if (inherited->has_cpus)
		sched_setaffinity(0, sizeof(inherited->cpus), &inherited->cpus);
	sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

void csink_ending_signals(sigset_t *set)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action;

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (!sigaction(signals[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
	}
}

bool csink_inherited_ignores(const struct csink_inherited *inherited, int signo)
{
	return inherited->actions[signo].sa_handler == SIG_IGN;
}
