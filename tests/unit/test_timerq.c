/*
 * The timer queue's semantics, polled on a clock of our own: nothing here depends on real time. The armed queue runs
 * the same code from a signal (test_timerq_armed.c).
 */
#include <stdlib.h>

#include "countersink/timerq.h"
#include "tests/unit/tap.h"

#define MS INT64_C(1000000)

static struct csink_timerq *queue;
static uint64_t now;

static uint64_t test_clock(void)
{
	return now;
}

/* The calls made, in order. */
#define LOG_MAX 4096
static struct {
	int id;
	char tag;
	uint64_t when;
} calls[LOG_MAX];
static int nr_calls;
static uint64_t cost; /* the duration of each logged call */

static void log_call(int id, void *data)
{
	calls[nr_calls % LOG_MAX].id = id;
	calls[nr_calls % LOG_MAX].tag = data ? *(const char *)data : '?';
	calls[nr_calls++ % LOG_MAX].when = now;
	now += cost;
}

static const char *order(void)
{
	static char text[LOG_MAX + 1];
	int i;

	for (i = 0; i < nr_calls && i < LOG_MAX; i++)
		text[i] = calls[i].tag;
	text[i] = '\0';
	return text;
}

static void fresh(uint32_t capacity)
{
	struct csink_timerq_config config = {.capacity = capacity, .clock = test_clock};

	csink_timerq_destroy(queue);
	now = 1000 * MS;
	nr_calls = 0;
	cost = 0;
	if (csink_timerq_create(&queue, &config))
		exit(1);
}

/* Let time go on to the end, running the queue at each time that it asks for. */
static void run_until(uint64_t end)
{
	uint64_t next;

	while ((next = csink_timerq_next(queue)) <= end) {
		if (next > now)
			now = next;
		csink_timerq_run(queue, now);
	}
	if (end > now)
		now = end;
}

static char tag_a = 'a', tag_b = 'b', tag_c = 'c', tag_d = 'd';

static void test_schedule(void)
{
	uint64_t t0;
	int i, exact = 1, id;

	fresh(0);
	t0 = now;
	id = csink_timerq_setup(queue, 3 * MS, 10 * MS, &tag_a, log_call);
	ok(id > 0, "setup returns a positive id");
	cost = 4 * MS;
	run_until(t0 + 1000 * MS);
	for (i = 0; i < nr_calls; i++)
		exact &= calls[i].id == id && calls[i].when == t0 + (uint64_t)(3 * MS + i * 10 * MS);
	is_num(nr_calls, 100, "one call for each scheduled time");
	ok(exact, "the n-th call is at t0 + start + n * delta, though each takes 4 of 10 ms");
	is_num(csink_timerq_misses(queue, id), 0, "no scheduled time is missed");

	fresh(0);
	t0 = now;
	csink_timerq_register(queue, 10 * MS, &tag_a, log_call);
	is_num((long long)csink_timerq_next(queue), (long long)t0 + 10 * MS, "register: first due after one delta");
}

static void test_start_and_one_trip(void)
{
	int id;

	fresh(0);
	id = csink_timerq_setup(queue, 0, 0, &tag_a, log_call);
	is_num((long long)csink_timerq_next(queue), (long long)now, "start 0 is due at once");
	is_num(nr_calls, 0, "an event due at once is not called inside the registration");
	is_num(csink_timerq_run(queue, now), 1, "the next run calls it");
	is_num(csink_timerq_isempty(queue), 1, "delta 0 is a one-trip event: gone after its call");
	is_num(csink_timerq_unregister(queue, id), -ENOENT, "the id of a one-trip event has expired: ENOENT");
	is_num(csink_timerq_misses(queue, id), -ENOENT, "the misses of an expired id: ENOENT");
	ok(csink_timerq_next(queue) == CSINK_TIMERQ_NEVER, "an empty queue is never due");
	csink_timerq_setup(queue, 7 * MS, 0, &tag_a, log_call);
	is_num(csink_timerq_run(queue, now + 7 * MS - 1), 0, "no event fires early");
	is_num(csink_timerq_run(queue, now + 7 * MS), 1, "a one-trip event waits for its start");
}

