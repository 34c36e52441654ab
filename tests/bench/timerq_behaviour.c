/*
 * What each queue does, side by side: the behaviours that Performance Co-Pilot's own tests of __pmAF rely on, then
 * those that hurt. Every probe runs in a process of its own, as some end it. A "+" marks what a user would want.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/timerq_peer.h"

#define PROBE_TIMEOUT_MS 5000

static const struct peer *peer;
static const char *self_path;

/* ---- a probe's means -------------------------------------------------------------------------------------------- */

static volatile int nr_calls;
static uint64_t called_at[1024], t0;
static int called_id[1024];

/* End the probe with its finding. */
__attribute__((noreturn, format(printf, 2, 3))) static void found(int is_good, const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	_exit(write(STDOUT_FILENO, text, (size_t)n) == n && is_good ? 0 : 1);
}

static void note(int id, void *data)
{
	(void)data;
	called_at[nr_calls % 1024] = peer_now();
	called_id[nr_calls % 1024] = id;
	nr_calls++;
}

static void burn(int64_t ns)
{
	uint64_t end = peer_now() + (uint64_t)ns;

	while (peer_now() < end)
		;
}

static void slow_note(int id, void *data)
{
	note(id, NULL);
	burn(*(int64_t *)data);
}

/* ---- as PCP's own tests do -------------------------------------------------------------------------------------- */

static int kinds[3]; /* their ids */
static int64_t next_delay = -3 * 20 * MS;

/* All on the schedule? */
__attribute__((noreturn)) static void judge_pcp_test(void)
{
	int i, j, twice = 0, once = 0;

	for (i = 0; i < nr_calls; i++) {
		int64_t period = called_id[i] == kinds[0] ? 50 * MS : 30 * MS;

		once += called_id[i] == kinds[2];
		for (j = 0; j < i && called_id[i] != kinds[2]; j++)
			twice += called_id[j] == called_id[i] &&
				 (int64_t)(called_at[j] - t0) / period == (int64_t)(called_at[i] - t0) / period;
	}
	found(once == 1 && called_id[0] == kinds[2] && !twice, "one-trip %s; %d schedule points called twice",
	      once == 1 && called_id[0] == kinds[2] ? "first and once" : "out of turn", twice);
}

/* Each call takes longer than the last, and the tenth ends the test: main is not needed for that. */
static void slower_and_slower(int id, void *data)
{
	note(id, data);
	if (nr_calls == 10)
		judge_pcp_test();
	if (next_delay > 0)
		burn(next_delay);
	next_delay += 20 * MS;
}

/* Registration under block, a one-trip event, two rhythms, callbacks that outgrow them. */
static void probe_pcp_test(void)
{
	peer->block();
	t0 = peer_now();
	kinds[0] = peer->add(50 * MS, NULL, slower_and_slower);
	kinds[1] = peer->add(30 * MS, NULL, slower_and_slower);
	kinds[2] = peer->add(0, NULL, slower_and_slower);
	peer->unblock();
	for (;;)
		pause();
}

static void probe_block(void)
{
	int held, after;

	peer->block();
	peer->setup(-1, 10 * MS, NULL, note);
	burn(100 * MS);
	held = nr_calls;
	peer->unblock();
	burn(100 * MS);
	after = nr_calls;
	found(!held && after > 5, "%d calls while blocked, %d after", held, after);
}

static void probe_unregister(void)
{
	int id = peer->setup(-1, 10 * MS, NULL, note), before, ret;

	burn(60 * MS);
	ret = peer->unregister(id);
	before = nr_calls;
	burn(60 * MS);
	found(before > 2 && nr_calls == before && !ret, "%d calls before, %d after; returns %d", before,
	      nr_calls - before, ret);
}

static void probe_isempty(void)
{
	int a = peer->isempty(), b, c, id = peer->add(S, NULL, note);

	b = peer->isempty();
	peer->unregister(id);
	c = peer->isempty();
	found(a && !b && c, "%d, with an event %d, without %d", a, b, c);
}

