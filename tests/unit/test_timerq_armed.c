/* The armed timer queue as a guest: its signal, its timer, and what it leaves alone. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/core/timer/queue.h"
#include "tests/unit/tap.h"
#include "tests/unit/timerq_wait.h"

static struct csink_timerq *queue;
static volatile int nr_calls;

/*
 * The wall clock as the queue would see it, if it looked: two seconds back and five forward by turns. Our definitions
 * come before libc's for everything that is linked here.
 */
static _Atomic int nr_wall_clock_reads;
static int steps_wall_clock;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, t);

	if (steps_wall_clock && clock != CLOCK_MONOTONIC)
		t->tv_sec += nr_wall_clock_reads++ % 2 ? 5 : -2;
	return ret;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	(void)zone;
	nr_wall_clock_reads++;
	t->tv_sec = t->tv_usec = 0;
	return 0;
}

static void count(int id, void *data)
{
	(void)id;
	(void)data;
	nr_calls++;
}

static void make(int sig, int tid)
{
	struct csink_timerq_config config = {.flags = CSINK_TIMERQ_ARMED, .signal = sig, .tid = tid};

	csink_timerq_destroy(queue);
	queue = NULL;
	nr_calls = 0;
	if (csink_timerq_create(&queue, &config))
		exit(1);
}

static int timer_is_armed(void)
{
	struct itimerspec left;

	timer_gettime(queue->timer, &left);
	return left.it_value.tv_sec || left.it_value.tv_nsec;
}

static void *handler_of(int sig)
{
	struct sigaction action;

	sigaction(sig, NULL, &action);
	return action.sa_flags & SA_SIGINFO ? (void *)action.sa_sigaction : (void *)action.sa_handler;
}

/* ---- the schedule ------------------------------------------------------------------------------------------------ */

static uint64_t fired_at[256];
static int64_t misses_then[256];

static void note_time(int id, void *data)
{
	(void)data;
	if (nr_calls < 256) {
		fired_at[nr_calls] = monotonic_ns();
		misses_then[nr_calls] = csink_timerq_misses(queue, id);
	}
	nr_calls++;
}

/* The n-th call is due at t0 + (n + misses) * delta; t0 lies between the two readings around setup. */
static void test_schedule(void)
{
	uint64_t before, after, t0;
	int i, early = 0;

	make(0, 0);
	steps_wall_clock = 1;
	before = monotonic_ns();
	csink_timerq_setup(queue, 0, MS, NULL, note_time);
	after = monotonic_ns();
	ok(wait_for(nr_calls >= 256), "256 calls at 1 ms come");
	csink_timerq_block(queue);
	for (i = 0; i < 256; i++)
		early += fired_at[i] < before + (uint64_t)(i + misses_then[i]) * MS;
	is_num(early, 0, "no call of 256 is early");
	t0 = queue->heap[0].due_ns - (uint64_t)(nr_calls + csink_timerq_misses(queue, 0)) * MS;
	ok(t0 >= before && t0 <= after,
	   "the next call is on the schedule, and every point before it was called or counted as missed");
	is_num(nr_wall_clock_reads, 0, "the wall clock, stepping all the time, is not looked at");
	steps_wall_clock = 0;
}

/* ---- the interrupted code --------------------------------------------------------------------------------------- */

static void too_long(int id, void *data)
{
	uint64_t end = monotonic_ns() + 3 * MS;

	count(id, data);
	while (monotonic_ns() < end)
		;
}

static void test_progress(void)
{
	volatile long work = 0;

	make(0, 0);
	csink_timerq_setup(queue, 0, MS, NULL, too_long);
	csink_timerq_setup(queue, 0, 1, NULL, count);
	ok(wait_for(nr_calls > 20 && ++work > 100000),
	   "callbacks of 3 ms every 1 ms, and one every 1 ns: the interrupted code still runs");
	csink_timerq_destroy(queue);
	queue = NULL;
}

/* However dense the events are: 50 us from the end of a dispatch to the next. */
static uint64_t last_call;

static void note_last(int id, void *data)
{
	count(id, data);
	last_call = monotonic_ns();
}

