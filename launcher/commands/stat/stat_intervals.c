/* Counts of intervals: see stat_intervals.h. */
#include "launcher/commands/stat/stat_intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"

struct csink_stat_intervals {
	const struct csink_stat_counters *counters;
	char **argv;
	struct csink_stat_writer *writer;
	int timer_fd; /* expires at the end of each interval */
	int64_t nr_missed;
	uint64_t start_ns, last_ns;
	struct csink_stat_reading last; /* all 0: nothing was counted before the first */
};

/* What was counted since the last one. */
static void end_interval(struct csink_stat_intervals *iv)
{
	const struct csink_stat_counters *counters = iv->counters;
	struct csink_stat_value since[CSINK_STAT_MAX_EVENTS];
	struct csink_stat_reading reading;
	struct csink_stat_result interval = {.argv = iv->argv, .counters = counters};
	uint64_t now = csink_monotonic_ns();

	csink_stat_counters_read(counters, &reading);
	csink_stat_counters_since(counters, &reading, &iv->last, since);
	iv->last = reading;
	csink_stat_result_add(&interval, since, now - iv->last_ns);
	csink_stat_write_interval(iv->writer, &interval, now - iv->start_ns);
	iv->last_ns = now;
}

int csink_stat_intervals_start(struct csink_stat_intervals **out, const struct csink_stat_counters *counters,
			       char **argv, struct csink_stat_writer *writer, uint64_t interval_ns, uint64_t start_ns)
{
	const struct timespec each = {(time_t)(interval_ns / CSINK_NS_PER_S), (long)(interval_ns % CSINK_NS_PER_S)};
	struct csink_stat_intervals *iv = calloc(1, sizeof(*iv));
	int err;

	if (!iv)
		return -ENOMEM;
	iv->counters = counters;
	iv->argv = argv;
	iv->writer = writer;
	iv->start_ns = iv->last_ns = start_ns;
	iv->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (iv->timer_fd < 0) {
		err = -errno;
		free(iv);
		return err;
	}
	timerfd_settime(iv->timer_fd, 0, &(struct itimerspec){each, each}, NULL);
	*out = iv;
	return 0;
}

int csink_stat_intervals_fd(const struct csink_stat_intervals *intervals)
{
	return intervals->timer_fd;
}

void csink_stat_intervals_run(struct csink_stat_intervals *intervals)
{
	uint64_t expirations;

	if (read(intervals->timer_fd, &expirations, sizeof(expirations)) != sizeof(expirations))
		return;
	intervals->nr_missed += (int64_t)expirations - 1;
	end_interval(intervals);
}

int64_t csink_stat_intervals_end(struct csink_stat_intervals *intervals)
{
	int64_t missed = intervals->nr_missed;

	if (csink_monotonic_ns() > intervals->last_ns)
		end_interval(intervals);
	close(intervals->timer_fd);
	free(intervals);
	return missed;
}
