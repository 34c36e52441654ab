/* The timer queue under several threads and under handlers that interrupt its own calls. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "countersink/timerq.h"
#include "tests/unit/tap.h"
#include "tests/unit/timerq_wait.h"

enum { NR_THREADS = 4, CAPACITY = 64, ENOUGH_CALLS = 3000 };

static struct csink_timerq *queue;
static _Atomic int nr_calls, inside, overlaps, unexpected;

static void make(uint32_t flags)
{
	struct csink_timerq_config config = {.capacity = CAPACITY, .flags = flags};

	csink_timerq_destroy(queue);
	queue = NULL;
	nr_calls = overlaps = unexpected = 0;
	if (csink_timerq_create(&queue, &config))
		exit(1);
}

static void count(int id, void *data)
{
	(void)id;
	(void)data;
	overlaps += inside++ != 0;
	nr_calls++;
	inside--;
}

/* ---- one dispatches, the others return at once ------------------------------------------------------------------ */

static _Atomic int nr_busy, nr_ran, may_return;

static void hold(int id, void *data)
{
	count(id, data);
	while (!may_return)
		sched_yield();
}

static void *run_once(void *unused)
{
	int ret = csink_timerq_run(queue, monotonic_ns());

	if (ret == -EBUSY)
		nr_busy++;
	else
		nr_ran += ret;
	return unused;
}

static void test_one_dispatcher(void)
{
	pthread_t threads[NR_THREADS];
	int i, id;

	make(0);
	id = csink_timerq_setup(queue, 0, 0, NULL, hold);
	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, run_once, NULL);
	/* The others come back while the first is in the callback: no thread waits for another. */
	ok(wait_for(nr_busy == NR_THREADS - 1), "of %d threads that run the queue, %d return at once", NR_THREADS,
	   NR_THREADS - 1);
	is_num(csink_timerq_unregister(queue, id), 0, "an event is unregistered during its own call");
	is_num(csink_timerq_isempty(queue), 1, "the queue is empty then");
	id = csink_timerq_setup(queue, 0, 0, NULL, count);
	ok(id > 0, "the queue takes another event while the callback runs");
	may_return = 1;
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	is_num(nr_ran, 1, "one thread made the call");
	is_num(csink_timerq_run(queue, monotonic_ns()), 1, "the new event is called next");
}

/* ---- flush ------------------------------------------------------------------------------------------------------ */

static _Atomic int stops;

static void *run_on(void *unused)
{
	while (!stops)
		csink_timerq_run(queue, monotonic_ns());
	return unused;
}

struct user_data {
	_Atomic int is_valid, is_used;
};

/* Long enough to be caught in the act. */
static void use(int id, void *data)
{
	struct user_data *user = data;
	int i;

	(void)id;
	user->is_used = 1;
	for (i = 0; i < 5000; i++)
		unexpected += !user->is_valid;
}

static void test_flush(void)
{
	struct user_data user;
	pthread_t runner;
	int i, id, nr_refused = 0;

	make(0);
	stops = 0;
	pthread_create(&runner, NULL, run_on, NULL);
	for (i = 0; i < 300; i++) {
		user.is_valid = 1;
		user.is_used = 0;
		id = csink_timerq_setup(queue, 0, 1, &user, use);
		nr_refused += id <= 0 || !wait_for(user.is_used);
		if (i % 2)
			csink_timerq_unregister(queue, id);
		else
			csink_timerq_block(queue);
		csink_timerq_flush(queue);
		user.is_valid = 0;
		if (i % 2)
			continue;
		csink_timerq_unregister(queue, id);
		csink_timerq_unblock(queue);
	}
	is_num(nr_refused, 0, "300 events are called in another thread");
	is_num(unexpected, 0, "after unregister or block, and flush, no call is under way");
	stops = 1;
	pthread_join(runner, NULL);
}

/* ---- no request is lost ----------------------------------------------------------------------------------------- */

enum { MAX_MEETINGS = 5000, MEETINGS_MS = 3000 };

static _Atomic int meeting, nr_missed, last_meeting;

/*
 * Two threads register at the same moment and then wait for their calls without asking for anything more: if the one
 * that came second, while the other was busy with the queue, were forgotten, its call would not come. On a busy machine
 * they meet less often: the leader, who has an argument, ends it in time.
 */
static void *register_together(void *is_leader)
{
	uint64_t end = monotonic_ns() + MEETINGS_MS * MS;
	int i;

	for (i = 1; i <= last_meeting && !nr_missed; i++) {
		if (is_leader && monotonic_ns() > end)
			last_meeting = i;
		meeting++;
		while (meeting < 2 * i && !nr_missed)
			sched_yield();
		csink_timerq_setup(queue, 0, 0, NULL, count);
		if (!wait_for(nr_calls >= 2 * i || nr_missed))
			nr_missed++;
	}
	return NULL;
}

