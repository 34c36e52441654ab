/* `countersink stat COMMAND`: what the whole tree of a command counted, from outside; nothing is injected. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/countersink/timerq.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/commands/registry.h"
#include "launcher/commands/start_failed.h"
#include "launcher/commands/stat/stat_intervals.h"
#include "launcher/commands/stat/stat_options.h"
#include "launcher/commands/stat/stat_result.h"
#include "launcher/session/choose_events.h"
#include "launcher/session/find_program.h"
#include "launcher/session/relay.h"
#include "launcher/session/reserve_command.h"
#include "launcher/session/spawn.h"

#define DEFAULT_EVENTS                                                                                                 \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

struct stat_run {
	const struct csink_options *options;
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

	struct csink_stat_intervals *intervals; /* of the run that goes on; NULL: none */
};

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
	const char *list = csink_options_text(run->options, CSINK_STAT_OPT_EVENTS);
	struct csink_event_error err;
	int nr = csink_choose_listed(*list ? list : DEFAULT_EVENTS, run->specs, CSINK_STAT_MAX_EVENTS, &err);

	if (nr < 0)
		return csink_fail(-EINVAL, "option --events: %s", err.line);
	run->nr_specs = (uint32_t)nr;
	if (csink_events_fit(run->specs, run->nr_specs, &err))
		return csink_fail(-EINVAL, "option --events: %s", err.line);
	for (uint32_t i = 0; i < run->nr_specs; i++) {
		if (run->specs[i].attr.sample_period || run->specs[i].attr.freq)
			return csink_fail(
				-EINVAL,
				"option --events: '%s' has a period or a frequency, but stat takes no samples (run "
				"does)",
				run->specs[i].rec.name);
	}
	return 0;
}

void csink_stat_writer_fall_back(struct csink_stat_writer *writer, int err)
{
	char what[PATH_MAX + 32];

	snprintf(what, sizeof(what), "option --output: %s", writer->path);
	csink_say_unwritten(what, err, "the missing output is on standard error");
	if (writer->out)
		fclose(writer->out);
	writer->out = stderr;
	writer->path = NULL;
	writer->opened = false;
}

/* In place, so that intervals can be read while the command runs. */
static void open_output(struct stat_run *run, const char *path)
{
	struct csink_outfile file;
	int err = csink_outfile_open(&file, path, CSINK_OUTFILE_IN_PLACE);

	run->writer.path = path;
	run->writer.out = err ? NULL : fdopen(file.fd, "w");
	if (run->writer.out)
		return;
	if (!err) {
		err = errno == EINVAL ? -EBADF : -errno; /* not open for writing */
		close(file.fd);
	}
	csink_stat_writer_fall_back(&run->writer, -err);
}

static int resolve_output(struct stat_run *run)
{
	const char *path = csink_options_text(run->options, CSINK_STAT_OPT_OUTPUT);
	bool json = csink_options_bool(run->options, CSINK_STAT_OPT_JSON);
	bool csv = csink_options_bool(run->options, CSINK_STAT_OPT_CSV);

	if (json && csv)
		return csink_fail(-EINVAL, "options --json and --csv exclude each other: give one of them");
	run->writer.format = json ? CSINK_STAT_JSON : csv ? CSINK_STAT_CSV : CSINK_STAT_TEXT;
	run->writer.intervals = run->interval_ns;
	run->writer.out = stderr;
	if (*path)
		open_output(run, path);
	return 0;
}

static int resolve(struct stat_run *run)
{
	uint64_t interval_ms = csink_options_number(run->options, CSINK_STAT_OPT_INTERVAL);

	run->repeat = csink_options_number(run->options, CSINK_STAT_OPT_REPEAT);
	run->per_thread = csink_options_bool(run->options, CSINK_STAT_OPT_PER_THREAD);
	if (interval_ms > (uint64_t)CSINK_TIMERQ_MAX_NS / 1000000)
		return csink_fail(-EINVAL, "option --interval: %llu ms is longer than any command runs",
				  (unsigned long long)interval_ms);
	run->interval_ns = interval_ms * 1000000;
	if (!!run->interval_ns + (run->repeat > 1) + run->per_thread > 1)
		return csink_fail(-EINVAL,
				  "options --repeat, --interval and --per-thread exclude each other: give one of them");
	return resolve_events(run) || resolve_output(run) ? -EINVAL : 0;
}

/* ---- reservation ---- */

static void note_reservation(void *arg, const char *line, bool is_error)
{
	(void)is_error;
	note(arg, "%s", line);
}