static void test_fifo(void)
{
	fresh(0);
	csink_timerq_setup(queue, 6 * MS, 2 * MS, &tag_a, log_call);
	csink_timerq_setup(queue, 6 * MS, 3 * MS, &tag_b, log_call);
	csink_timerq_setup(queue, 6 * MS, 0, &tag_c, log_call);
	now += 6 * MS;
	csink_timerq_run(queue, now);
	is_str(order(), "abc", "events due together: in the order of registration");
	nr_calls = 0;
	run_until(now + 6 * MS);
	/* Due: a at 8, b at 9, a at 10, and both at 12, for which b was queued at 9 and a at 10. */
	is_str(order(), "ababa", "later calls come in the order in which they were queued");
	fresh(0);
	csink_timerq_setup(queue, 5 * MS, 0, &tag_d, log_call);
	csink_timerq_setup(queue, 4 * MS, 0, &tag_c, log_call);
	csink_timerq_setup(queue, 2 * MS, 0, &tag_a, log_call);
	csink_timerq_setup(queue, 3 * MS, 0, &tag_b, log_call);
	csink_timerq_run(queue, now + 100 * MS);
	is_str(order(), "abcd", "late ones are called in the order in which they were due");
}

static void test_coalescing(void)
{
	uint64_t t0;
	int id, other;

	fresh(0);
	t0 = now;
	id = csink_timerq_setup(queue, 50 * MS, 50 * MS, &tag_a, log_call);
	other = csink_timerq_setup(queue, 75 * MS, 0, &tag_b, log_call);
	csink_timerq_block(queue);
	now = t0 + 430 * MS;
	ok(csink_timerq_next(queue) == CSINK_TIMERQ_NEVER, "while blocked no event is due");
	csink_timerq_run(queue, now);
	is_num(nr_calls, 0, "run while blocked calls nothing");
	csink_timerq_unblock(queue);
	run_until(t0 + 500 * MS);
	is_str(order(), "abaa", "after 430 ms of blocking: one late call, then the fixed schedule");
	ok(calls[0].when == t0 + 430 * MS && calls[2].when == t0 + 450 * MS && calls[3].when == t0 + 500 * MS,
	   "the calls are at 430, 450 and 500 ms");
	is_num(csink_timerq_misses(queue, id), 7, "the points from 100 to 400 ms are counted as misses");
	is_num(csink_timerq_misses(queue, 0), 7, "the total of misses includes them");
	is_num(csink_timerq_unregister(queue, other), -ENOENT, "the late one-trip event is gone, and missed nothing");

	fresh(0);
	t0 = now;
	id = csink_timerq_setup(queue, 0, 10 * MS, &tag_a, log_call);
	cost = 15 * MS;
	run_until(t0 + 100 * MS);
	ok(nr_calls == 6 && calls[1].when == t0 + 20 * MS && calls[5].when == t0 + 100 * MS,
	   "a callback longer than delta: every second scheduled time");
	is_num(csink_timerq_misses(queue, id), 6, "the skipped scheduled times count as misses");
}

static int64_t seen_misses;

static void read_misses(int id, void *data)
{
	log_call(id, data);
	seen_misses = csink_timerq_misses(queue, id);
}

static void test_misses(void)
{
	int a, b;

	fresh(0);
	a = csink_timerq_register(queue, 10 * MS, &tag_a, read_misses);
	b = csink_timerq_register(queue, 30 * MS, &tag_b, log_call);
	csink_timerq_run(queue, now += 35 * MS);
	is_num(seen_misses, 2, "a late callback can read its number of misses");
	is_num(csink_timerq_misses(queue, b), 0, "each event has its own count of misses");
	csink_timerq_unregister(queue, a);
	is_num(csink_timerq_misses(queue, a), -ENOENT, "unregister removes the event's count of misses");
	is_num(csink_timerq_misses(queue, 0), 2, "the total of misses stays after unregister");
	is_num(csink_timerq_misses(queue, -1), -EINVAL, "a negative id is invalid");
}

static int in_callback, worst_nesting, inner_result, inner_id;

static void unregister_self(int id, void *data)
{
	log_call(id, data);
	inner_result = csink_timerq_unregister(queue, id);
}

static void register_more(int id, void *data)
{
	if (++in_callback > worst_nesting)
		worst_nesting = in_callback;
	log_call(id, data);
	inner_id = csink_timerq_setup(queue, 0, 0, &tag_b, log_call);
	inner_result = csink_timerq_run(queue, now);
	in_callback--;
}

static void unregister_other(int id, void *data)
{
	log_call(id, data);
	inner_result = csink_timerq_unregister(queue, inner_id);
}

