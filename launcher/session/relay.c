/* Waiting for the command, with its signals: see relay.h. */
#include "launcher/session/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/proc.h"
#include "launcher/session/witness.h"
#include "preload/core/task_stat.h"

/* Handed on besides the real-time signals. Not the ones that mean an error of our own, nor TTIN and TTOU: those are the
 * terminal's answer to one process's read or write, and stop the launcher as they stop any program. */
static const int relayed_signals[] = {
	SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,   SIGUSR2, SIGWINCH, SIGCONT,
	SIGTSTP, SIGALRM, SIGPOLL, SIGPWR,  SIGVTALRM, SIGXCPU, SIGURG,   SIGPROF,
};
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* Where a signal goes that the launcher took. */
enum receiver {
	DROPPED,
	HAS_IT, /* the command got it as well */
	COMMAND,
	COMMANDS_GROUP, /* the one that the command leads */
};

/* What the loop knows while the command lives. */
struct wait_state {
	struct csink_child *child;
	struct csink_relay *relay;
	struct csink_relay_end *end;
	int stopped_by;  /* the signal that stopped the command, while it is stopped and we are not; 0 */
	bool stop_asked; /* a TSTP was sent: its sender expects the launcher to stop, too */
	bool ended;
};

int csink_relay_init(struct csink_relay *relay, const struct csink_inherited *inherited)
{
	sigset_t taken;

	relay->ending = 0;
	relay->on_term = NULL;
	relay->holds_first = false;
	sigemptyset(&relay->relayed);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(relayed_signals); i++) {
		if (!csink_inherited_ignores(inherited, relayed_signals[i]))
			sigaddset(&relay->relayed, relayed_signals[i]);
	}
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++) {
		if (!csink_inherited_ignores(inherited, signo))
			sigaddset(&relay->relayed, signo);
	}
	taken = relay->relayed;
	sigaddset(&taken, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &taken, NULL))
		return -errno;
	relay->signal_fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (relay->signal_fd < 0)
		return -errno;
	csink_witness_begin();
	return 0;
}

/* Is there a terminal, from which a stopped job can be continued? */
static bool has_terminal(void)
{
	CSINK_AUTO_CLOSE int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	return fd >= 0;
}

/*
 * Stop as the command did, until this process is continued. A SIGCONT to the whole job continued the command, too;
 * where only the launcher was continued the command is still stopped and is woken here. The CONT that woke us is spent.
 */
static void stop_along(const struct csink_child *child, int signo)
{
	static const struct timespec at_once;
	struct sigaction action, was;
	struct csink_task_stat stat;
	sigset_t set, old, cont;

	if (signo != SIGTSTP && signo != SIGTTIN && signo != SIGTTOU)
		signo = SIGSTOP;
	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	sigaction(signo, &action, &was); /* refused for SIGSTOP, which needs nothing */
	sigemptyset(&set);
	sigaddset(&set, signo);
	/* Sent while it is blocked it is one with the terminal's own, if that is still pending: we stop once. */
	sigprocmask(SIG_BLOCK, &set, &old);
	kill(getpid(), signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (signo != SIGSTOP)
		sigaction(signo, &was, NULL);
	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	sigtimedwait(&cont, NULL, &at_once);
	if (!csink_task_stat_read(child->pid, &stat) && stat.state == 'T')
		kill(child->pid, SIGCONT);
}

/*
 * Pass a signal on to a command that asked its parent to trace it (PTRACE_TRACEME), as programs do that look for
 * debuggers. Returns whether it was traced, which it has to be for the kernel to take the request.
 */
static bool traced_goes_on(pid_t pid, int signo)
{
	bool stops = signo == SIGSTOP || signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;

	/* The kernel's own SIGTRAP, after an exec, is for the tracer. */
	return !stops && !ptrace(PTRACE_CONT, pid, NULL, signo == SIGTRAP ? 0 : (long)signo);
}

/* The command changed its state. */
static void reap(struct wait_state *state)
{
	int status;

	while (!state->ended) {
		pid_t pid = wait4(state->child->pid, &status, WNOHANG | WUNTRACED | WCONTINUED, &state->end->usage);

		if (pid != state->child->pid)
			return;
		if (WIFSTOPPED(status) && traced_goes_on(pid, WSTOPSIG(status)))
			continue;
		if (WIFSTOPPED(status)) {
			state->stopped_by = WSTOPSIG(status);
		} else if (WIFCONTINUED(status)) {
			state->stopped_by = 0;
			state->stop_asked = false;
		} else {
			state->end->status = status;
			state->ended = true;
		}
	}
}

/*
 * A program that calls setpgid(0, 0), as timeout(1) does, stays in the shell's job where it leads that already. Below a
 * launcher that leads the job it has left it, and the job's signals reach the launcher alone.
 */
static bool has_left_our_job(const struct csink_child *child)
{
	return getpgrp() == getpid() && getpgid(child->pid) == child->pid;
}

/*
 * The kernel sends a terminal's signals to the whole foreground group: the command has them already. Two kinds reach
 * the launcher alone. When a terminal hangs up, the leader of its session gets SIGHUP and SIGCONT. A timer that was
 * armed before the launcher was executed (alarm(2)) belongs to the launcher until csink_spawn() moves it.
 */
static enum receiver receiver_of_kernels(int signo, const struct csink_child *child)
{
	if (signo == SIGALRM || signo == SIGVTALRM || signo == SIGPROF)
		return COMMAND;
	if ((signo == SIGHUP || signo == SIGCONT) && getsid(0) == getpid())
		return COMMAND;
	return has_left_our_job(child) ? COMMANDS_GROUP : HAS_IT;
}

/* Where to forward a signal. What the command itself sent, to its group or to its parent, is dropped. */
static enum receiver receiver_of(const struct signalfd_siginfo *info, struct csink_child *child)
{
	bool sent = info->ssi_code == SI_USER || info->ssi_code == SI_TKILL || info->ssi_code == SI_QUEUE;

	if (sigismember(&child->earlier, (int)info->ssi_signo) == 1) {
		sigdelset(&child->earlier, (int)info->ssi_signo);
		if (sent)
			csink_witness_saw(info); /* take its note, so that it is not found for a later signal */
		return COMMAND;
	}
	if (info->ssi_code == SI_KERNEL)
		return receiver_of_kernels((int)info->ssi_signo, child);
	if (!sent) /* a timer or message queue that we inherited nothing of */
		return info->ssi_code < 0 ? COMMAND : DROPPED;
	if (csink_proc_is_descendant((int32_t)info->ssi_pid, child->pid))
		return DROPPED;
	if (!csink_witness_saw(info))
		return COMMAND;
	if (getpgid(child->pid) == getpgrp())
		return HAS_IT;
	return has_left_our_job(child) ? COMMANDS_GROUP : COMMAND;
}

static void hand_on(struct wait_state *state, const struct signalfd_siginfo *info)
{
	enum receiver receiver = receiver_of(info, state->child);
	int signo = (int)info->ssi_signo;
	bool is_held = false;

	if (receiver == DROPPED)
		return;
	if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT) {
		is_held = state->relay->holds_first && !state->relay->ending;
		state->relay->ending = signo;
	}
	if (signo == SIGTSTP && info->ssi_code != SI_KERNEL)
		state->stop_asked = true;
	if (receiver == HAS_IT || is_held)
		return;
	if (receiver == COMMANDS_GROUP) {
		kill(-state->child->pid, signo);
	} else if (info->ssi_code == SI_QUEUE) {
		union sigval value = {.sival_ptr = (void *)(uintptr_t)info->ssi_ptr};

		sigqueue(state->child->pid, signo, value);
	} else {
		kill(state->child->pid, signo);
	}
}

