/* Making one run of a command: see gate_run.h. */
#include "launcher/gate/gate_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/message.h"
#include "launcher/profile/profile.h"
#include "launcher/session/counted_command.h"
#include "launcher/session/rate.h"
#include "launcher/session/reserve_command.h"
#include "launcher/session/spawn.h"

#define PADDING_VARIABLE "COUNTERSINK_PADDING="

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* ---- what all runs share ---- */

static int resolve_events(struct csink_gate_runner *runner, char *why, size_t why_size)
{
	struct csink_event_error err;
	uint64_t period = 0;

	/* One place is for CPU time. */
	if (csink_choose_planned(runner->texts[CSINK_OPT_EVENTS], CSINK_MAX_EVENTS - 1, &runner->events,
				 runner->event_reason, sizeof(runner->event_reason), &err))
		return csink_why(-EINVAL, why, why_size, "option --events: %s", err.line);
	if (*runner->events.text)
		runner->texts[CSINK_OPT_EVENTS] = runner->events.text;
	csink_own_values(&runner->events, &period, false, runner->alloc_text, &runner->texts[CSINK_OPT_LOCK]);
	runner->texts[CSINK_OPT_ALLOC] = runner->alloc_text;
	return 0;
}

/* As fast as was asked for, and as the kernel allows. */
static void resolve_rate(struct csink_gate_runner *runner)
{
	uint64_t asked = strtoull(runner->texts[CSINK_OPT_FREQUENCY], NULL, 10);
	char why[CSINK_WHY_BYTES];

	asked = csink_rate_allowed(asked, runner->events.specs[0].rec.flags & CSINK_EVENT_CPU_NS, why, sizeof(why));
	snprintf(runner->frequency_text, sizeof(runner->frequency_text), "%llu", (unsigned long long)asked);
	runner->texts[CSINK_OPT_FREQUENCY] = runner->frequency_text;
}

static int reserve(struct csink_gate_runner *runner)
{
	struct csink_reservation_command command = {
		.mode = "auto",
		.timeout_ns = CSINK_NS_PER_S,
		.hooks = CSINK_RESERVE_HOOKS,
		.specs = runner->events.specs,
		.nr_specs = runner->events.nr,
	};

	return csink_reservation_has_pmu() ? csink_reservation_begin(&runner->reservation, &command) : 0;
}

int csink_gate_runner_init(struct csink_gate_runner *runner, char *why, size_t why_size)
{
	int err = resolve_events(runner, why, why_size);

	if (err)
		return err;
	resolve_rate(runner);
	return 0;
}

int csink_gate_runner_start(struct csink_gate_runner *runner, char *why, size_t why_size)
{
	int err;

	csink_inherited_take(&runner->inherited);
	err = csink_relay_init(&runner->relay, &runner->inherited);
	if (err)
		return csink_why(err, why, why_size, "cannot take signals: %s", strerror(-err));
	if (reserve(runner) != -ECANCELED)
		return 0;
	return csink_why(-ECANCELED, why, why_size, "interrupted");
}

/* ---- one run ---- */

/* While it is made. */
struct making {
	struct csink_gate_runner *runner;
	struct csink_gate_outcome *outcome;
	struct csink_outside_watch watch;
	struct csink_injection injection;
	int fds[3];
};

