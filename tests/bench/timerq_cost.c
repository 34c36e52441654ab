/* What a queue of many events costs: each operation with N events there, ours polled and armed, and __pmAF. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "countersink/timerq.h"
#include "tests/bench/timerq_peer.h"

enum { MAX_EVENTS = 10000 };

static int ids[MAX_EVENTS], order[MAX_EVENTS];
static volatile int nr_calls;
static uint64_t first_call, last_call;

struct cost {
	double register_ns, fire_ns, unregister_ns;
};

static void note(int id, void *data)
{
	(void)id;
	(void)data;
	if (!nr_calls++)
		first_call = peer_now();
	last_call = peer_now();
}

/* The same random order for all. */
static void shuffle(int n)
{
	int i, j, t;

	srand(1);
	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n - 1; i > 0; i--) {
		j = rand() % (i + 1);
		t = order[i];
		order[i] = order[j];
		order[j] = t;
	}
}

/* Through the common interface: all events due together fire in one go; per-event time from first call to last. */
static void cost_armed(const struct peer *peer, int n, struct cost *c)
{
	uint64_t begin = peer_now();
	int i;

	peer->block();
	for (i = 0; i < n; i++)
		ids[i] = peer->setup(order[i] * INT64_C(1000), 100 * S, NULL, note);
	c->register_ns = (double)(peer_now() - begin) / n;
	while (peer_now() < begin + (uint64_t)n * 1000)
		;
	peer->unblock();
	while (nr_calls < n)
		;
	c->fire_ns = (double)(last_call - first_call) / (n - 1);
	begin = peer_now();
	for (i = 0; i < n; i++)
		peer->unregister(ids[order[i]]);
	c->unregister_ns = (double)(peer_now() - begin) / n;
}

/* Polled: every run finds one event due and puts it back among the N. */
static void cost_polled(int n, struct cost *c)
{
	struct csink_timerq_config config = {.capacity = (uint32_t)n};
	struct csink_timerq *q;
	uint64_t begin = peer_now(), now;
	int i, nr = 0;

	if (csink_timerq_create(&q, &config))
		exit(1);
	for (i = 0; i < n; i++)
		ids[i] = csink_timerq_setup(q, 1 + order[i] * INT64_C(1000), n * INT64_C(1000), NULL, note);
	c->register_ns = (double)(peer_now() - begin) / n;
	now = begin = peer_now();
	while (nr < 20 * n) {
		/* Time as the queue wants it: no waiting. */
		if (csink_timerq_next(q) > now)
			now = csink_timerq_next(q);
		nr += csink_timerq_run(q, now);
	}
	c->fire_ns = (double)(peer_now() - begin) / nr;
	begin = peer_now();
	for (i = 0; i < n; i++)
		csink_timerq_unregister(q, ids[order[i]]);
	c->unregister_ns = (double)(peer_now() - begin) / n;
	csink_timerq_destroy(q);
}

static void print_cost(const struct peer *peer, const char *name, int n)
{
	struct cost c;
	int fds[2];
	pid_t child;

	if (pipe(fds))
		exit(1);
	fflush(stdout);
	child = fork();
	if (!child) {
		shuffle(n);
		if (!peer)
			cost_polled(n, &c);
		else if (peer->open())
			_exit(1);
		else
			cost_armed(peer, n, &c);
		_exit(write(fds[1], &c, sizeof(c)) != (ssize_t)sizeof(c));
	}
	close(fds[1]);
	if (read(fds[0], &c, sizeof(c)) == (ssize_t)sizeof(c))
		printf("%6d  %-20s %12.0f %12.0f %12.0f\n", n, name, c.register_ns, c.fire_ns, c.unregister_ns);
	else
		printf("%6d  %-20s died\n", n, name);
	close(fds[0]);
	waitpid(child, NULL, 0);
}

int cost_main(int has_pcp)
{
	static const int sizes[] = {10, 100, 1000, MAX_EVENTS};
	int i;

	printf("%6s  %-20s %12s %12s %12s   (ns an operation)\n", "events", "queue", "register", "fire", "unregister");
	for (i = 0; i < 4; i++) {
		if (has_pcp)
			print_cost(&peer_pcp, "__pmAF", sizes[i]);
		print_cost(&peer_ours, "countersink, armed", sizes[i]);
		print_cost(NULL, "countersink, polled", sizes[i]);
	}
	printf("memory: %zu bytes an event, %zu a queue\n", CSINK_TIMERQ_BYTES(1) - CSINK_TIMERQ_BYTES(0),
	       CSINK_TIMERQ_BYTES(0));
	return 0;
}
