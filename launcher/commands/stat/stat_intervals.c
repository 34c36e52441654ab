/* Counts of intervals: see stat_intervals.h. */
#include "launcher/commands/stat/stat_intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "include/countersink/timerq.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"

struct csink_stat_intervals {
	const struct csink_stat_counters *counters;
	char **argv;
	struct csink_stat_writer *writer;
	struct csink_timerq *queue;
	int timer_fd;
	uint64_t start_ns, last_ns;
	struct csink_stat_reading last; /* all 0: nothing was counted before the first */
};

/* A callback of the queue: what was counted since the last one. */
static void end_interval(int id, void *data)
{
	struct csink_stat_intervals *iv = data;
	const struct csink_stat_counters *counters = iv->counters;
	struct csink_stat_value since[CSINK_STAT_MAX_EVENTS];
	struct csink_stat_reading reading;
	struct csink_stat_result interval = {.argv = iv->argv, .counters = counters};
	uint64_t now = csink_monotonic_ns();

	(void)id;
	csink_stat_counters_read(counters, &reading);
	csink_stat_counters_since(counters, &reading, &iv->last, since);
	iv->last = reading;
	csink_stat_result_add(&interval, since, now - iv->last_ns);
	csink_stat_write_interval(iv->writer, &interval, now - iv->start_ns);
	iv->last_ns = now;
}

/* Have the event loop woken when the queue has something to do. */
static void arm(struct csink_stat_intervals *iv)
{
	uint64_t next = csink_timerq_next(iv->queue);
	struct itimerspec when = {.it_value = {(time_t)(next / CSINK_NS_PER_S), (long)(next % CSINK_NS_PER_S)}};

	if (next == CSINK_TIMERQ_NEVER)
		memset(&when, 0, sizeof(when));
	timerfd_settime(iv->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int csink_stat_intervals_start(struct csink_stat_intervals **out, const struct csink_stat_counters *counters,
			       char **argv, struct csink_stat_writer *writer, uint64_t interval_ns, uint64_t start_ns)
{
	struct csink_stat_intervals *iv = calloc(1, sizeof(*iv));
	struct csink_timerq_config config = {.capacity = 1};
	int err = iv ? csink_timerq_create(&iv->queue, &config) : -ENOMEM;

	if (err)
		goto fail;
	iv->counters = counters;
	iv->argv = argv;
	iv->writer = writer;
	iv->start_ns = iv->last_ns = start_ns;
	iv->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = iv->timer_fd < 0 ? -errno : csink_timerq_register(iv->queue, (int64_t)interval_ns, iv, end_interval);
	if (err < 0)
		goto fail_queue;
	arm(iv);
	*out = iv;
	return 0;
fail_queue:
	if (iv->timer_fd >= 0)
		close(iv->timer_fd);
	csink_timerq_destroy(iv->queue);
fail:
	free(iv);
	return err;
}

int csink_stat_intervals_fd(const struct csink_stat_intervals *intervals)
{
	return intervals->timer_fd;
}

void csink_stat_intervals_run(struct csink_stat_intervals *intervals)
{
	uint64_t expirations;

	if (read(intervals->timer_fd, &expirations, sizeof(expirations)) < 0)
		errno = 0; /* the timer's clock was set; the queue decides what is due */
	csink_timerq_run(intervals->queue, csink_monotonic_ns());
	arm(intervals);
}

int64_t csink_stat_intervals_end(struct csink_stat_intervals *intervals)
{
	int64_t missed = csink_timerq_misses(intervals->queue, 0);

	if (csink_monotonic_ns() > intervals->last_ns)
		end_interval(0, intervals);
	csink_timerq_destroy(intervals->queue);
	close(intervals->timer_fd);
	free(intervals);
	return missed;
}
