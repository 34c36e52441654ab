/* The view on a terminal: see top_live.h. One thread; signals come from a signalfd, so that none comes in mid-picture.
 */
#include "launcher/commands/top/top_live.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"

/* A picture may cost at most a quarter of a CPU: where one takes long, they come more seldom. */
enum { COST_TIMES = 4 };

struct live {
	struct csink_top_screen *screen;
	struct csink_top_terminal terminal;
	struct csink_top_picture picture;
	struct csink_top_keys keys;
	uint64_t begun_ns; /* when the last one was begun, or failed */
	uint64_t cost_ns;  /* what it took; 0: there was none */
	uint64_t least_ns; /* from begun_ns to the next one, whatever the interval is */
	int signo;         /* that ends it */
	bool is_done, wants_now;
};

/* ---- pictures ---- */

/* Returns 0, -ESTALE (the run has ended: the last picture stays) or another -errno. */
static int take_picture(struct live *l)
{
	uint64_t begun_ns = csink_monotonic_ns(), cost_ns;
	struct csink_top_picture picture;
	struct csink_top_sight sight;
	int err = csink_top_source_take(l->screen->source, &sight);

	err = err ?: csink_top_picture_make(&picture, &sight);
	if (err)
		return err;
	l->screen->has_ended |= sight.is_over;
	csink_top_picture_free(&l->picture);
	l->picture = picture;
	cost_ns = csink_monotonic_ns() - begun_ns;
	/* One that reads the symbols of a new object is an exception. */
	l->least_ns = COST_TIMES * CSINK_MIN(cost_ns, l->cost_ns);
	l->begun_ns = begun_ns;
	l->cost_ns = cost_ns;
	return 0;
}

/* A moment that fails leaves the picture as it is; the next one has what came meanwhile, too. */
static void take_next(struct live *l)
{
	int err = take_picture(l);

	l->wants_now = false;
	l->screen->has_ended |= err == -ESTALE;
	if (err)
		l->begun_ns = csink_monotonic_ns();
}

/* ---- signals and keys ---- */

static int open_signals(void)
{
	static const int signals[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* As if it had not been caught, so that a shell sees it. */
static void obey(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(signo);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void take_signals(struct live *l, int fd)
{
	struct signalfd_siginfo info;
	bool is_resumed = false;

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGWINCH:
			csink_top_terminal_measure(&l->terminal);
			break;
		case SIGTSTP:
			csink_top_terminal_leave(&l->terminal);
			obey(SIGTSTP);
			is_resumed = true;
			break;
		case SIGCONT: /* the shell may have changed the terminal meanwhile */
			is_resumed = true;
			break;
		default:
			l->signo = (int)info.ssi_signo;
			l->is_done = true;
		}
	}
	/* In the background this stops it again: not if another signal has come that ends it. */
	if (is_resumed && !l->is_done)
		csink_top_terminal_enter(&l->terminal);
}

static void take_keys(struct live *l)
{
	unsigned char bytes[64];
	ssize_t nr = read(STDIN_FILENO, bytes, sizeof(bytes));

	l->is_done |= !nr || (nr < 0 && errno != EINTR && errno != EAGAIN); /* the terminal is gone */
	for (ssize_t i = 0; i < nr && !l->is_done; i++) {
		int key = csink_top_keys_feed(&l->keys, bytes[i]);
		enum csink_top_wish wish = key ? csink_top_screen_key(l->screen, key) : CSINK_TOP_GO_ON;

		l->is_done = wish == CSINK_TOP_QUIT;
		l->wants_now |= wish == CSINK_TOP_NOW;
	}
}

static int wait_ms(const struct live *l)
{
	uint64_t now_ns = csink_monotonic_ns(), due_ns = l->begun_ns + CSINK_MAX(l->screen->interval_ns, l->least_ns);

	if (l->screen->is_paused || l->screen->has_ended)
		return -1;
	return l->wants_now || due_ns <= now_ns ? 0 : (int)CSINK_MIN((due_ns - now_ns) / 1000000 + 1, INT_MAX);
}

/* Setting up the terminal would stop it as well, but then with signals blocked that are to end it. */
static void stop_in_background(void)
{
	pid_t foreground = tcgetpgrp(STDIN_FILENO);

	if (foreground > 0 && foreground != getpgrp())
		raise(SIGTTOU);
}

static int watch(struct live *l, int signal_fd)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = signal_fd, .events = POLLIN},
			       {.fd = csink_top_source_fd(l->screen->source), .events = POLLIN}};
	bool is_drained = fds[2].fd >= 0, is_changed = true;
	int err = 0;

	csink_top_terminal_enter(&l->terminal);
	while (!err && !l->is_done) {
		int ms = wait_ms(l);

		err = is_changed ? csink_top_screen_draw(l->screen, &l->terminal) : 0;
		if (is_drained)
			ms = ms < 0 ? CSINK_TOP_DRAIN_MS : CSINK_MIN(ms, (int)CSINK_TOP_DRAIN_MS);
		if (err || poll(fds, CSINK_ARRAY_SIZE(fds), ms) < 0)
			continue;
		csink_top_source_drain(l->screen->source);
		is_changed = fds[0].revents || fds[1].revents || !wait_ms(l);
		if (fds[1].revents)
			take_signals(l, signal_fd);
		if (fds[0].revents && !l->is_done)
			take_keys(l);
		if (!l->is_done && !wait_ms(l))
			take_next(l);
	}
	csink_top_terminal_leave(&l->terminal);
	return err;
}

int csink_top_live(struct csink_top_screen *screen)
{
	struct live l = {.screen = screen};
	char why[CSINK_WHY_BYTES];
	CSINK_AUTO_CLOSE int signal_fd = -1;
	int err = csink_top_terminal_find(&l.terminal, why, sizeof(why));

	if (err)
		return csink_fail(CSINK_EXIT_FAILED, "%s", why);
	err = take_picture(&l);
	if (err)
		return csink_fail(CSINK_EXIT_FAILED, "%s: %s", screen->source->name,
				  err == -ESTALE ? "the run has ended" : strerror(-err));
	screen->picture = &l.picture;
	stop_in_background();
	signal_fd = open_signals();
	err = signal_fd < 0 ? -errno : watch(&l, signal_fd);
	csink_top_picture_free(&l.picture);
	if (l.signo)
		obey(l.signo);
	return err && err != -EIO ? csink_fail(CSINK_EXIT_FAILED, "%s", strerror(-err)) : CSINK_EXIT_OK;
}