static struct csink_reservation_command reservation_of(struct stat_run *run)
{
	return (struct csink_reservation_command){
		.mode = csink_options_text(run->options, CSINK_STAT_OPT_RESERVE),
		.timeout_ns = csink_options_seconds(run->options, CSINK_STAT_OPT_RESERVE_TIMEOUT),
		.hooks = csink_options_text(run->options, CSINK_STAT_OPT_RESERVE_HOOKS),
		.specs = run->specs,
		.nr_specs = run->nr_specs,
		/* The events of the default are tried on every machine. */
		.own_choice = !*csink_options_text(run->options, CSINK_STAT_OPT_EVENTS),
		.inherited = &run->inherited,
		.note = note_reservation,
		.arg = run,
	};
}

/* ---- a run ---- */

static void on_watch(void *arg)
{
	struct stat_run *run = arg;

	if (run->threads)
		csink_stat_threads_drain(run->threads);
	else
		csink_stat_intervals_run(run->intervals);
}

/* Counters for the next child. A counter that cannot be had is noted in the result. */
static void open_counters(struct stat_run *run)
{
	char why[CSINK_WHY_BYTES];
	int err;

	csink_stat_counters_init(&run->counters, run->specs, run->nr_specs);
	if (!run->per_thread) {
		csink_stat_counters_open(&run->counters);
		return;
	}
	err = csink_stat_threads_open(&run->threads, &run->counters);
	if (!err)
		return;
	note(run, "threads are not counted separately: %s",
	     err == -ENOBUFS ? csink_explain_brief(ENOBUFS, why, sizeof(why)) : strerror(-err));
	csink_stat_counters_close(&run->counters);
	csink_stat_counters_init(&run->counters, run->specs, run->nr_specs);
	csink_stat_counters_open(&run->counters);
}

static bool counts_any(const struct stat_run *run)
{
	for (uint32_t i = 0; i < run->counters.nr; i++)
		if (!run->counters.counters[i].err)
			return true;
	return false;
}

static void take_threads(struct stat_run *run)
{
	struct csink_stat_threads_result *threads = &run->threads_result;

	if (csink_stat_threads_finish(run->threads, threads)) {
		note(run, "threads are not counted separately: no memory for them");
		return;
	}
	run->result.threads = threads;
	if (!threads->has_counts && threads->nr_incomplete && counts_any(run))
		note(run, "threads are not counted separately: this kernel does not report their counts when they exit "
			  "(Linux 5.13 and some later ones); `countersink run` samples each of them");
	else if (threads->nr_incomplete && counts_any(run))
		note(run, "the kernel lost the counts of %u threads: only the total includes them",
		     threads->nr_incomplete);
	if (threads->nr_lost)
		note(run, "%llu of the kernel's records of threads were lost: some are missing, or have too little",
		     (unsigned long long)threads->nr_lost);
}

static void take_result(struct stat_run *run, const struct csink_relay_end *end, uint64_t wall_ns)
{
	struct csink_stat_result *result = &run->result;
	struct csink_stat_value values[CSINK_STAT_MAX_EVENTS];
	struct csink_stat_reading reading;

	csink_stat_counters_read(&run->counters, &reading);
	csink_stat_counters_since(&run->counters, &reading, NULL, values);
	csink_stat_result_add(result, values, wall_ns);
	csink_moments_add(&result->wall_ns, (double)wall_ns);
	csink_moments_add(&result->user_ns, (double)csink_timeval_ns(&end->usage.ru_utime));
	csink_moments_add(&result->sys_ns, (double)csink_timeval_ns(&end->usage.ru_stime));
	result->max_rss_bytes = CSINK_MAX(result->max_rss_bytes, (uint64_t)end->usage.ru_maxrss * 1024);
	if (!result->nr_failed)
		result->status = end->status;
	result->nr_failed += end->status != 0;
}

static void start_intervals(struct stat_run *run, uint64_t start_ns)
{
	int err = csink_stat_intervals_start(&run->intervals, &run->counters, run->argv, &run->writer, run->interval_ns,
					     start_ns);

	if (err)
		note(run, "there are no intervals: %s", strerror(-err));
}

static void end_intervals(struct stat_run *run)
{
	int64_t missed = csink_stat_intervals_end(run->intervals);

	run->intervals = NULL;
	if (missed > 0)
		note(run, "%lld intervals passed before they could be read: what they counted is in the next one",
		     (long long)missed);
}

/* Returns only if that fails. */
static int run_alone(struct stat_run *run, int err)
{
	struct csink_reservation_command reservation = reservation_of(run);

	csink_reservation_finish(&run->reservation, &reservation);
	return csink_say_exec_failed(run->argv[0], -csink_start_failed(err, run->argv, &run->inherited));
}

