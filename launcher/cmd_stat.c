/* `countersink stat COMMAND`: what the whole tree of a command counted, from outside; nothing is injected. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/countersink/timerq.h"
#include "include/internal/base.h"
#include "launcher/commands.h"
#include "launcher/reserve/reservation.h"
#include "launcher/run/program.h"
#include "launcher/run/relay.h"
#include "launcher/run/spawn.h"
#include "launcher/stat/result.h"

#define DEFAULT_EVENTS                                                                                                 \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

#define SPARE_FDS 4

struct stat_run {
	struct csink_options options;
	char **argv;
	uint64_t repeat, interval_ns;
	bool per_thread;

	struct csink_event_spec specs[CSINK_STAT_MAX_EVENTS];
	uint32_t nr_specs;
	struct csink_reservation reservation;
	struct csink_inherited inherited;
	struct csink_relay relay;

	struct csink_stat_counters counters;
	struct csink_stat_threads *threads;
	struct csink_stat_threads_result threads_result;
	struct csink_stat_result result;
	struct csink_stat_writer writer;

	/* The intervals of a run. */
	struct csink_timerq *queue;
	int timer_fd;
	uint64_t start_ns, last_ns;
	struct csink_stat_value last[CSINK_STAT_MAX_EVENTS];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CSINK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

__attribute__((format(printf, 2, 3))) static void note(struct stat_run *run, const char *fmt, ...)
{
	struct csink_stat_result *result = &run->result;
	va_list ap;

	if (result->nr_notes == CSINK_STAT_MAX_NOTES)
		return;
	va_start(ap, fmt);
	if (vasprintf(&result->notes[result->nr_notes], fmt, ap) >= 0)
		result->nr_notes++;
	va_end(ap);
}

/* ---- what was asked for ---- */

static int resolve_events(struct stat_run *run)
{
	static const struct csink_event_roots roots; /* the system's own */
	const char *list = csink_options_text(&run->options, CSINK_STAT_OPT_EVENTS);
	struct csink_event_error err;
	int nr = csink_events_parse(*list ? list : DEFAULT_EVENTS, run->specs, CSINK_STAT_MAX_EVENTS, &err);

	if (nr > 0)
		nr = csink_events_bind(&roots, run->specs, (uint32_t)nr, CSINK_STAT_MAX_EVENTS, &err);
	if (nr < 0) {
		csink_say("option --events: %s", err.line);
		return -EINVAL;
	}
	run->nr_specs = (uint32_t)nr;
	if (csink_events_fit(run->specs, run->nr_specs, &err)) {
		csink_say("option --events: %s", err.line);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < run->nr_specs; i++) {
		if (run->specs[i].attr.sample_period || run->specs[i].attr.freq) {
			csink_say("option --events: '%s' has a period or a frequency, but stat takes no samples (run "
				  "does)",
				  run->specs[i].rec.name);
			return -EINVAL;
		}
	}
	return 0;
}