static void probe_start_null(void)
{
	uint64_t begin = peer_now();

	peer->setup(-1, 500 * MS, NULL, note);
	while (!nr_calls && peer_now() < begin + 400 * MS)
		;
	found(nr_calls == 1, nr_calls ? "first call at once" : "no call at once");
}

static void probe_late(void)
{
	int i, back_to_back = 0;

	peer->setup(50 * MS, 50 * MS, NULL, note);
	peer->block();
	burn(430 * MS);
	peer->unblock();
	burn(150 * MS);
	peer->block();
	for (i = 1; i < nr_calls; i++)
		back_to_back += called_at[i] - called_at[i - 1] < 5 * MS;
	found(!back_to_back, "%d calls in 150 ms, %d back to back", nr_calls, back_to_back);
}

/* ---- what hurts ------------------------------------------------------------------------------------------------- */

static int inner_ret = 99, depth, worst;

static void unregister_self(int id, void *data)
{
	note(id, data);
	inner_ret = peer->unregister(id);
}

static void probe_self(void)
{
	peer->setup(-1, 10 * MS, NULL, unregister_self);
	burn(100 * MS);
	found(nr_calls == 1 && !inner_ret, "called %d times, unregister returned %d", nr_calls, inner_ret);
}

static void nested(int id, void *data)
{
	worst = ++depth > worst ? depth : worst;
	note(id, data);
	if (nr_calls < 30) {
		peer->setup(5 * MS, 0, NULL, nested);
		burn(25 * MS);
	}
	depth--;
}

static void probe_nesting(void)
{
	peer->setup(-1, 10 * MS, NULL, nested);
	burn(300 * MS);
	found(worst == 1, "callbacks %d deep", worst);
}

static void probe_progress(void)
{
	int64_t cost = 15 * MS;
	volatile unsigned long work = 0;

	peer->setup(-1, 10 * MS, &cost, slow_note);
	while (work < 2000000)
		work++;
	found(1, "main finishes its work");
}

static void probe_negative(void)
{
	int ret = peer->setup(-1, -10 * MS, NULL, note);

	burn(20 * MS);
	found(ret == -EINVAL, "setup returns %d%s", ret, ret == -EINVAL ? " (-EINVAL)" : "");
}

static void probe_burst(void)
{
	int i, bursts = 0;

	peer->setup(-1, 5 * MS, NULL, note);
	burn(500 * MS);
	peer->block();
	/* One may be late and the next in time: two calls can be close together, three not. */
	for (i = 2; i < nr_calls; i++)
		bursts += called_at[i] - called_at[i - 2] < 5 * MS;
	found(!bursts, "%d of 101 calls; three in one period: %d times", nr_calls, bursts);
}

static void step(int seconds)
{
	int i, before, doubled = 0;

	peer->setup(-1, 20 * MS, NULL, note);
	burn(100 * MS);
	before = nr_calls;
	peer_wall_step = seconds;
	burn(400 * MS);
	peer->block();
	for (i = before + 1; i < nr_calls; i++)
		doubled += called_at[i] - called_at[i - 1] < 5 * MS;
	found(nr_calls - before >= 15 && !doubled, "%d calls in the next 400 ms (20 due), %d of them double",
	      nr_calls - before, doubled);
}

static void probe_step_back(void)
{
	step(-2);
}

static void probe_step_forward(void)
{
	step(5);
}

static void probe_exec(void)
{
	peer->setup(-1, 20 * MS, NULL, note);
	burn(50 * MS);
	execl(self_path, self_path, "survive", NULL);
	found(0, "cannot exec");
}

static void probe_fork(void)
{
	int status, empty;
	pid_t child;

	peer->setup(-1, 10 * MS, NULL, note);
	burn(30 * MS);
	child = fork();
	if (!child) {
		empty = peer->isempty();
		nr_calls = 0;
		burn(100 * MS);
		_exit(empty << 1 | (nr_calls > 0));
	}
	waitpid(child, &status, 0);
	empty = WEXITSTATUS(status) >> 1;
	status = WEXITSTATUS(status) & 1;
	found(empty != status, "child: %s, %s", empty ? "empty" : "not empty", status ? "fires" : "never fires");
}

