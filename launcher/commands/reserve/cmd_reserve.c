/*
 * `countersink reserve`: have the hardware counters left to you, until a signal comes or while a command runs. A
 * drop-in for PCP's perfalloc(1): the same letters, life time, signals and exit statuses, but for what is wrong there
 * (see the manual page).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/commands/registry.h"
#include "launcher/commands/reserve/reserve_options.h"
#include "launcher/commands/reserve/reserve_print.h"
#include "launcher/session/choose_events.h"
#include "launcher/session/relay.h"
#include "launcher/session/reservation.h"

struct reserve {
	const struct csink_options *options;
	bool quiet;
	struct csink_reservation_wish wish;
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_reservation reservation;
};

static void say_hook_errors(const struct csink_hooks *hooks)
{
	for (uint32_t i = 0; i < csink_hooks_nr_lines(hooks); i++)
		csink_say("%s", hooks->errors[i]);
}

static int resolve_events(struct reserve *reserve)
{
	const char *list = csink_options_text(reserve->options, CSINK_RESERVE_OPT_EVENTS);
	struct csink_event_error err;
	int nr;

	if (!*list)
		return 0;
	nr = csink_choose_listed(list, reserve->specs, CSINK_MAX_EVENTS, &err);
	if (nr < 0)
		return csink_fail(-EINVAL, "option --events: %s", err.line);
	if (!csink_reservation_is_wanted(reserve->specs, (uint32_t)nr))
		return csink_fail(-EINVAL,
				  "option --events: '%.64s' uses no hardware counter, and needs no reservation", list);
	reserve->wish.specs = reserve->specs;
	reserve->wish.nr_specs = (uint32_t)nr;
	return 0;
}

static int resolve(struct reserve *reserve)
{
	const struct csink_options *o = reserve->options;
	const char *file = csink_options_text(o, CSINK_RESERVE_OPT_LOCK_FILE);
	bool has_timeout = o->values[CSINK_RESERVE_OPT_TIMEOUT].source == CSINK_FROM_OPTION;

	reserve->quiet = csink_options_bool(o, CSINK_RESERVE_OPT_QUIET);
	reserve->wish.require = csink_options_bool(o, CSINK_RESERVE_OPT_REQUIRE);
	reserve->wish.wait = csink_options_bool(o, CSINK_RESERVE_OPT_WAIT);
	reserve->wish.timeout_ns = csink_options_seconds(o, CSINK_RESERVE_OPT_TIMEOUT);
	if (reserve->wish.wait && !has_timeout)
		reserve->wish.timeout_ns = UINT64_MAX;
	reserve->wish.lock_file = *file ? file : NULL;
	reserve->wish.hooks = csink_options_text(o, CSINK_RESERVE_OPT_RESERVE_HOOKS);
	reserve->wish.cancel_fd = -1;
	if (csink_options_bool(o, CSINK_RESERVE_OPT_JSON) && !csink_options_bool(o, CSINK_RESERVE_OPT_STATUS))
		return csink_fail(-EINVAL, "option --json goes with --status only");
	return resolve_events(reserve);
}

/* Make it and say how it went. Returns 0, -EBUSY or -ECANCELED. */
static int make(struct reserve *reserve)
{
	struct csink_reservation *reservation = &reserve->reservation;
	int err = csink_reservation_make(reservation, &reserve->wish);

	if (err == -ECANCELED)
		return err;
	say_hook_errors(&reservation->hooks);
	if (!reserve->quiet || err || (reservation->matters && !reservation->is_confirmed))
		csink_say("%s", reservation->line);
	return err;
}

static void end(struct reserve *reserve)
{
	if (csink_reservation_end(&reserve->reservation))
		csink_say("%s", reserve->reservation.line);
	say_hook_errors(&reserve->reservation.hooks);
}

/* ---- until a signal comes ---- */

