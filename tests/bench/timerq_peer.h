/*
 * Two callback queues behind one interface, so that the same program can be run on both: ours, armed, and __pmAF of
 * Performance Co-Pilot's libpcp, which is loaded when it is installed.
 */
#ifndef CSINK_BENCH_TIMERQ_PEER_H
#define CSINK_BENCH_TIMERQ_PEER_H

#include <stdint.h>
#include <time.h>

#define MS INT64_C(1000000)
#define S (1000 * MS)

typedef void (*peer_func)(int id, void *data);

struct peer {
	const char *name;
	/* NULL, or why it cannot be used. */
	const char *(*open)(void);
	/* start_ns < 0 stands for a NULL start. */
	int (*setup)(int64_t start_ns, int64_t delta_ns, void *data, peer_func func);
	int (*add)(int64_t delta_ns, void *data, peer_func func);
	int (*unregister)(int id);
	void (*block)(void);
	void (*unblock)(void);
	int (*isempty)(void);
};

extern const struct peer peer_ours, peer_pcp;

/* CLOCK_MONOTONIC, in ns. */
uint64_t peer_now(void);

/* Added to the wall clock as either queue sees it, in seconds. */
extern volatile int peer_wall_step;

/* timerq_behaviour.c, timerq_schedule.c, timerq_cost.c: each prints a table. */
int behaviour_main(const char *self, int has_pcp);
int schedule_main(int has_pcp);
int cost_main(int has_pcp);

#endif