static volatile int nr_own;

static void own_alarm(int sig)
{
	(void)sig;
	nr_own++;
}

static void probe_alarm(void)
{
	struct sigaction mine = {.sa_handler = own_alarm, .sa_flags = SA_RESTART}, now;
	struct itimerval every = {{0, 20000}, {0, 20000}};

	sigaction(SIGALRM, &mine, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	peer->setup(-1, 20 * MS, NULL, note);
	burn(400 * MS);
	sigaction(SIGALRM, NULL, &now);
	found(nr_own > 10 && nr_calls > 10, "its alarms %d of 20, its handler %s; %d calls", nr_own,
	      now.sa_handler == own_alarm ? "there" : "gone", nr_calls);
}

static void probe_program_takes_sigalrm(void)
{
	struct sigaction mine = {.sa_handler = own_alarm, .sa_flags = SA_RESTART};

	peer->setup(-1, 20 * MS, NULL, note);
	burn(50 * MS);
	nr_calls = 0;
	sigaction(SIGALRM, &mine, NULL);
	burn(300 * MS);
	found(nr_calls > 5 && !nr_own, "%d calls go on, %d stray alarms to the program", nr_calls, nr_own);
}

static void probe_eintr(void)
{
	int ret, id = peer->setup(-1, 50 * MS, NULL, note);

	burn(20 * MS);
	peer->unregister(id);
	ret = poll(NULL, 0, 200);
	found(!ret, "poll(2) with no event left: %s", ret ? strerror(errno) : "undisturbed");
}

static void probe_two_blocks(void)
{
	int inside;

	peer->block();
	peer->block();
	peer->setup(-1, 10 * MS, NULL, note);
	peer->unblock();
	burn(50 * MS);
	inside = nr_calls;
	peer->unblock();
	burn(50 * MS);
	found(!inside && nr_calls, "%d calls after one unblock of two", inside);
}

static volatile int peer_stops;

static void *spin(void *unused)
{
	while (!peer_stops)
		;
	return unused;
}

static void probe_thread_alive(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, spin, NULL);
	peer->block();
	peer->setup(-1, 10 * MS, NULL, note);
	burn(50 * MS);
	peer->unblock();
	burn(100 * MS);
	found(nr_calls > 3, "%d calls after", nr_calls);
}

static void spoil(int id, void *data)
{
	note(id, data);
	errno = EPERM;
}

static void probe_errno(void)
{
	int changed = 0;

	peer->setup(-1, 10 * MS, NULL, spoil);
	while (nr_calls < 10) {
		errno = EDOM;
		burn(MS);
		changed += errno != EDOM;
	}
	found(!changed, "changed under the program %d times of 10", changed);
}

static void *dispositions(void)
{
	static void *all[_NSIG];
	struct sigaction action;
	int sig;

	for (sig = 1; sig < _NSIG; sig++)
		all[sig] = sigaction(sig, NULL, &action) ? NULL : (void *)action.sa_handler;
	return all;
}

static void probe_disposition(void)
{
	void *before[_NSIG];
	int id;

	memcpy(before, dispositions(), sizeof(before));
	id = peer->setup(-1, 10 * MS, NULL, note);
	burn(50 * MS);
	peer->unregister(id);
	found(!memcmp(before, dispositions(), sizeof(before)), "when empty the old handler is %s",
	      memcmp(before, dispositions(), sizeof(before)) ? "not restored" : "restored");
}

static void *add_here(void *ret)
{
	*(int *)ret = peer->setup(-1, 10 * MS, NULL, note);
	return NULL;
}

static void probe_second_thread(void)
{
	pthread_t thread;
	int ret;

	peer->add(10 * S, NULL, note);
	pthread_create(&thread, NULL, add_here, &ret);
	pthread_join(thread, NULL);
	burn(50 * MS);
	found(ret > 0 && nr_calls, "register returns %s, %d calls", ret > 0 ? "an id" : "an error", nr_calls);
}