static void block_inside(int id, void *data)
{
	log_call(id, data);
	csink_timerq_block(queue);
}

static void chain(int id, void *data)
{
	log_call(id, data);
	csink_timerq_setup(queue, 0, 0, data, chain);
}

static void end_from_inside(int id, void *data)
{
	log_call(id, data);
	inner_result = csink_timerq_destroy(queue);
	inner_id = csink_timerq_flush(queue);
}

static void test_inside_callbacks(void)
{
	int id;

	fresh(0);
	id = csink_timerq_register(queue, MS, &tag_a, unregister_self);
	run_until(now + 10 * MS);
	is_num(nr_calls, 1, "an event that unregisters itself is not called again");
	is_num(inner_result, 0, "unregister inside a callback returns 0");
	is_num(csink_timerq_isempty(queue), 1, "the queue is empty after its last event unregistered itself");
	is_num(csink_timerq_unregister(queue, id), -ENOENT, "the id of an event that unregistered itself is unknown");

	fresh(0);
	csink_timerq_register(queue, MS, &tag_a, register_more);
	now += MS;
	is_num(csink_timerq_run(queue, now), 1, "an event registered in a callback waits for the next run");
	is_num(inner_result, -EBUSY, "run inside a callback: EBUSY");
	is_num(csink_timerq_run(queue, now), 1, "the next run calls it");
	is_str(order(), "ab", "events registered in callbacks are called in order");
	is_num(worst_nesting, 1, "callbacks do not nest");

	fresh(0);
	csink_timerq_setup(queue, MS, MS, &tag_a, unregister_other);
	inner_id = csink_timerq_setup(queue, MS, MS, &tag_b, log_call);
	csink_timerq_run(queue, now += MS);
	is_str(order(), "a", "an event that another's callback unregisters is not called, though due");
	is_num(inner_result, 0, "unregistering another from a callback succeeds");

	fresh(0);
	csink_timerq_setup(queue, 0, 0, &tag_a, block_inside);
	csink_timerq_setup(queue, 0, 0, &tag_b, log_call);
	csink_timerq_run(queue, now);
	is_str(order(), "a", "a block in a callback defers the events that are due at the same time");
	csink_timerq_unblock(queue);
	csink_timerq_run(queue, now);
	is_str(order(), "ab", "an event blocked by a callback is called after the unblock");

	fresh(0);
	csink_timerq_setup(queue, 0, 0, &tag_a, chain);
	is_num(csink_timerq_run(queue, now), 1, "a chain of events each registered by the last does not trap run");

	fresh(0);
	csink_timerq_setup(queue, 0, 0, &tag_a, end_from_inside);
	csink_timerq_run(queue, now);
	is_num(inner_result, -EDEADLK, "destroy from a callback is refused");
	is_num(inner_id, -EDEADLK, "flush from a callback is refused");
}

static void test_block(void)
{
	fresh(0);
	csink_timerq_block(queue);
	csink_timerq_block(queue);
	csink_timerq_setup(queue, 0, 0, &tag_a, log_call);
	is_num(csink_timerq_unblock(queue), 0, "the first of two unblocks succeeds");
	is_num(csink_timerq_run(queue, now), 0, "two blocks need two unblocks");
	is_num(csink_timerq_unblock(queue), 0, "the second of two unblocks succeeds");
	is_num(csink_timerq_run(queue, now), 1, "callbacks run after two unblocks");
	is_num(csink_timerq_unblock(queue), -EPERM, "unblock without block is refused");
	csink_timerq_setup(queue, 0, 0, &tag_a, log_call);
	is_num(csink_timerq_run(queue, now), 1, "a refused unblock changes nothing");
	csink_timerq_block(queue);
	is_num(csink_timerq_run(queue, now), 0, "a refused unblock does not cancel the next block");
	csink_timerq_unblock(queue);
}