static void test_no_request_lost(void)
{
	pthread_t threads[2];

	make(CSINK_TIMERQ_ARMED);
	last_meeting = MAX_MEETINGS;
	pthread_create(&threads[0], NULL, register_together, &threads);
	pthread_create(&threads[1], NULL, register_together, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	is_num(nr_calls, 2 * last_meeting, "of two events registered by two threads at once, both are called");
	printf("# they met %d times\n", (int)last_meeting);
}

/* ---- everything at once ----------------------------------------------------------------------------------------- */

static _Atomic unsigned int handler_seed;

/* A few requests, each answered as it may be; `ids` are the caller's own. */
static void ask(unsigned int *seed, int *ids, int nr_ids)
{
	int ret, *id = &ids[rand_r(seed) % nr_ids];

	switch (rand_r(seed) % 8) {
	case 0:
		/* Without a pause: with one, some thread would always be waiting for a CPU here. */
		csink_timerq_block(queue);
		unexpected += csink_timerq_unblock(queue) != 0;
		break;
	case 1:
		ret = csink_timerq_run(queue, monotonic_ns());
		unexpected += ret < 0 && ret != -EBUSY;
		break;
	default:
		if (*id > 0) {
			ret = csink_timerq_unregister(queue, *id);
			/* A one-trip event may have expired. */
			unexpected += ret && ret != -ENOENT;
			*id = 0;
		} else {
			*id = csink_timerq_setup(queue, rand_r(seed) % 100000, rand_r(seed) % 50000, NULL, count);
			unexpected += *id < 0 && *id != -ENOSPC;
		}
	}
}

/* Interrupts every thread everywhere, also inside requests of its own thread; what it registers fires once. */
static void on_alarm(int sig)
{
	unsigned int seed = handler_seed++;
	int saved_errno = errno, id;

	(void)sig;
	id = csink_timerq_setup(queue, rand_r(&seed) % 20000, 0, NULL, count);
	unexpected += id < 0 && id != -ENOSPC;
	if (id > 0 && seed % 2)
		csink_timerq_unregister(queue, id);
	if (seed % 3 == 0)
		csink_timerq_run(queue, monotonic_ns());
	errno = saved_errno;
}

static void *ask_on(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	uint64_t end = monotonic_ns() + DEADLINE_NS;
	int i, ids[12] = {0};

	for (i = 0; i < 20000 || (nr_calls < ENOUGH_CALLS && monotonic_ns() < end); i++)
		ask(&seed, ids, 12);
	for (i = 0; i < 12; i++) {
		if (ids[i] > 0)
			csink_timerq_unregister(queue, ids[i]);
	}
	return NULL;
}

static void test_everything(uint32_t flags, const char *how)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 200}, {0, 200}}, never = {0};
	pthread_t threads[NR_THREADS];
	int i, taken = 0, last_id = 0;

	make(flags);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, ask_on, (void *)(uintptr_t)(i + 1));
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	ok(nr_calls >= ENOUGH_CALLS, "%s, %d threads and an alarm handler: %d calls", how, NR_THREADS, (int)nr_calls);
	is_num(overlaps, 0, "no two callbacks of a queue run at the same time");
	is_num(unexpected, 0, "every answer was one that the header names");
	ok(wait_for(csink_timerq_run(queue, monotonic_ns()) >= 0 && csink_timerq_isempty(queue)),
	   "when all have taken theirs back, the queue is empty");
	is_num(csink_timerq_unblock(queue), -EPERM, "the queue is not blocked afterwards");
	while (last_id >= 0) {
		last_id = csink_timerq_setup(queue, 3600 * 1000 * MS, 0, NULL, count); /* none ends meanwhile */
		taken += last_id > 0;
	}
	is_num(taken, CAPACITY, "the queue's whole capacity is free afterwards");
	is_num(last_id, -ENOSPC, "the queue is full at its capacity: ENOSPC");
}

/* Queues come and go while their signals are on the way. */
static void test_destroy(void)
{
	struct csink_timerq_config config = {.flags = CSINK_TIMERQ_ARMED};
	pthread_t idle;
	int i, failed = 0;

	csink_timerq_destroy(queue);
	queue = NULL;
	make(0);
	stops = 0;
	pthread_create(&idle, NULL, run_on, NULL);
	for (i = 0; i < 3000; i++) {
		struct csink_timerq *q;

		failed += csink_timerq_create(&q, &config) != 0;
		csink_timerq_setup(q, 0, 20000, NULL, count);
		csink_timerq_setup(q, 10000, 0, NULL, count);
		failed += csink_timerq_destroy(q) != 0;
	}
	is_num(failed, 0, "3,000 armed queues made and destroyed under way");
	stops = 1;
	pthread_join(idle, NULL);
}

int main(void)
{
	test_one_dispatcher();
	test_flush();
	test_no_request_lost();
	test_everything(0, "polled");
	test_everything(CSINK_TIMERQ_ARMED, "armed");
	test_destroy();
	csink_timerq_destroy(queue);
	return done();
}