static void test_gap(void)
{
	sigset_t ours;
	int i, too_early = 0;

	make(0, 0);
	sigemptyset(&ours);
	sigaddset(&ours, csink_timerq_signal(queue));
	csink_timerq_setup(queue, 0, 1, NULL, note_last);
	for (i = 0; i < 200; i++) {
		int before = nr_calls;

		wait_for(nr_calls != before);
		pthread_sigmask(SIG_BLOCK, &ours, NULL);
		too_early += csink_timerq_next(queue) < last_call + CSINK_TIMERQ_GAP_NS;
		pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	}
	is_num(too_early, 0, "an event every 1 ns: 50 us between the signals");
}

static void spoil_errno(int id, void *data)
{
	count(id, data);
	errno = EPERM;
}

static void test_errno(void)
{
	volatile int *seen = &errno; /* or the compiler reads it once */
	int kept = 1;

	make(0, 0);
	*seen = EDOM;
	csink_timerq_setup(queue, 0, MS, NULL, spoil_errno);
	while (nr_calls < 100 && kept)
		kept = *seen == EDOM;
	ok(kept, "errno is kept over 100 callbacks that change it");
	csink_timerq_destroy(queue);
	queue = NULL;
	csink_timerq_create(&queue, NULL);
	nr_calls = 0;
	csink_timerq_setup(queue, 0, 0, NULL, spoil_errno);
	*seen = EDOM;
	csink_timerq_run(queue, monotonic_ns());
	ok(nr_calls == 1 && *seen == EDOM, "errno is kept over a run");
}

static int pipe_fds[2];

static void write_at_ten(int id, void *data)
{
	count(id, data);
	if (nr_calls == 10 && write(pipe_fds[1], "x", 1) != 1)
		abort();
}

static void test_restart(void)
{
	char byte = 0;
	ssize_t got;

	make(0, 0);
	if (pipe(pipe_fds))
		exit(1);
	csink_timerq_register(queue, MS, NULL, write_at_ten);
	got = read(pipe_fds[0], &byte, 1);
	ok(got == 1 && byte == 'x' && nr_calls >= 10, "a blocking read goes on over ten interruptions");
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* ---- the handler's surroundings --------------------------------------------------------------------------------- */

static int depth, worst_depth, first_tid, other_tid;
static sigset_t mask_inside;
static char *stack_inside;

static void look_around(int id, void *data)
{
	char here;

	worst_depth = ++depth > worst_depth ? depth : worst_depth;
	pthread_sigmask(SIG_SETMASK, NULL, &mask_inside);
	stack_inside = &here;
	/* What made __pmAF nest: registration in a callback, and time for the next signal. */
	csink_timerq_setup(queue, 0, 0, NULL, count);
	too_long(id, data);
	depth--;
}

static void test_surroundings(void)
{
	static char stack[65536];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)}, none = {.ss_flags = SS_DISABLE};

	make(0, 0);
	sigaltstack(&alternate, NULL);
	csink_timerq_setup(queue, 0, MS, NULL, look_around);
	ok(wait_for(nr_calls >= 40), "a callback that registers another each time");
	csink_timerq_destroy(queue);
	queue = NULL;
	sigaltstack(&none, NULL);
	is_num(worst_depth, 1, "callbacks are never nested");
	ok(sigismember(&mask_inside, SIGINT) && sigismember(&mask_inside, SIGALRM),
	   "signals are blocked in a callback");
	ok(!sigismember(&mask_inside, SIGSEGV) && !sigismember(&mask_inside, SIGTRAP),
	   "faults are not blocked in a callback");
	ok(stack_inside >= stack && stack_inside < stack + sizeof(stack), "a callback runs on the alternate stack");
}

static void note_tid(int id, void *data)
{
	int tid = (int)syscall(SYS_gettid);

	if (!nr_calls)
		first_tid = tid;
	else if (tid != first_tid)
		other_tid = tid;
	count(id, data);
}

static _Atomic int peer_tid, peer_stops;

static void *spin(void *unused)
{
	peer_tid = (int)syscall(SYS_gettid);
	while (!peer_stops)
		;
	return unused;
}