static void test_errors(void)
{
	struct timespec t = {1, 500};
	int id;

	fresh(3);
	is_num(csink_timerq_setup(queue, -1, MS, NULL, log_call), -EINVAL, "setup with a negative start: EINVAL");
	is_num(csink_timerq_setup(queue, 0, -1, NULL, log_call), -EINVAL, "setup with a negative delta: EINVAL");
	is_num(csink_timerq_register(queue, INT64_MIN, NULL, log_call), -EINVAL,
	       "register with the most negative delta: EINVAL");
	is_num(csink_timerq_register(queue, MS, NULL, NULL), -EINVAL, "register without a function: EINVAL");
	is_num(csink_timerq_register(queue, CSINK_TIMERQ_MAX_NS + 1, NULL, log_call), -ERANGE,
	       "register with too long a delta: ERANGE");
	is_num(csink_timerq_setup(queue, INT64_MAX, 0, NULL, log_call), -ERANGE, "setup with too late a start: ERANGE");
	is_num(csink_timerq_isempty(queue), 1, "a refused event is not registered");
	is_num(csink_timerq_unregister(queue, 0), -EINVAL, "unregister of id 0: EINVAL");
	is_num(csink_timerq_unregister(queue, -7), -EINVAL, "unregister of a negative id: EINVAL");
	is_num(csink_timerq_unregister(queue, 1), -ENOENT, "unregister of an id that was never given: ENOENT");
	is_num(csink_timerq_unregister(queue, 0x7fffffff), -ENOENT, "unregister of the largest id: ENOENT");
	ok(csink_timerq_register(queue, CSINK_TIMERQ_MAX_NS, NULL, log_call) > 0, "the longest delta is taken");
	id = csink_timerq_register(queue, MS, NULL, log_call);
	csink_timerq_register(queue, MS, NULL, log_call);
	is_num(csink_timerq_register(queue, MS, NULL, log_call), -ENOSPC, "an event beyond the capacity: ENOSPC");
	is_num(csink_timerq_unregister(queue, id), 0, "an event is unregistered");
	is_num(csink_timerq_unregister(queue, id), -ENOENT, "an event unregistered twice: ENOENT");
	ok(csink_timerq_register(queue, MS, NULL, log_call) > 0, "an unregistered event makes room at once");

	is_num(csink_timerq_ns(&t), 1000000500, "a timespec is converted to ns");
	is_num(csink_timerq_register(queue, csink_timerq_ns(NULL), NULL, log_call), -EINVAL,
	       "register without a timespec: EINVAL");
	t.tv_nsec = 1000000000;
	is_num(csink_timerq_register(queue, csink_timerq_ns(&t), NULL, log_call), -EINVAL,
	       "a timespec with tv_nsec of a second: EINVAL");
	t.tv_nsec = -1;
	is_num(csink_timerq_ns(&t), -EINVAL, "a timespec with a negative tv_nsec: EINVAL");
	t.tv_sec = -1;
	t.tv_nsec = 0;
	is_num(csink_timerq_ns(&t), -EINVAL, "a timespec with a negative tv_sec: EINVAL");
	t.tv_sec = INT64_MAX;
	is_num(csink_timerq_register(queue, csink_timerq_ns(&t), NULL, log_call), -ERANGE,
	       "a timespec with too large a tv_sec: ERANGE");
}

static void test_config(void)
{
	static unsigned char memory[CSINK_TIMERQ_BYTES(4) + 1];
	struct csink_timerq_config config = {.capacity = 4, .clock = test_clock};
	struct csink_timerq *q = NULL;
	int i;

	config.flags = 1U << 31;
	is_num(csink_timerq_create(&q, &config), -EINVAL, "create with an unknown flag: EINVAL");
	config.flags = 0;
	config.signal = 40;
	is_num(csink_timerq_create(&q, &config), -EINVAL, "a signal for a polled queue: EINVAL");
	config.signal = 0;
	config.capacity = CSINK_TIMERQ_MAX_EVENTS + 1;
	is_num(csink_timerq_create(&q, &config), -EINVAL, "capacity over the maximum: EINVAL");
	config.capacity = 4;
	is_num(csink_timerq_init(memory, sizeof(memory) - 2, &config, &q), -ENOSPC,
	       "init with too little memory: ENOSPC");
	is_num((long long)csink_timerq_bytes(4), (long long)CSINK_TIMERQ_BYTES(4),
	       "csink_timerq_bytes and CSINK_TIMERQ_BYTES agree");
	memset(memory, 0xa5, sizeof(memory));
	is_num(csink_timerq_init(memory + 1, sizeof(memory) - 1, &config, &q), 0, "a queue in odd, dirty memory");
	nr_calls = 0;
	for (i = 0; i < 4; i++)
		csink_timerq_setup(q, i, 0, &tag_a, log_call);
	is_num(csink_timerq_setup(q, 0, 0, &tag_a, log_call), -ENOSPC, "a full queue refuses another event: ENOSPC");
	is_num(csink_timerq_run(q, now + 4), 4, "a queue calls all events of its capacity");
	is_num(csink_timerq_signal(q), 0, "a polled queue has no signal");
	ok(memory[0] == 0xa5, "init does not write before its memory");
	is_num(csink_timerq_fini(q), 0, "a queue in odd memory is ended");
	is_num(csink_timerq_destroy(NULL), 0, "destroy of NULL is no error");
}