/* Each run reads the input from its beginning, which a pipe has only once; to open one could wait for ever. */
static bool is_pipe(const char *path)
{
	struct stat st;

	return !stat(path, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static int open_streams(struct making *making, bool profile)
{
	const struct csink_gate_runner *runner = making->runner;
	const char *input = runner->input, *output = profile || runner->is_counted ? runner->output : NULL;

	if (input && is_pipe(input)) {
		snprintf(making->outcome->why, sizeof(making->outcome->why),
			 "%s: a pipe, and each run reads its input anew: give a regular file", input);
		return -EINVAL;
	}
	making->fds[0] = open(input ? input : "/dev/null", O_RDONLY | O_CLOEXEC);
	making->fds[1] = output ? open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
				: open("/dev/null", O_WRONLY | O_CLOEXEC);
	making->fds[2] = memfd_create("stderr", MFD_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		if (making->fds[i] < 0)
			return csink_why(-errno, making->outcome->why, sizeof(making->outcome->why), "%s: %s",
					 i       ? "its output"
					 : input ? input
						 : "/dev/null",
					 strerror(errno));
	}
	return 0;
}

static void close_streams(struct making *making)
{
	char *text = making->outcome->stderr_end;
	off_t end = lseek(making->fds[2], 0, SEEK_END);
	size_t room = sizeof(making->outcome->stderr_end) - 1;
	ssize_t got;

	got = pread(making->fds[2], text, room, end > (off_t)room ? end - (off_t)room : 0);
	text[got > 0 ? got : 0] = '\0';
	for (int i = 0; i < 3; i++)
		close(making->fds[i]);
}

static void drain(void *watch)
{
	csink_outside_drain(watch);
}

static int run_and_wait(struct making *making, char **argv, char **env)
{
	struct csink_gate_outcome *outcome = making->outcome;
	struct csink_counted_command command = {
		.argv = argv,
		.env = env,
		.fds = making->fds,
		.specs = making->runner->events.specs,
		.nr_specs = making->runner->events.nr,
		.program = &making->injection.program,
		.inherited = &making->runner->inherited,
		.relay = &making->runner->relay,
		.on_watch = drain,
		.arg = &making->watch,
	};
	struct csink_relay_end end = {0};
	bool started;
	int err = csink_counted_command_run(&command, &making->watch, &outcome->outside, &end, &started);

	csink_outside_close(&making->watch);
	if (err)
		return csink_why(err, outcome->why, sizeof(outcome->why), "it cannot be started or waited for: %s%s",
				 strerror(-err), err == -EMFILE ? "; raise ulimit -n: about 16 more will do" : "");
	outcome->wall_ns = outcome->outside.wall_ns;
	outcome->status = end.status;
	outcome->exec_errno = end.exec_errno;
	outcome->usage = end.usage;
	return 0;
}

/* An environment with as many bytes more, in one allocation with their text; NULL without memory. */
static char **pad(char **env, uint32_t padding)
{
	size_t nr = 0, len = strlen(PADDING_VARIABLE);
	char **grown, *text;

	while (env[nr])
		nr++;
	grown = calloc(1, (nr + 2) * sizeof(*grown) + len + padding + 1);
	if (!grown)
		return NULL;
	text = (char *)(grown + nr + 2);
	memcpy(grown, env, nr * sizeof(*grown));
	grown[nr] = text;
	memset(stpcpy(text, PADDING_VARIABLE), 'x', padding);
	return grown;
}

static int make(struct making *making, char **argv, uint32_t padding, bool inject)
{
	struct csink_gate_runner *runner = making->runner;
	CSINK_AUTO_FREE char **base = csink_env_build(environ, inject ? making->injection.library : NULL,
						      making->injection.directory.path, runner->texts);
	CSINK_AUTO_FREE char **env = base ? pad(base, padding) : NULL;

	return env ? run_and_wait(making, argv, env) : -ENOMEM;
}

static int collect(struct making *making, char **argv)
{
	struct csink_gate_outcome *outcome = making->outcome;
	int err;

	snprintf(outcome->outside.command, sizeof(outcome->outside.command), "%s", argv[0]);
	snprintf(outcome->outside.event_reason, sizeof(outcome->outside.event_reason), "%s",
		 making->runner->event_reason);
	err = csink_collect(making->injection.directory.path, &outcome->outside, &outcome->profile);
	if (err)
		snprintf(outcome->why, sizeof(outcome->why), "no profile: %s", strerror(-err));
	return err == -ENOMEM ? err : 0;
}

int csink_gate_run(struct csink_gate_runner *runner, char **argv, uint32_t padding, bool profile,
		   struct csink_gate_outcome *outcome)
{
	/* Some 10 KiB, and the stack may be small (ulimit -s 64). There is one run at a time. */
	static struct making making;
	const char *missing;
	bool inject;
	int err;

	memset(outcome, 0, sizeof(*outcome));
	memset(&making, 0, sizeof(making));
	making.runner = runner;
	making.outcome = outcome;
	making.injection.directory.fd = -1;
	err = open_streams(&making, profile);
	if (err)
		return err;
	inject = profile && !csink_injection_prepare(&making.injection, argv[0], outcome->why, sizeof(outcome->why));
	missing = inject ? csink_missing_object(making.injection.library, runner->texts) : NULL;
	if (missing) {
		snprintf(outcome->why, sizeof(outcome->why), "%s is not beside the library (incomplete installation?)",
			 missing);
		inject = false;
	}
	err = make(&making, argv, padding, inject);
	close_streams(&making);
	if (!err && inject && !outcome->exec_errno)
		err = collect(&making, argv);
	csink_run_directory_remove(&making.injection.directory);
	return err;
}

void csink_gate_outcome_free(struct csink_gate_outcome *outcome)
{
	csink_outside_free(&outcome->outside);
	csink_profile_free(outcome->profile);
	outcome->profile = NULL;
}

int csink_gate_interrupted(struct csink_gate_runner *runner, const struct csink_gate_outcome *outcome)
{
	/* What a terminal sends to all of its group may reach the command first. One that ends by such a signal alone
	 * has failed. */
	static const struct timespec at_once, soon = {.tv_nsec = CSINK_NS_PER_S / 10};
	int by = outcome && WIFSIGNALED(outcome->status) ? WTERMSIG(outcome->status) : 0;

	/* Handed on to a command that had ended already, or that makes nothing of it: it was for us all the same. */
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(ending_signals) && !runner->relay.ending; i++) {
		int signo = ending_signals[i];
		sigset_t one;

		sigemptyset(&one);
		sigaddset(&one, signo);
		/* Taken, so that it does not end what cleans up. */
		if (sigtimedwait(&one, NULL, signo == by ? &soon : &at_once) == signo)
			runner->relay.ending = signo;
	}
	return runner->relay.ending;
}