static void probe_unknown_id(void)
{
	int ret;

	peer->add(S, NULL, note);
	ret = peer->unregister(123456);
	found(ret == -ENOENT, "unregister returns %d%s", ret, ret == -ENOENT ? " (-ENOENT)" : "");
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const struct probe {
	const char *name;
	void (*run)(void);
} probes[] = {
	{"PCP's own test: block, 3 events, slow callbacks", probe_pcp_test},
	{"block holds back, unblock lets go", probe_block},
	{"unregister is for good", probe_unregister},
	{"isempty", probe_isempty},
	{"start NULL", probe_start_null},
	{"blocked for 430 ms, period 50 ms", probe_late},
	{"unregisters itself in its callback", probe_self},
	{"registers in its callback", probe_nesting},
	{"callback of 15 ms every 10 ms", probe_progress},
	{"negative delta", probe_negative},
	{"period 5 ms", probe_burst},
	{"wall clock steps back 2 s, period 20 ms", probe_step_back},
	{"wall clock steps on 5 s", probe_step_forward},
	{"exec, event pending", probe_exec},
	{"fork", probe_fork},
	{"program uses setitimer and SIGALRM", probe_alarm},
	{"program installs a SIGALRM handler later", probe_program_takes_sigalrm},
	{"last event unregistered", probe_eintr},
	{"two blocks", probe_two_blocks},
	{"first event under block, another thread alive", probe_thread_alive},
	{"errno of the interrupted code", probe_errno},
	{"signal handler, when empty", probe_disposition},
	{"used from a second thread", probe_second_thread},
	{"unknown id", probe_unknown_id},
};

#define NR_PROBES (int)(sizeof(probes) / sizeof(probes[0]))

/* Run one probe; its finding goes to text. Returns whether it was good. */
static int run_probe(const struct peer *which, const struct probe *probe, char *text, size_t size)
{
	struct pollfd end;
	int fds[2], status, is_over;
	ssize_t n;
	pid_t child;

	if (pipe(fds))
		exit(1);
	child = fork();
	if (!child) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		peer = which;
		if (peer->open())
			found(0, "cannot be opened");
		probe->run();
	}
	close(fds[1]);
	/* Readable: a finding, or the end of all who could have written one. */
	end = (struct pollfd){.fd = fds[0], .events = POLLIN};
	is_over = poll(&end, 1, PROBE_TIMEOUT_MS) > 0;
	if (!is_over)
		kill(child, SIGKILL);
	n = is_over ? read(fds[0], text, size - 1) : 0;
	text[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	waitpid(child, &status, 0);
	if (!is_over)
		snprintf(text, size, "hangs");
	else if (WIFSIGNALED(status))
		snprintf(text, size, "dies: %s", strsignal(WTERMSIG(status)));
	return is_over && WIFEXITED(status) && !WEXITSTATUS(status);
}

int behaviour_main(const char *self, int has_pcp)
{
	int i, good[2] = {0, 0};
	char text[2][256];

	self_path = self;
	printf("%-48s  %-60s  %s\n", "behaviour (+ as wanted, - not)", has_pcp ? "__pmAF (libpcp)" : "", "countersink");
	for (i = 0; i < NR_PROBES; i++) {
		int is_good[2] = {0, 0};

		fflush(stdout);
		text[0][0] = '\0';
		if (has_pcp)
			is_good[0] = run_probe(&peer_pcp, &probes[i], text[0], sizeof(text[0]));
		is_good[1] = run_probe(&peer_ours, &probes[i], text[1], sizeof(text[1]));
		printf("%-48s%c %-60s%c %s\n", probes[i].name,
		       !has_pcp     ? ' '
		       : is_good[0] ? '+'
				    : '-',
		       text[0], is_good[1] ? '+' : '-', text[1]);
		good[0] += is_good[0];
		good[1] += is_good[1];
	}
	if (has_pcp)
		printf("as wanted: __pmAF %d of %d, countersink %d of %d\n", good[0], NR_PROBES, good[1], NR_PROBES);
	else
		printf("as wanted: countersink %d of %d\n", good[1], NR_PROBES);
	return 0;
}