/* Ids stay apart: of those alive, and of the same place reused. */
static void test_ids(void)
{
	enum { ROUNDS = 20000 };
	static int seen[ROUNDS];
	int i, j, alive[3], distinct = 1, stale = 1;

	fresh(4);
	for (i = 0; i < 3; i++)
		alive[i] = csink_timerq_register(queue, 1000 * MS, &tag_a, log_call);
	for (i = 0; i < ROUNDS; i++) {
		seen[i] = csink_timerq_register(queue, MS, &tag_a, log_call);
		for (j = 0; j < 3; j++)
			distinct &= seen[i] > 0 && seen[i] != alive[j];
		csink_timerq_unregister(queue, seen[i]);
		stale &= csink_timerq_unregister(queue, seen[i / 2]) == -ENOENT;
	}
	for (i = 1; i < ROUNDS; i++)
		distinct &= seen[i] != seen[i - 1] && seen[i] != seen[0];
	ok(distinct, "20,000 ids of one place are positive and differ from each other and from those alive");
	ok(stale, "an expired id never unregisters a new event");
}

/* The heap against a list that is searched: 200,000 operations with many equal times. */
enum { MODEL_EVENTS = 300 };
static struct model {
	int id;
	uint64_t due, delta, seq;
} model[MODEL_EVENTS];
static uint64_t model_seq;
static int model_wrong;

static void check_against_model(int id, void *data)
{
	struct model *m = data, *first = NULL;
	int i;

	for (i = 0; i < MODEL_EVENTS; i++) {
		if (model[i].id &&
		    (!first || model[i].due < first->due || (model[i].due == first->due && model[i].seq < first->seq)))
			first = &model[i];
	}
	model_wrong += first != m || m->id != id || m->due > now;
	if (m->delta) {
		m->due += ((now - m->due) / m->delta + 1) * m->delta;
		m->seq = model_seq++;
	} else {
		m->id = 0;
	}
	nr_calls++;
}

static void test_model(void)
{
	int i, refused = 0, missing = 0;

	fresh(MODEL_EVENTS);
	memset(model, 0, sizeof(model));
	srand(7);
	for (i = 0; i < 200000; i++) {
		struct model *m = &model[rand() % MODEL_EVENTS];

		if (rand() % 4 == 0) {
			now += (uint64_t)(rand() % 20);
			csink_timerq_run(queue, now);
		} else if (m->id) {
			refused += csink_timerq_unregister(queue, m->id) != 0;
			m->id = 0;
		} else {
			int64_t start = rand() % 50, delta = rand() % 40;

			m->due = now + (uint64_t)start;
			m->delta = (uint64_t)delta;
			m->seq = model_seq++;
			m->id = csink_timerq_setup(queue, start, delta, m, check_against_model);
			refused += m->id <= 0;
		}
	}
	ok(nr_calls > 50000, "a random run of 200,000 operations makes calls (%d)", nr_calls);
	is_num(model_wrong, 0, "each call is the first due event of a plain list");
	is_num(refused, 0, "no request is refused");
	now += 1000;
	csink_timerq_run(queue, now);
	for (i = 0, missing = 0; i < MODEL_EVENTS; i++)
		missing += model[i].id && model[i].due <= now;
	is_num(missing, 0, "no due event is left out");
}

/* What a long callback leaves to others. */
static void test_rest(void)
{
	fresh(0);
	csink_timerq_setup(queue, 0, 10 * MS, &tag_a, log_call);
	cost = 9 * MS + 900000;
	csink_timerq_run(queue, now);
	ok(csink_timerq_next(queue) >= now + cost / 8, "after a long callback an eighth of its time is left free");
}

int main(void)
{
	test_schedule();
	test_start_and_one_trip();
	test_fifo();
	test_coalescing();
	test_misses();
	test_inside_callbacks();
	test_block();
	test_errors();
	test_config();
	test_ids();
	test_model();
	test_rest();
	csink_timerq_destroy(queue);
	return done();
}