static void test_threads(void)
{
	pthread_t peer;
	sigset_t ours;

	pthread_create(&peer, NULL, spin, NULL);
	ok(wait_for(peer_tid), "another thread has started");
	make(0, peer_tid);
	csink_timerq_block(queue);
	csink_timerq_setup(queue, 0, MS, NULL, note_tid);
	is_num(timer_is_armed(), 0, "the first registration, under block and with another thread: no timer yet");
	csink_timerq_unblock(queue);
	ok(wait_for(nr_calls >= 50), "after unblock the event is called");
	ok(first_tid == peer_tid && !other_tid, "all calls are in the thread that was asked for");

	make(0, 0);
	sigemptyset(&ours);
	sigaddset(&ours, csink_timerq_signal(queue));
	pthread_sigmask(SIG_BLOCK, &ours, NULL);
	csink_timerq_setup(queue, 0, MS, NULL, note_tid);
	ok(wait_for(nr_calls >= 50), "directed to the process, a thread that lets the signal through is found");
	ok(first_tid == peer_tid && !other_tid, "a thread that blocks the signal gets no calls");
	csink_timerq_destroy(queue);
	queue = NULL;
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	peer_stops = 1;
	pthread_join(peer, NULL);
}

/* ---- signal and timer ------------------------------------------------------------------------------------------- */

static volatile int nr_own_signals;

static void own_handler(int sig)
{
	(void)sig;
	nr_own_signals++;
}

static void unregister_self(int id, void *data)
{
	count(id, data);
	csink_timerq_unregister(queue, id);
}

static void test_disposition(void)
{
	struct sigaction mine = {.sa_handler = own_handler}, now;
	int id, sig = SIGRTMIN + 3;

	sigaction(sig, &mine, NULL);
	make(sig, 0);
	ok(handler_of(sig) == (void *)own_handler && !timer_is_armed(),
	   "a queue without events installs and arms nothing");
	id = csink_timerq_setup(queue, 0, MS, NULL, count);
	ok(handler_of(sig) != (void *)own_handler, "the first event installs the handler");
	ok(wait_for(nr_calls >= 3) && wait_for(timer_is_armed()), "the first event arms the timer");
	raise(sig);
	is_num(nr_own_signals, 1, "a signal that somebody else sends goes to the program's handler");
	csink_timerq_block(queue);
	is_num(timer_is_armed(), 0, "the timer is disarmed while blocked");
	csink_timerq_unblock(queue);
	ok(wait_for(timer_is_armed()), "the timer is armed again after the unblock");
	csink_timerq_unregister(queue, id);
	is_num(timer_is_armed(), 0, "the last event's removal disarms the timer");
	ok(handler_of(sig) == (void *)own_handler, "the last event's removal restores the handler");
	sigaction(sig, NULL, &now);
	ok(!(now.sa_flags & (SA_SIGINFO | SA_ONSTACK)), "the last event's removal restores the handler's flags");
	nr_calls = 0;
	csink_timerq_setup(queue, 0, MS, NULL, unregister_self);
	ok(wait_for(csink_timerq_isempty(queue)) && nr_calls == 1, "an event that unregisters itself fires once");
	ok(handler_of(sig) == (void *)own_handler && !timer_is_armed(),
	   "the handler itself cleans up after that event");
	csink_timerq_setup(queue, 0, 0, NULL, count);
	ok(wait_for(csink_timerq_isempty(queue)) && nr_calls == 2 && handler_of(sig) == (void *)own_handler,
	   "a one-trip event is cleaned up by the handler");
	is_num(nr_own_signals, 1, "no stray signal of ours has reached the program");

	csink_timerq_register(queue, 1000 * MS, NULL, count);
	signal(sig, SIG_IGN);
	csink_timerq_destroy(queue);
	queue = NULL;
	ok(handler_of(sig) == (void *)SIG_IGN, "a disposition that the program put in our place is left there");
	signal(sig, SIG_DFL);
}

/* A handler that is under way in another thread has seen the queue: destroy waits for it. */
static _Atomic int is_inside, has_left, destroy_begins;

static void linger(int sig)
{
	int i;

	(void)sig;
	is_inside = 1;
	while (!destroy_begins)
		;
	for (i = 0; i < 5000000; i++)
		has_left = 0;
	has_left = 1;
}

static void *raise_here(void *sig)
{
	raise(*(int *)sig);
	return NULL;
}

static void test_destroy_waits(void)
{
	int sig = SIGRTMIN + 5;
	pthread_t peer;

	signal(sig, linger);
	make(sig, 0);
	csink_timerq_register(queue, 3600 * 1000 * MS, NULL, count);
	pthread_create(&peer, NULL, raise_here, &sig);
	ok(wait_for(is_inside), "another thread is in the handler");
	destroy_begins = 1;
	csink_timerq_destroy(queue);
	queue = NULL;
	is_num(has_left, 1, "destroy waits until it has left");
	pthread_join(peer, NULL);
	signal(sig, SIG_DFL);
}