/* Returns 0, or what to exit with where the command did not run. */
static int run_once(struct stat_run *run)
{
	struct csink_relay_end end;
	struct csink_child child;
	uint64_t wall_ns;
	struct csink_spare_fds spare;
	uint64_t start_ns;
	int err, watch_fd = -1;

	csink_spare_fds_take(&spare);
	open_counters(run);
	csink_spare_fds_release(&spare);
	start_ns = csink_monotonic_ns();
	err = csink_spawn(run->argv, environ, &run->inherited, &child);
	if (err && run->repeat == 1)
		return run_alone(run, err);
	if (err)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot start %s: %s", run->argv[0], strerror(-err));
	if (run->interval_ns)
		start_intervals(run, start_ns);
	if (run->threads)
		watch_fd = csink_stat_threads_fd(run->threads);
	else if (run->intervals)
		watch_fd = csink_stat_intervals_fd(run->intervals);
	err = csink_relay_wait(&run->relay, &child, watch_fd, on_watch, run, &end);
	wall_ns = csink_monotonic_ns() - start_ns;
	if (err)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot wait for %s: %s", run->argv[0], strerror(-err));
	if (end.exec_errno)
		return csink_say_exec_failed(run->argv[0], end.exec_errno);
	if (run->intervals)
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

/* The kernel's clocks count a task's whole time, whatever they are asked to leave out. */
static void note_clocks(struct stat_run *run)
{
	for (uint32_t i = 0; i < run->nr_specs; i++) {
		const struct csink_event_spec *spec = &run->specs[i];

		if (spec->rec.flags & CSINK_EVENT_CPU_NS && strchr(spec->rec.name, ':') &&
		    (spec->attr.exclude_user || spec->attr.exclude_kernel))
			note(run, "%s counts all CPU time, of user space and the kernel: a clock leaves neither out",
			     spec->rec.name);
	}
}

/* A count of 0 that may mean that there is no such event. */
static void note_zeros(struct stat_run *run)
{
	char why[CSINK_WHY_BYTES];

	for (uint32_t i = 0; i < run->nr_specs; i++) {
		const struct csink_stat_row *row = &run->result.rows[i];

		if (row->state == CSINK_STAT_COUNTED && row->value.nr && row->value.mean == 0 &&
		    csink_event_doubt_zero(&run->specs[i], why, sizeof(why)))
			note(run, "%s %s", run->specs[i].rec.name, why);
	}
}

static void note_program(struct stat_run *run)
{
	struct csink_program program;

	csink_program_find(run->argv[0], &program);
	if (program.reason == CSINK_SPAWN_SETUID)
		note(run, "%s %s: the kernel removes its events at exec", run->argv[0], program.why);
}

static void write_late(struct stat_run *run, int err)
{
	run->writer.out = NULL;
	csink_stat_writer_fall_back(&run->writer, err);
	if (run->result.nr_runs)
		csink_stat_write(&run->writer, &run->result);
}

static int run_and_write(struct stat_run *run)
{
	struct csink_reservation_command reservation = reservation_of(run);
	int status, err;

	csink_inherited_take(&run->inherited);
	err = csink_relay_init(&run->relay, &run->inherited);
	if (err)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot take signals: %s", strerror(-err));
	err = csink_reservation_begin(&run->reservation, &reservation);
	if (err == -EBUSY)
		csink_say_not_reserved(&run->reservation, "the command was not run");
	if (err < 0)
		return CSINK_EXIT_RUN_FAILED;
	note_program(run);
	note_clocks(run);
	run->result.argv = run->argv;
	run->result.counters = &run->counters;
	status = run_all(run);
	csink_reservation_finish(&run->reservation, &reservation);
	if (run->result.nr_failed && run->repeat > 1)
		note(run, "%u of %u runs failed", run->result.nr_failed, run->result.nr_runs);
	note_zeros(run);
	if (run->result.nr_runs) {
		csink_stat_write(&run->writer, &run->result);
		if (!status)
			status = csink_exit_status(run->result.status);
	}
	/* Some file systems report a full disk only at close(2). */
	if (run->writer.path && fclose(run->writer.out))
		write_late(run, errno);
	csink_stat_threads_close(run->threads);
	csink_stat_counters_close(&run->counters);
	free(run->threads_result.threads);
	for (uint32_t i = 0; i < run->result.nr_notes; i++)
		free(run->result.notes[i]);
	return status;
}

static int main_stat(const struct csink_options *o, int nr, char **operands)
{
	static struct stat_run run = {.reservation.reserve.fd = -1};

	if (!nr)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "no command given: countersink %s (see countersink help)",
				  csink_command_find("stat")->synopsis);
	run.options = o;
	run.argv = operands;
	if (resolve(&run))
		return CSINK_EXIT_RUN_FAILED;
	return run_and_write(&run);
}

const struct csink_command csink_command_stat = {
	.name = "stat",
	.synopsis = "stat [OPTION]... [--] COMMAND [ARGUMENT]...",
	.help = "run a command and count events in all its processes",
	.main = main_stat,
	CSINK_COMMAND_OPTIONS(CSINK_STAT_OPTIONS),
	.usage_status = CSINK_EXIT_RUN_FAILED,
	.failed_status = CSINK_EXIT_RUN_FAILED,
};