/* Once, and after the command has got it: one that was not handed on leaves it for another one. */
static void call_on_term(struct csink_relay *relay)
{
	void (*on_term)(void *arg) = relay->on_term;

	if (!on_term || relay->ending != SIGTERM)
		return;
	relay->on_term = NULL;
	on_term(relay->on_term_arg);
}

static void take_signals(struct wait_state *state)
{
	struct signalfd_siginfo info;

	while (!state->ended && read(state->relay->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(state);
		else
			hand_on(state, &info);
		if (info.ssi_signo == SIGTERM)
			call_on_term(state->relay);
	}
	/* Only after all signals are read: the SIGCHLD of a stop arrives before the SIGTSTP that may have caused it. */
	if (state->ended || !state->stopped_by || !(state->stop_asked || has_terminal()))
		return;
	stop_along(state->child, state->stopped_by);
	state->stopped_by = 0;
	state->stop_asked = false;
}

static void take_exec_errno(const struct csink_child *child, struct csink_relay_end *end)
{
	/* End of file: the exec closed the other end. */
	if (read(child->exec_fd, &end->exec_errno, sizeof(int)) != sizeof(int))
		end->exec_errno = 0;
	close(child->exec_fd);
}

int csink_relay_wait(struct csink_relay *relay, struct csink_child *child, int watch_fd, void (*on_watch)(void *arg),
		     void *arg, struct csink_relay_end *end)
{
	struct wait_state state = {.child = child, .relay = relay, .end = end};
	struct pollfd fds[] = {
		{.fd = relay->signal_fd, .events = POLLIN},
		{.fd = child->exec_fd, .events = POLLIN},
		{.fd = watch_fd, .events = POLLIN},
	};

	int err = 0;

	memset(end, 0, sizeof(*end));
	while (!state.ended) {
		if (poll(fds, CSINK_ARRAY_SIZE(fds), -1) < 0 && errno != EINTR) {
			err = -errno;
			break;
		}
		if (fds[1].revents) {
			take_exec_errno(child, end);
			fds[1].fd = -1;
		}
		if (fds[2].revents)
			on_watch(arg);
		if (fds[0].revents)
			take_signals(&state);
	}
	if (!err && fds[1].fd >= 0)
		take_exec_errno(child, end);
	return err;
}

struct release {
	sigset_t ending;
	void (*on_signal)(void *arg);
	void *arg;
};

static void *await_end(void *arg)
{
	struct release *release = arg;
	struct sigaction action;
	int signo;

	if (sigwait(&release->ending, &signo))
		return NULL;
	release->on_signal(release->arg);
	/* End as the signal would have ended us. */
	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_DFL;
	sigaction(signo, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, &release->ending, NULL);
	kill(getpid(), signo);
	return NULL;
}

int csink_relay_release(struct csink_relay *relay, void (*on_signal)(void *arg), void *arg)
{
	static struct release release;
	struct signalfd_siginfo info;
	pthread_t thread;
	sigset_t stops;
	int err;

	csink_witness_end();
	/* What came until now was meant for the command. */
	while (read(relay->signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	close(relay->signal_fd);
	relay->signal_fd = -1;
	sigemptyset(&release.ending);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(ending_signals); i++) {
		if (sigismember(&relay->relayed, ending_signals[i]))
			sigaddset(&release.ending, ending_signals[i]);
	}
	/* ^Z is ours again, too. What else is blocked was for the command, and is not to hit us now. */
	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	sigaddset(&stops, SIGCONT);
	pthread_sigmask(SIG_UNBLOCK, &stops, NULL);
	release.on_signal = on_signal;
	release.arg = arg;
	err = pthread_create(&thread, NULL, await_end, &release);
	if (err)
		return -err;
	pthread_detach(thread);
	return 0;
}