/* perfalloc ends well after INT and HUP, even where they were ignored at its start. */
static const int good_signals[] = {SIGINT, SIGHUP};
static const int bad_signals[] = {SIGTERM, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGPIPE};

static int block_signals(sigset_t *set)
{
	struct sigaction action = {.sa_handler = SIG_DFL}, was;

	sigemptyset(set);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(good_signals); i++) {
		sigaction(good_signals[i], &action, NULL);
		sigaddset(set, good_signals[i]);
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(bad_signals); i++) {
		if (!sigaction(bad_signals[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaddset(set, bad_signals[i]);
	}
	/* If the parent process ignores it, the exit statuses of hooks would be lost. */
	sigaction(SIGCHLD, &action, NULL);
	sigprocmask(SIG_BLOCK, set, NULL);
	return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* 0 after a good signal; after others end as they would have ended us. */
static int status_of_signal(int signo)
{
	sigset_t set;

	if (signo == SIGINT || signo == SIGHUP)
		return CSINK_EXIT_OK;
	sigemptyset(&set);
	sigaddset(&set, signo);
	signal(signo, SIG_DFL);
	raise(signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return CSINK_EXIT_SIGNAL + signo;
}

static int wait_for_signal(const sigset_t *set)
{
	siginfo_t info;
	int signo;

	do
		signo = sigwaitinfo(set, &info);
	while (signo < 0 && errno == EINTR);
	return signo;
}

/* @made  receives the status when it is made, or has failed; NULL: no caller waits. */
static int hold(struct reserve *reserve, void (*made)(int status, void *arg), void *arg)
{
	sigset_t set;
	int err, signo;

	reserve->wish.cancel_fd = block_signals(&set);
	err = make(reserve);
	if (err == -ECANCELED)
		return status_of_signal(wait_for_signal(&set));
	/* Without a command there is nothing to go on with. */
	if (!err && reserve->reservation.reserve.state == CSINK_RESERVE_NONE &&
	    !(reserve->reservation.hooks.nr && reserve->reservation.reserve.cause == CSINK_RESERVE_NO_LOCK_FILE)) {
		end(reserve);
		err = -ENOENT;
	}
	if (made)
		made(err ? CSINK_EXIT_FAILED : CSINK_EXIT_OK, arg);
	if (err)
		return CSINK_EXIT_FAILED;
	signo = wait_for_signal(&set);
	end(reserve);
	return status_of_signal(signo);
}

/* ---- in the background ---- */

struct background {
	int fd; /* the waiting process reads the status from it */
	bool quiet;
};

static void report_status(int status, void *arg)
{
	struct background *background = arg;
	char byte = (char)status;
	int null;

	if (!status && !background->quiet)
		csink_say("process %d holds the reservation until INT, HUP or TERM", getpid());
	/* The waiting process may have ended; then the reservation goes on as asked. */
	if (write(background->fd, &byte, 1) < 0)
		errno = 0;
	close(background->fd);
	if (status)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
}

/* The child makes the reservation: its PID is the holder's. */
static int hold_in_background(struct reserve *reserve)
{
	struct background background = {.quiet = reserve->quiet};
	int fds[2];
	char status = CSINK_EXIT_FAILED;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return csink_fail(CSINK_EXIT_FAILED, "cannot go to the background: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return csink_fail(CSINK_EXIT_FAILED, "cannot go to the background: %s", strerror(errno));
	if (pid) {
		close(fds[1]);
		while (read(fds[0], &status, 1) < 0 && errno == EINTR)
			;
		return status;
	}
	close(fds[0]);
	background.fd = fds[1];
	setsid();
	/* Once: this process keeps no directory in use that may be unmounted; a lock file named by a path from here is
	 * found.
	 */
	if (reserve->wish.lock_file && reserve->wish.lock_file[0] != '/')
		reserve->wish.lock_file = realpath(reserve->wish.lock_file, NULL) ?: reserve->wish.lock_file;
	if (reserve->wish.hooks[0] != '/')
		reserve->wish.hooks = realpath(reserve->wish.hooks, NULL) ?: reserve->wish.hooks;
	if (chdir("/"))
		errno = 0;
	return hold(reserve, report_status, &background);
}

/* ---- while a command runs ---- */

static void watch_nothing(void *arg)
{
	(void)arg;
}

static int run_command(struct reserve *reserve, char **argv)
{
	struct csink_inherited inherited;
	struct csink_relay_end ended;
	struct csink_child child;
	struct csink_relay relay;
	int err;

	csink_inherited_take(&inherited);
	err = csink_relay_init(&relay, &inherited);
	if (err)
		return csink_fail(CSINK_EXIT_FAILED, "cannot take signals: %s", strerror(-err));
	reserve->wish.cancel_fd = csink_reservation_cancel_fd();
	err = make(reserve);
	if (err == -ECANCELED) /* end as the signal that made us give up would have ended us */
		csink_inherited_restore(&inherited);
	if (err)
		return CSINK_EXIT_FAILED;
	err = csink_spawn(argv, environ, &inherited, &child);
	if (!err)
		err = csink_relay_wait(&relay, &child, -1, watch_nothing, NULL, &ended);
	end(reserve);
	if (!err)
		err = -ended.exec_errno;
	if (err)
		return csink_fail(CSINK_EXIT_FAILED, "cannot run %s: %s", argv[0], strerror(-err));
	return csink_exit_status(ended.status);
}

/* ---- status ---- */

static int print_status(struct reserve *reserve)
{
	struct csink_reserve_status status;

	csink_reserve_status_read(&status, reserve->wish.lock_file,
				  CSINK_MIN(reserve->wish.timeout_ns, 60 * CSINK_NS_PER_S));
	if (csink_options_bool(reserve->options, CSINK_RESERVE_OPT_JSON))
		csink_reserve_status_print_json(stdout, &status);
	else
		csink_reserve_status_print(stdout, &status);
	csink_scan_free(&status.scan);
	return csink_end_output("reserve", CSINK_EXIT_OK);
}

static bool is_background(const struct csink_options *o)
{
	const struct csink_option_value *background = &o->values[CSINK_RESERVE_OPT_BACKGROUND];
	const struct csink_option_value *foreground = &o->values[CSINK_RESERVE_OPT_FOREGROUND];

	return csink_options_bool(o, CSINK_RESERVE_OPT_BACKGROUND) &&
	       !(csink_options_bool(o, CSINK_RESERVE_OPT_FOREGROUND) && foreground->rank > background->rank);
}

static int main_reserve(const struct csink_options *o, int nr, char **operands)
{
	static struct reserve reserve;

	reserve.options = o;
	if (csink_options_bool(o, CSINK_RESERVE_OPT_SHOW_VERSION)) {
		printf("countersink %s\n", CSINK_VERSION);
		return csink_end_output("reserve", CSINK_EXIT_OK);
	}
	if (resolve(&reserve))
		return CSINK_EXIT_FAILED;
	if (csink_options_bool(o, CSINK_RESERVE_OPT_STATUS)) {
		if (!nr)
			return print_status(&reserve);
		return csink_fail(CSINK_EXIT_FAILED, "option --status takes no command, but got '%.64s'", *operands);
	}
	if (nr)
		return run_command(&reserve, operands);
	return is_background(o) ? hold_in_background(&reserve) : hold(&reserve, NULL, NULL);
}

const struct csink_command csink_command_reserve = {
	.name = "reserve",
	.synopsis = "reserve [OPTION]... [COMMAND [ARGUMENT]...]",
	.help = "reserve the hardware counters until a signal arrives, or while a command runs",
	.main = main_reserve,
	CSINK_COMMAND_OPTIONS(CSINK_RESERVE_OPTIONS),
	.usage_status = CSINK_EXIT_FAILED,
};