static int resolve_output(struct stat_run *run)
{
	const char *path = csink_options_text(&run->options, CSINK_STAT_OPT_OUTPUT);
	bool json = csink_options_bool(&run->options, CSINK_STAT_OPT_JSON);
	bool csv = csink_options_bool(&run->options, CSINK_STAT_OPT_CSV);

	if (json && csv) {
		csink_say("options --json and --csv exclude each other: give one of them");
		return -EINVAL;
	}
	run->writer.format = json ? CSINK_STAT_JSON : csv ? CSINK_STAT_CSV : CSINK_STAT_TEXT;
	run->writer.intervals = run->interval_ns;
	run->writer.out = *path ? fopen(path, "we") : stderr;
	if (!run->writer.out) {
		csink_say("option --output: %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	return 0;
}

static int resolve(struct stat_run *run)
{
	uint64_t interval_ms = csink_options_number(&run->options, CSINK_STAT_OPT_INTERVAL);

	run->repeat = csink_options_number(&run->options, CSINK_STAT_OPT_REPEAT);
	run->per_thread = csink_options_bool(&run->options, CSINK_STAT_OPT_PER_THREAD);
	if (interval_ms > (uint64_t)CSINK_TIMERQ_MAX_NS / 1000000) {
		csink_say("option --interval: %llu ms is longer than any command runs",
			  (unsigned long long)interval_ms);
		return -EINVAL;
	}
	run->interval_ns = interval_ms * 1000000;
	if (!!run->interval_ns + (run->repeat > 1) + run->per_thread > 1) {
		csink_say("options --repeat, --interval and --per-thread exclude each other: give one of them");
		return -EINVAL;
	}
	return resolve_events(run) || resolve_output(run) ? -EINVAL : 0;
}

/* ---- reservation ---- */

static void note_hook_errors(struct stat_run *run)
{
	for (uint32_t i = 0; i < CSINK_MIN(run->reservation.hooks.nr_errors, (uint32_t)CSINK_MAX_HOOK_ERRORS); i++)
		note(run, "%s", run->reservation.hooks.errors[i]);
}

/* The events of the default are tried on every machine: where there is no PMU nobody has to make room for them. */
static bool wants_counters(const struct stat_run *run)
{
	if (!csink_reservation_is_wanted(run->specs, run->nr_specs))
		return false;
	return *csink_options_text(&run->options, CSINK_STAT_OPT_EVENTS) || csink_reservation_has_pmu();
}

static int reserve(struct stat_run *run)
{
	const char *mode = csink_options_text(&run->options, CSINK_STAT_OPT_RESERVE);
	struct csink_reservation_wish wish = {
		.require = !strcmp(mode, "require"),
		.timeout_ns = csink_options_seconds(&run->options, CSINK_STAT_OPT_RESERVE_TIMEOUT),
		.hooks = csink_options_text(&run->options, CSINK_STAT_OPT_RESERVE_HOOKS),
		.specs = run->specs,
		.nr_specs = run->nr_specs,
	};
	int err;

	if (!strcmp(mode, "no") || !wants_counters(run))
		return 0;
	wish.cancel_fd = csink_reservation_cancel_fd();
	err = csink_reservation_make(&run->reservation, &wish);
	close(wish.cancel_fd);
	if (err == -ECANCELED) {
		csink_inherited_restore(&run->inherited); /* the signal is pending: end by it */
		return CSINK_EXIT_RUN_FAILED;
	}
	if (err) {
		for (uint32_t i = 0; i < CSINK_MIN(run->reservation.hooks.nr_errors, (uint32_t)CSINK_MAX_HOOK_ERRORS);
		     i++)
			csink_say("%s", run->reservation.hooks.errors[i]);
		csink_say("%s; the command was not run (--reserve=auto would)", run->reservation.line);
		return CSINK_EXIT_RUN_FAILED;
	}
	note_hook_errors(run);
	return 0;
}

static void release(struct stat_run *run)
{
	csink_reservation_end(&run->reservation);
	if (run->reservation.matters)
		note(run, "%s", run->reservation.line);
	note_hook_errors(run);
}

/* ---- intervals ---- */

static void read_all(const struct stat_run *run, struct csink_stat_value *values)
{
	for (uint32_t i = 0; i < run->counters.nr; i++)
		values[i] = csink_stat_counter_read(&run->counters.counters[i]);
}

/* A callback of the queue: what was counted since the last one. */
static void end_interval(int id, void *data)
{
	struct stat_run *run = data;
	struct csink_stat_value values[CSINK_STAT_MAX_EVENTS], since[CSINK_STAT_MAX_EVENTS];
	struct csink_stat_result interval = {.argv = run->argv, .counters = &run->counters};
	uint64_t now = now_ns();

	(void)id;
	read_all(run, values);
	for (uint32_t i = 0; i < run->counters.nr; i++)
		since[i] = csink_stat_value_since(&values[i], &run->last[i], run->counters.counters[i].spec.scale);
	csink_stat_result_add(&interval, since, now - run->last_ns);
	csink_stat_write_interval(&run->writer, &interval, now - run->start_ns);
	memcpy(run->last, values, sizeof(run->last));
	run->last_ns = now;
}

/* Have the event loop woken when the queue has something to do. */
static void arm(struct stat_run *run)
{
	uint64_t next = csink_timerq_next(run->queue);
	struct itimerspec when = {.it_value = {(time_t)(next / CSINK_NS_PER_S), (long)(next % CSINK_NS_PER_S)}};

	if (next == CSINK_TIMERQ_NEVER)
		memset(&when, 0, sizeof(when));
	timerfd_settime(run->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int start_intervals(struct stat_run *run)
{
	struct csink_timerq_config config = {.capacity = 1};
	int err = csink_timerq_create(&run->queue, &config), id;

	if (err)
		return err;
	run->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	id = csink_timerq_register(run->queue, (int64_t)run->interval_ns, run, end_interval);
	if (run->timer_fd < 0 || id < 0)
		return run->timer_fd < 0 ? -errno : id;
	arm(run);
	return 0;
}

static void end_intervals(struct stat_run *run)
{
	int64_t missed = csink_timerq_misses(run->queue, 0);

	if (now_ns() > run->last_ns)
		end_interval(0, run); /* the last one is shorter */
	if (missed > 0)
		note(run, "%lld intervals passed before they could be read: what they counted is in the next one",
		     (long long)missed);
	csink_timerq_destroy(run->queue);
	close(run->timer_fd);
}

static void on_watch(void *arg)
{
	struct stat_run *run = arg;
	uint64_t expirations;

	if (run->threads) {
		csink_stat_threads_drain(run->threads);
		return;
	}
	if (read(run->timer_fd, &expirations, sizeof(expirations)) < 0)
		errno = 0; /* somebody set the clock of the timer; the queue knows what is due */
	csink_timerq_run(run->queue, now_ns());
	arm(run);
}

/* ---- a run ---- */

/* Where there are few file descriptors, some are for starting the command, not for counters. */
static void spare_fds(int fds[SPARE_FDS])
{
	for (int i = 0; i < SPARE_FDS; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void release_fds(const int fds[SPARE_FDS])
{
	for (int i = 0; i < SPARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* Counters for the next child. What cannot be had is said in the result. */
static void open_counters(struct stat_run *run)
{
	int err;

	csink_stat_counters_init(&run->counters, run->specs, run->nr_specs);
	if (!run->per_thread) {
		csink_stat_counters_open(&run->counters);
		return;
	}
	err = csink_stat_threads_open(&run->threads, &run->counters);
	if (!err)
		return;
	note(run, "threads are not told apart: %s",
	     err == -ENOBUFS ? "no memory may be locked any more (kernel.perf_event_mlock_kb, ulimit -l)"
			     : strerror(-err));
	csink_stat_counters_close(&run->counters);
	csink_stat_counters_init(&run->counters, run->specs, run->nr_specs);
	csink_stat_counters_open(&run->counters);
}

static void take_threads(struct stat_run *run)
{
	struct csink_stat_threads_result *threads = &run->threads_result;

	if (csink_stat_threads_finish(run->threads, threads)) {
		note(run, "threads are not told apart: no memory for them");
		return;
	}
	run->result.threads = threads;
	if (!threads->has_counts)
		note(run,
		     "threads are not told apart: this kernel keeps their counts to itself when they end (Linux 5.13 "
		     "and some after it); `countersink run` samples each of them");
	if (threads->nr_lost)
		note(run, "%llu of the kernel's records of threads were lost: some are missing, or have too little",
		     (unsigned long long)threads->nr_lost);
}

static double ns_of(const struct timeval *tv)
{
	return (double)tv->tv_sec * 1e9 + (double)tv->tv_usec * 1e3;
}

static void take_result(struct stat_run *run, const struct csink_relay_end *end, uint64_t wall_ns)
{
	struct csink_stat_result *result = &run->result;
	struct csink_stat_value values[CSINK_STAT_MAX_EVENTS];

	read_all(run, values);
	csink_stat_result_add(result, values, wall_ns);
	csink_moments_add(&result->wall_ns, (double)wall_ns);
	csink_moments_add(&result->user_ns, ns_of(&end->usage.ru_utime));
	csink_moments_add(&result->sys_ns, ns_of(&end->usage.ru_stime));
	result->max_rss_bytes = CSINK_MAX(result->max_rss_bytes, (uint64_t)end->usage.ru_maxrss * 1024);
	if (!result->nr_failed)
		result->status = end->status;
	result->nr_failed += end->status != 0;
}

/* Returns 0, or what to exit with where the command did not run. */
static int run_once(struct stat_run *run)
{
	struct csink_relay_end end;
	struct csink_child child;
	uint64_t wall_ns;
	int err, watch_fd = -1, spare[SPARE_FDS];

	spare_fds(spare);
	open_counters(run);
	release_fds(spare);
	run->start_ns = run->last_ns = now_ns();
	memset(run->last, 0, sizeof(run->last));
	err = csink_spawn(run->argv, environ, &run->inherited, &child);
	if (err) {
		csink_say("cannot start %s: %s", run->argv[0], strerror(-err));
		return CSINK_EXIT_RUN_FAILED;
	}
	if (run->interval_ns && start_intervals(run)) {
		note(run, "there are no intervals: %s", strerror(errno));
		run->interval_ns = 0;
	}
	if (run->threads)
		watch_fd = csink_stat_threads_fd(run->threads);
	else if (run->interval_ns)
		watch_fd = run->timer_fd;
	err = csink_relay_wait(&run->relay, &child, watch_fd, on_watch, run, &end);
	wall_ns = now_ns() - run->start_ns;
	if (err) {
		csink_say("cannot wait for %s: %s", run->argv[0], strerror(-err));
		return CSINK_EXIT_RUN_FAILED;
	}
	if (end.exec_errno)
		return csink_say_exec_failed(run->argv[0], end.exec_errno);
	if (run->interval_ns)
		end_intervals(run);
	take_result(run, &end, wall_ns);
	if (run->threads)
		take_threads(run);
	return 0;
}

static bool was_interrupted(int status)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(ending); i++)
		if (WIFSIGNALED(status) && WTERMSIG(status) == ending[i])
			return true;
	return false;
}

static int run_all(struct stat_run *run)
{
	int status = 0;

	for (uint64_t i = 0; i < run->repeat && !status; i++) {
		/* The last one's stay until the result is written. */
		csink_stat_counters_close(&run->counters);
		status = run_once(run);
		if (!status && was_interrupted(run->result.status)) {
			if (i + 1 < run->repeat)
				note(run, "interrupted: %u of %llu runs were made", run->result.nr_runs,
				     (unsigned long long)run->repeat);
			break;
		}
	}
	return status;
}

static void note_program(struct stat_run *run)
{
	struct csink_program program;

	csink_program_find(run->argv[0], &program);
	if (program.reason == CSINK_SPAWN_SETUID)
		note(run, "%s %s: the kernel takes the counters off it as it starts", run->argv[0], program.why);
}

static int run_and_write(struct stat_run *run)
{
	int status, err;

	csink_inherited_take(&run->inherited);
	err = csink_relay_init(&run->relay, &run->inherited);
	if (err) {
		csink_say("cannot take signals: %s", strerror(-err));
		return CSINK_EXIT_RUN_FAILED;
	}
	status = reserve(run);
	if (status)
		return status;
	note_program(run);
	run->result.argv = run->argv;
	run->result.counters = &run->counters;
	status = run_all(run);
	release(run);
	if (run->result.nr_failed && run->repeat > 1)
		note(run, "%u of %u runs failed", run->result.nr_failed, run->result.nr_runs);
	if (run->result.nr_runs) {
		csink_stat_write(&run->writer, &run->result);
		if (!status)
			status = csink_exit_status(run->result.status);
	}
	if (ferror(run->writer.out) || (run->writer.out != stderr && fclose(run->writer.out)))
		csink_say("option --output: %s: %s", csink_options_text(&run->options, CSINK_STAT_OPT_OUTPUT),
			  strerror(errno));
	csink_stat_threads_close(run->threads);
	csink_stat_counters_close(&run->counters);
	free(run->threads_result.threads);
	for (uint32_t i = 0; i < run->result.nr_notes; i++)
		free(run->result.notes[i]);
	return status;
}

int csink_cmd_stat(int argc, char **argv)
{
	static struct stat_run run = {.reservation.reserve.fd = -1, .timer_fd = -1};
	int status, at = csink_command_parse(&run.options, argc, argv, &status);

	if (at < 0)
		return status;
	if (at == argc) {
		csink_say("no command given: countersink %s (see countersink help)",
			  csink_command_find("stat")->synopsis);
		return CSINK_EXIT_RUN_FAILED;
	}
	run.argv = argv + at;
	if (resolve(&run))
		return CSINK_EXIT_RUN_FAILED;
	return run_and_write(&run);
}