/* Registration and removal race with the signal's arrival; one that came after the handler is gone would be fatal. */
static void test_no_stray_signal(void)
{
	struct csink_timerq_config config = {.flags = CSINK_TIMERQ_ARMED, .signal = SIGRTMIN + 4};
	pthread_t peer;
	int i, status, id;
	pid_t child = fork();

	if (!child) {
		csink_timerq_create(&queue, &config);
		peer_stops = 0;
		pthread_create(&peer, NULL, spin, NULL);
		for (i = 0; i < 20000; i++) {
			id = csink_timerq_setup(queue, i % 7 * 1000, 1000, NULL, count);
			csink_timerq_unregister(queue, id);
		}
		csink_timerq_destroy(queue);
		_exit(0);
	}
	waitpid(child, &status, 0);
	is_num(status, 0, "20,000 times registered and removed at once, default disposition: the process lives");
}

static void test_alarm(void)
{
	struct sigaction mine = {.sa_handler = own_handler, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 3000}, {0, 3000}}, stop = {0}, left;

	nr_own_signals = 0;
	sigaction(SIGALRM, &mine, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	make(0, 0);
	csink_timerq_setup(queue, 0, MS, NULL, count);
	ok(wait_for(nr_calls >= 50 && nr_own_signals >= 20), "the program's own setitimer and the queue both run");
	getitimer(ITIMER_REAL, &left);
	is_num(left.it_interval.tv_usec, 3000, "the interval of the program's setitimer is kept");
	setitimer(ITIMER_REAL, &stop, NULL);
	alarm(1000);
	csink_timerq_destroy(queue);
	queue = NULL;
	ok(alarm(0) > 900, "the program's alarm() is kept");
	ok(handler_of(SIGALRM) == (void *)own_handler, "the program's SIGALRM handler is kept");
	signal(SIGALRM, SIG_DFL);
}

static int create_without_timers(void)
{
	struct csink_timerq_config config = {.flags = CSINK_TIMERQ_ARMED};
	struct rlimit none = {0, 0};
	int status;
	pid_t child = fork();

	if (!child) {
		setrlimit(RLIMIT_SIGPENDING, &none);
		_exit(-csink_timerq_create(&queue, &config));
	}
	waitpid(child, &status, 0);
	return -WEXITSTATUS(status);
}

static void test_errors(void)
{
	struct csink_timerq_config config = {.flags = CSINK_TIMERQ_ARMED, .signal = SIGALRM};
	struct csink_timerq *a = NULL, *b = NULL;

	is_num(csink_timerq_create(&a, &config), -EINVAL, "SIGALRM as the signal: EINVAL");
	config.signal = SIGRTMAX + 1;
	is_num(csink_timerq_create(&a, &config), -EINVAL, "create with an invalid signal: EINVAL");
	config.signal = 0;
	config.tid = -1;
	is_num(csink_timerq_create(&a, &config), -EINVAL, "create with a negative TID: EINVAL");
	config.tid = 1;
	is_num(csink_timerq_create(&a, &config), getpid() == 1 ? 0 : -ESRCH, "a TID of another process: ESRCH");
	config.tid = 0;
	config.clock = monotonic_ns;
	is_num(csink_timerq_create(&a, &config), -EINVAL, "an armed queue with its own clock: EINVAL");
	config.clock = NULL;
	is_num(create_without_timers(), -EAGAIN, "create without timers left: EAGAIN");
	is_num(csink_timerq_create(&a, &config), 0, "a queue may choose its signal");
	is_num(csink_timerq_create(&b, &config), 0, "a second queue may choose its signal");
	ok(csink_timerq_signal(a) != csink_timerq_signal(b), "two queues choose different signals");
	csink_timerq_destroy(b);
	config.signal = csink_timerq_signal(a);
	is_num(csink_timerq_create(&b, &config), -EBUSY, "a signal that is another queue's: EBUSY");
	csink_timerq_destroy(a);
	is_num(csink_timerq_create(&b, &config), 0, "a signal is free after its queue is destroyed");
	csink_timerq_destroy(b);
}

int main(void)
{
	test_errors();
	test_schedule();
	test_progress();
	test_gap();
	test_errno();
	test_restart();
	test_surroundings();
	test_disposition();
	test_threads();
	test_destroy_waits();
	test_no_stray_signal();
	test_alarm();
	csink_timerq_destroy(queue);
	return done();
}
