/*
 * Call a function every 10 ms, from a signal handler, until it was called five times.
 *
 *	cc -o timerq timerq.c $(pkg-config --cflags --libs countersink-api)
 */
#include <countersink/timerq.h>
#include <stdio.h>
#include <string.h>

static volatile int calls;

/* Runs in a signal handler: it may use async-signal-safe functions only. */
static void on_time(int id, void *data)
{
	struct csink_timerq *queue = data;

	if (++calls == 5)
		csink_timerq_unregister(queue, id);
}

int main(void)
{
	struct csink_timerq_config config = {.flags = CSINK_TIMERQ_ARMED};
	struct csink_timerq *queue;
	int err = csink_timerq_create(&queue, &config), id;

	if (err) {
		fprintf(stderr, "no queue: %s\n", strerror(-err));
		return 1;
	}
	id = csink_timerq_register(queue, 10000000, queue, on_time); /* ns */
	if (id < 0) {
		fprintf(stderr, "not registered: %s\n", strerror(-id));
		return 1;
	}
	while (!csink_timerq_isempty(queue))
		;
	csink_timerq_destroy(queue);
	printf("calls: %d\n", calls);
	return 0;
}
