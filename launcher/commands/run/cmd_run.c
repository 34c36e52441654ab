/* `countersink [run] COMMAND`: run a command with the library injected, collect what was recorded, report. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "include/internal/event.h"
#include "launcher/attach/boundary_samples.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/base/proc.h"
#include "launcher/collect/collect.h"
#include "launcher/commands/registry.h"
#include "launcher/commands/run/run_options.h"
#include "launcher/commands/run/run_ranks.h"
#include "launcher/commands/save.h"
#include "launcher/commands/start_failed.h"
#include "launcher/profile/profile.h"
#include "launcher/session/alone.h"
#include "launcher/session/choose_events.h"
#include "launcher/session/counted_command.h"
#include "launcher/session/kept_recordings.h"
#include "launcher/session/rate.h"
#include "launcher/session/relay.h"
#include "launcher/session/reserve_command.h"
#include "launcher/session/send_profile.h"
#include "launcher/session/slices.h"
#include "launcher/session/spawn.h"
#include "launcher/symbols/symbols_fetch.h"
#include "preload/core/seccomp_probe.h"

#define MAX_NAMED 4 /* processes that are listed by name in a line */

struct run {
	const struct csink_options *options;
	char **argv; /* the command */
	struct csink_run_ranks ranks;
	struct csink_kept_recordings kept; /* of a rank that is being ended */
	bool quiet, report;
	const char *texts[CSINK_NR_RUN_OPTS]; /* resolved: the values for the library */
	char frequency_text[24], period_text[24], alloc_text[CSINK_ALLOC_TEXT], output_text[2 * PATH_MAX];
	struct csink_save save;
	struct csink_slices slices;
	bool has_slices;
	const struct csink_inherited *inherited; /* for what is started when a slice is written */

	struct csink_chosen_events events;
	struct csink_injection injection;
	struct csink_run_directory removed_on_signal; /* as injection.directory, of the thread that awaits signals */
	bool inject;

	struct csink_reservation reservation;
	struct csink_outside_watch watch;
	struct csink_boundary boundary; /* what cannot be injected, sampled from outside */
	bool has_boundary;
	struct csink_outside outside;
	struct collector *collector; /* of a command with very many processes; NULL: none yet */
	uint64_t next_take_ns;
};

/* ---- what was asked for ---- */

static int resolve_events(struct run *run)
{
	struct csink_event_error err;
	char where[64];
	/* One place is for CPU time, one for time off the CPU. */
	uint32_t max = CSINK_MAX_EVENTS - 1 - (uint32_t)csink_options_bool(run->options, CSINK_OPT_OFF_CPU);
	const char *asked = csink_options_text(run->options, CSINK_OPT_EVENTS);
	CSINK_AUTO_FREE char *list = NULL;

	if (csink_options_bool(run->options, CSINK_OPT_LEAKS) && !csink_list_has(asked, "alloc")) {
		if (asprintf(&list, "alloc%s%s", strcmp(asked, "auto") ? "," : "", strcmp(asked, "auto") ? asked : "") <
		    0)
			return csink_fail(-ENOMEM, "no memory");
		asked = list;
	}
	if (csink_choose_planned(asked, max, &run->events, run->outside.event_reason, sizeof(run->outside.event_reason),
				 &err)) {
		csink_options_where(run->options, CSINK_OPT_EVENTS, where, sizeof(where));
		return csink_fail(-EINVAL, "%s: %s", where, err.line);
	}
	if (*run->events.text)
		run->texts[CSINK_OPT_EVENTS] = run->events.text;
	return 0;
}

static void resolve_own(struct run *run, uint64_t *period)
{
	csink_own_values(&run->events, period, csink_options_bool(run->options, CSINK_OPT_LEAKS), run->alloc_text,
			 &run->texts[CSINK_OPT_LOCK]);
	run->texts[CSINK_OPT_ALLOC] = run->alloc_text;
	run->outside.has_alloc = *run->alloc_text != 0;
	run->outside.has_lock = run->events.has_lock;
}

/* A clock's event costs at each switch of threads, a timer that the kernel's tick serves does not. */
static void choose_engine(struct run *run, uint64_t frequency)
{
	bool is_clock = run->events.specs[0].rec.flags & CSINK_EVENT_CPU_NS;

	if (!is_clock || strcmp(csink_options_text(run->options, CSINK_OPT_ENGINE), "auto") ||
	    csink_options_bool(run->options, CSINK_OPT_OFF_CPU) || !csink_slices_prefer_timer(frequency))
		return;
	run->texts[CSINK_OPT_ENGINE] = "timer";
	csink_outside_note(&run->outside,
			   "--rotate samples by timers at %llu Hz, which cost nothing where threads switch; "
			   "--engine=sigtrap is more exact",
			   (unsigned long long)frequency);
}

static int resolve_rate(struct run *run)
{
	bool is_clock = run->events.specs[0].rec.flags & CSINK_EVENT_CPU_NS;
	bool is_default = run->options->values[CSINK_OPT_FREQUENCY].source == CSINK_FROM_DEFAULT;
	struct csink_rate rate;
	const char *wrong;
	char why[CSINK_WHY_BYTES];
	uint64_t allowed;

	if (csink_rate_resolve(run->options, CSINK_OPT_PERIOD, CSINK_OPT_FREQUENCY, &rate, &wrong))
		return csink_fail(-EINVAL, "%s", wrong);
	resolve_own(run, &rate.period);
	if (rate.period) {
		snprintf(run->period_text, sizeof(run->period_text), "%llu", (unsigned long long)rate.period);
		run->texts[CSINK_OPT_PERIOD] = run->period_text;
		return 0;
	}
	run->texts[CSINK_OPT_PERIOD] = "";
	if (run->has_slices && is_default)
		rate.frequency = CSINK_SLICES_FREQUENCY;
	allowed = csink_rate_allowed(rate.frequency, is_clock, why, sizeof(why));
	if (run->has_slices)
		choose_engine(run, allowed);
	if (allowed == csink_options_number(run->options, CSINK_OPT_FREQUENCY))
		return 0;
	run->texts[CSINK_OPT_FREQUENCY] = run->frequency_text;
	snprintf(run->frequency_text, sizeof(run->frequency_text), "%llu", (unsigned long long)allowed);
	if (!*why)
		return 0;
	csink_outside_note(&run->outside, "%s", why);
	if (!run->quiet)
		csink_say("%s", why);
	return 0;
}

/* The library gets an absolute path without patterns. */
static void report_output(struct run *run)
{
	size_t n = 0;
	char directory[PATH_MAX];

	if (run->save.path[0] != '/' && getcwd(directory, sizeof(directory)))
		n = (size_t)snprintf(run->output_text, PATH_MAX, "%s/", directory);
	for (const char *c = run->save.path; *c && n + 2 < sizeof(run->output_text); c++) {
		run->output_text[n++] = *c;
		if (*c == '%')
			run->output_text[n++] = '%';
	}
	run->output_text[n] = '\0';
	run->texts[CSINK_OPT_OUTPUT] = run->output_text;
}

/* All ranks of a parallel job that are profiled would write one file. */
static void check_output(const struct run *run)
{
	const char *output = csink_options_text(run->options, CSINK_OPT_OUTPUT);

	if (run->ranks.has_others && !run->quiet && !strstr(output, "%r") && !strstr(output, "%p") &&
	    !strstr(output, "%h"))
		csink_say("each rank writes %s, in place of the others: name it with %%r, as in prof.%%r.pb.gz",
			  output);
}

static int resolve_output(struct run *run)
{
	struct csink_options named = *run->options;
	int has;

	if (run->ranks.is_rank && named.values[CSINK_OPT_OUTPUT].source == CSINK_FROM_DEFAULT)
		named.values[CSINK_OPT_OUTPUT].text = CSINK_RANKS_OUTPUT;
	else
		check_output(run);
	has = csink_slices_resolve(&run->slices, &named, CSINK_OPT_ROTATE, CSINK_OPT_OUTPUT, run->argv[0], getpid());
	if (has < 0)
		return has;
	run->has_slices = has;
	strcpy(run->save.path, run->slices.answer.last_path);
	if (!has && csink_save_resolve(&run->save, &named, CSINK_OPT_OUTPUT, run->argv[0], getpid()))
		return -EINVAL;
	report_output(run);
	return 0;
}

static int resolve(struct run *run)
{
	const struct csink_option_value *env_report = &run->options->values[CSINK_OPT_REPORT];

	for (uint32_t i = 0; i < CSINK_NR_RUN_OPTS; i++) {
		run->texts[i] = csink_options_text(run->options, i);
		if (csink_run_options[i].flags & CSINK_OPT_BOOL)
			run->texts[i] = csink_options_bool(run->options, i) ? "1" : "0";
	}
	if (csink_options_bool(run->options, CSINK_OPT_WALL))
		run->texts[CSINK_OPT_TIMELINE] = "1";
	run->quiet = csink_options_bool(run->options, CSINK_OPT_QUIET) || !run->ranks.prints;
	run->report = !run->quiet && !csink_options_bool(run->options, CSINK_OPT_NO_REPORT);
	/* COUNTERSINK_REPORT=0 is a wish for both ways to run. */
	if (env_report->source == CSINK_FROM_ENVIRONMENT && !csink_options_bool(run->options, CSINK_OPT_REPORT))
		run->report = false;
	run->outside.is_filtered = strcmp(run->texts[CSINK_OPT_FOLLOW], "all") != 0;
	if (run->outside.is_filtered)
		csink_outside_note(&run->outside, "%s: --follow=%s",
				   strcmp(run->texts[CSINK_OPT_FOLLOW], "none")
					   ? "only programs with these names are profiled"
					   : "only the command is profiled",
				   run->texts[CSINK_OPT_FOLLOW]);
	return csink_send_check(run->options, CSINK_OPT_SEND) || resolve_events(run) || resolve_output(run) ||
			       resolve_rate(run)
		       ? -EINVAL
		       : 0;
}

/* ---- what cannot be injected ---- */

/* The events as the library samples them: each group's first has its rate. */
static void rate_events(const struct run *run, struct csink_event_spec *specs)
{
	uint64_t period = 0, frequency = csink_options_number(run->options, CSINK_OPT_FREQUENCY);

	if (*run->texts[CSINK_OPT_PERIOD])
		period = strtoull(run->texts[CSINK_OPT_PERIOD], NULL, 10);
	if (*run->texts[CSINK_OPT_FREQUENCY])
		frequency = strtoull(run->texts[CSINK_OPT_FREQUENCY], NULL, 10);
	memcpy(specs, run->events.specs, run->events.nr * sizeof(*specs));
	for (uint32_t i = 0; i < run->events.nr; i++) {
		struct perf_event_attr *attr = &specs[i].attr;

		if (attr->sample_period || attr->freq)
			continue; /* by its own text */
		if (period)
			attr->sample_period = period;
		else if (specs[i].rec.flags & CSINK_EVENT_CPU_NS)
			attr->sample_period = CSINK_NS_PER_S / frequency;
		else
			attr->freq = 1, attr->sample_freq = frequency;
	}
}

static bool wants_outside(const struct run *run)
{
	const char *engine = csink_options_text(run->options, CSINK_OPT_ENGINE);

	return !strcmp(csink_options_text(run->options, CSINK_OPT_OUTSIDE), "auto") && strcmp(engine, "timer") &&
	       strcmp(engine, "none");
}

/* Where events are refused, such programs are counted as they are without it. */
static void begin_boundary(struct run *run)
{
	const char *unwind = csink_options_text(run->options, CSINK_OPT_UNWIND);
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_boundary_how how = {
		.specs = specs,
		.nr_specs = run->events.nr,
		.stacks = !strcmp(unwind, "fp")     ? CSINK_ATTACH_FP
			  : !strcmp(unwind, "none") ? CSINK_ATTACH_LEAF
						    : CSINK_ATTACH_COPY,
		.walk_by = !strcmp(unwind, "dwarf") ? CSINK_WALK_BY_OURS : CSINK_WALK_BY_EITHER,
		.max_depth = (uint32_t)CSINK_MIN(csink_options_number(run->options, CSINK_OPT_MAX_DEPTH),
						 (uint64_t)CSINK_MAX_DEPTH),
		.follow = csink_options_text(run->options, CSINK_OPT_FOLLOW),
		.directory = run->inject ? run->injection.directory.path : NULL,
	};

	if (!wants_outside(run))
		return;
	if (how.directory && csink_deadly_calls & CSINK_DEADLY_ARM) {
		how.directory = NULL;
		csink_outside_note(
			&run->outside,
			"a seccomp filter kills processes that call %s: programs that cannot be injected are "
			"not sampled where others start them",
			csink_filters_words(CSINK_DEADLY_ARM));
	}
	rate_events(run, specs);
	run->has_boundary = !csink_boundary_begin(&run->boundary, &how, &run->outside);
	if (!run->has_boundary)
		csink_boundary_free(&run->boundary);
}

/* The counters are open, and the command is not started. */
static int open_boundary(void *arg, int watch_fd)
{
	struct run *run = arg;
	enum csink_spawn_reason reason = run->injection.program.reason;
	char why[CSINK_WHY_BYTES];
	int err = 0;

	begin_boundary(run);
	/* At the exec of a set-user-ID program the kernel ends the events. */
	if (run->has_boundary && reason && reason != CSINK_SPAWN_SETUID)
		err = csink_boundary_open_self(&run->boundary);
	if (run->has_boundary && watch_fd >= 0 && !err)
		err = csink_boundary_watch(&run->boundary, watch_fd);
	if (!err)
		return run->has_boundary ? csink_boundary_fd(&run->boundary) : watch_fd;
	csink_outside_note(&run->outside, "programs that cannot be injected were not sampled: %s",
			   csink_explain_brief(-err, why, sizeof(why)));
	csink_boundary_free(&run->boundary);
	run->has_boundary = false;
	return watch_fd;
}

static void finish_boundary(struct run *run)
{
	const char *directory = run->injection.directory.path;
	CSINK_AUTO_FREE struct csink_collect_start *starts = NULL;
	uint32_t nr = 0;
	int err = 0;

	if (!run->has_boundary)
		return;
	csink_boundary_stop(&run->boundary, &run->outside);
	if (run->inject && csink_boundary_has_samples(&run->boundary))
		nr = csink_collect_starts(run->collector, directory, &starts);
	if (!run->inject) /* its recordings need a place */
		err = csink_run_directory_create(&run->injection.directory);
	if (!err)
		err = csink_boundary_finish(&run->boundary, directory, &(struct csink_attach_starts){starts, nr},
					    &run->outside);
	run->inject |= !err;
	if (err)
		csink_outside_note(&run->outside, "samples of programs that cannot be injected are missing: %s",
				   strerror(-err));
	csink_boundary_free(&run->boundary);
	run->has_boundary = false;
}

/* ---- before and after the command ---- */

static void note_reservation(void *arg, const char *line, bool is_error)
{
	struct run *run = arg;

	if (is_error)
		csink_say("%s", line);
	csink_outside_note(&run->outside, "%s", line);
}

static struct csink_reservation_command reservation_of(struct run *run, const struct csink_inherited *inherited)
{
	return (struct csink_reservation_command){
		.mode = csink_options_text(run->options, CSINK_OPT_RESERVE),
		.timeout_ns = csink_options_seconds(run->options, CSINK_OPT_RESERVE_TIMEOUT),
		.hooks = csink_options_text(run->options, CSINK_OPT_RESERVE_HOOKS),
		.specs = run->events.specs,
		.nr_specs = run->events.nr,
		.own_choice = !strcmp(csink_options_text(run->options, CSINK_OPT_EVENTS), "auto"),
		.inherited = inherited,
		.note = note_reservation,
		.arg = run,
	};
}

/* Find out whether the command can be injected, and prepare it. A failure is reported; the command runs all the
 * same. */
static void prepare_injection(struct run *run)
{
	const char *place = csink_options_text(run->options, CSINK_OPT_PLACE);
	char why[CSINK_WHY_BYTES], path[PATH_MAX];
	int err;

	if (*place && realpath(place, path))
		setenv(CSINK_ENV_PREFIX "PLACE", path, 1); /* csink_run_dir_places() */
	else if (*place)
		csink_say("option --place: %s: %s; another directory is used", place, strerror(errno));
	err = csink_injection_prepare(&run->injection, run->argv[0], why, sizeof(why));

	if (err == -ELIBACC) {
		csink_say("%s: no functions will be known, the command is counted only", why);
		csink_outside_note(&run->outside, "no functions: %s", why);
	} else if (err && err != -ENOEXEC) {
		/* Where no place takes a profile either, that has been reported, and the report has this. */
		if (!run->save.is_nowhere)
			csink_say("no directory for recordings in --place, $XDG_RUNTIME_DIR, /dev/shm, $TMPDIR or "
				  "/tmp: %s; "
				  "the command is counted only (--place=DIRECTORY names one that can be written)",
				  strerror(-err));
		csink_outside_note(&run->outside, "no functions: no directory for recordings (%s)", strerror(-err));
	}
	run->inject = !err;
}

/* How often finished recordings are looked for, and from how many on they are read before the end. */
#define TAKE_NS (2 * CSINK_NS_PER_S)
#define TAKE_LEAST 1000

/* Each process leaves a recording in memory. Where there are very many, they are read while the command runs. */
static void drain_outside(void *arg)
{
	struct run *run = arg;
	uint64_t now = csink_monotonic_ns();

	if (run->has_boundary)
		csink_boundary_drain(&run->boundary); /* first: processes wait for it */
	csink_outside_drain(&run->watch);
	/* Of slices, each is the difference of what is there. */
	if (!run->inject || run->has_slices || now < run->next_take_ns)
		return;
	run->next_take_ns = now + TAKE_NS;
	if (!run->collector)
		run->collector = csink_collect_begin(&run->outside);
	/* An error here occurs again at the end, and is reported there. */
	if (run->collector)
		csink_collect_take(run->collector, run->injection.directory.path, TAKE_LEAST);
}

static void remove_directory(void *arg)
{
	csink_run_directory_remove(arg);
}

/* For the thread that waits for INT and TERM: this one goes on reading the directory until the process ends. False: it
 * cannot be opened again. */
static bool copy_directory(struct csink_run_directory *copy, const struct csink_run_directory *directory)
{
	*copy = *directory;
	if (directory->fd < 0)
		return true;
	copy->fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return copy->fd >= 0;
}

/* Which of the processes that still ran when they were counted run now. */
static void settle_running(struct run *run)
{
	for (uint32_t i = 0; run->outside.processes && i < run->outside.nr_processes; i++) {
		struct csink_outside_process *process = &run->outside.processes[i];

		process->still_running = process->still_running && csink_proc_is_running(process->pid, 0);
	}
}

/*
 * Name the processes that outlive the command; from the recordings, if the kernel did not report processes. From here
 * on each that has a recording leaves a profile of its own, also if it ends before its recording is read.
 */
static void note_running(struct run *run)
{
	const struct csink_outside_process *processes;
	uint32_t nr = 0, nr_writers = 0;
	char names[256] = "", later[2 * PATH_MAX] = "";
	int32_t pids[MAX_NAMED];

	if (run->inject) {
		csink_run_directory_mark(run->injection.directory.fd, run->injection.directory.path);
		nr_writers = csink_run_directory_writers(&run->injection.directory, pids, MAX_NAMED);
	}
	settle_running(run);
	processes = run->outside.processes;
	for (uint32_t i = 0; processes && i < run->outside.nr_processes; i++) {
		if (!processes[i].still_running || nr++ >= MAX_NAMED)
			continue;
		csink_append(names, sizeof(names), "%s%s %d", *names ? ", " : "", processes[i].comm, processes[i].pid);
	}
	if (!processes)
		nr = nr_writers;
	for (uint32_t i = 0; !processes && i < CSINK_MIN(nr, (uint32_t)MAX_NAMED); i++)
		csink_append(names, sizeof(names), "%s%d", *names ? ", " : "", pids[i]);
	if (!nr)
		return;
	if (nr_writers)
		snprintf(later, sizeof(later), "processes still running will write %s.PID; ", run->save.path);
	csink_outside_note(
		&run->outside,
		"%u process%s still run%s (%s%s): data so far is included; %sprograms started from now on are "
		"not profiled",
		nr, nr == 1 ? "" : "es", nr == 1 ? "s" : "", names, nr > MAX_NAMED ? ", ..." : "", later);
}

/* ---- slices ---- */

static int send_slice(void *arg, const char *path)
{
	struct run *run = arg;

	return csink_send_profile(run->options, CSINK_OPT_SEND, path, run->inherited, run->quiet);
}

/* Where none can be written while the command runs, the whole run is one. */
static void begin_slices(struct run *run)
{
	int err;

	if (run->inject)
		strcpy(run->slices.run_dir, run->injection.directory.path);
	run->slices.outside = &run->outside;
	if (*csink_options_text(run->options, CSINK_OPT_SEND))
		run->slices.on_written = send_slice;
	run->slices.arg = run;
	snprintf(run->outside.command, sizeof(run->outside.command), "%s", run->argv[0]);
	err = csink_slices_begin(&run->slices);
	if (err)
		csink_say("no slices, but one profile at the end: %s", strerror(-err));
}

/* The report of the whole run, of which there are slices alone. */
static void report_whole(struct run *run, const char *directory)
{
	struct csink_profile *whole;

	if (csink_collect(directory, &run->outside, &whole))
		return;
	run->save.folds_native = csink_options_bool(run->options, CSINK_OPT_FOLD_NATIVE);
	run->save.has_wall = csink_options_bool(run->options, CSINK_OPT_WALL);
	run->save.path[0] = '\0';
	csink_save_report(&run->save, whole,
			  csink_options_bool(run->options, CSINK_OPT_ALL) ? CSINK_SAVE_REPORT_ALL : CSINK_SAVE_REPORT);
	csink_profile_free(whole);
}

/* The last slice, and the report. Returns whether the slice is in a file. */
static bool finish_slices(struct run *run)
{
	const char *directory = run->inject ? run->injection.directory.path : NULL;
	int err;

	/* Samples from outside have become recordings, for which there may have been no directory. */
	if (directory)
		strcpy(run->slices.run_dir, directory);
	err = csink_slices_finish(&run->slices);
	csink_debuginfod_wanted = csink_options_bool(run->options, CSINK_OPT_DEBUGINFOD);
	if (run->report && csink_slices_has_whole(&run->slices))
		report_whole(run, directory);
	if (!run->quiet)
		csink_slices_say(&run->slices);
	return !err;
}

/* ---- the profile ---- */

/* Returns whether it is in a file. */
static bool make_profile(struct run *run, const struct csink_inherited *inherited)
{
	struct csink_profile *profile;
	const char *directory;
	int err;

	if (run->has_slices)
		return finish_slices(run);
	directory = run->inject ? run->injection.directory.path : NULL;
	csink_debuginfod_wanted = csink_options_bool(run->options, CSINK_OPT_DEBUGINFOD);
	err = run->collector ? csink_collect_finish(run->collector, directory, &profile)
			     : csink_collect(directory, &run->outside, &profile);

	if (err) {
		csink_say("no profile: %s", strerror(-err));
		return false;
	}
	run->save.folds_native = csink_options_bool(run->options, CSINK_OPT_FOLD_NATIVE);
	run->save.has_wall = csink_options_bool(run->options, CSINK_OPT_WALL);
	csink_save_profile(&run->save, profile,
			   !run->report ? run->quiet ? CSINK_SAVE_ERRORS : CSINK_SAVE_WHERE
			   : csink_options_bool(run->options, CSINK_OPT_ALL) ? CSINK_SAVE_REPORT_ALL
									     : CSINK_SAVE_REPORT);
	csink_profile_free(profile);
	csink_send_profile(run->options, CSINK_OPT_SEND, run->save.path, inherited, run->quiet);
	return *run->save.path;
}

/* A rank that is ended by its job's launcher, which kills some milliseconds later: names take longer than a copy. */
static void keep_recordings(void *arg)
{
	struct run *run = arg;

	struct csink_kept_recordings former = run->kept;

	if (run->inject)
		csink_recordings_keep(&run->kept, run->injection.directory.path, run->save.path);
	if (*run->kept.path)
		csink_recordings_drop(&former);
	else
		run->kept = former;
}

static void make_profile_of_ended(struct run *run, const struct csink_inherited *inherited)
{
	keep_recordings(run); /* the command has gone on since */
	if (make_profile(run, inherited))
		csink_recordings_drop(&run->kept);
	else if (*run->kept.path)
		csink_say("the recordings are in %s: `countersink report -o FILE DIRECTORY` makes a profile of them",
			  run->kept.path);
}

/* ---- the run ---- */

/* From the fork to the last count. Returns 0, or what to exit with where the command did not run. */
static int run_command(struct run *run, struct csink_relay *relay, const struct csink_reservation_command *reservation)
{
	struct csink_counted_command command = {
		.argv = run->argv,
		.env = csink_env_build(environ, run->inject ? run->injection.library : NULL,
				       run->injection.directory.path, run->texts),
		.specs = run->events.specs,
		.nr_specs = run->events.nr,
		.program = &run->injection.program,
		.inherited = reservation->inherited,
		.relay = relay,
		.on_open = open_boundary,
		.on_watch = drain_outside,
		.arg = run,
	};
	struct csink_relay_end end;
	bool started;
	int err;

	if (!command.env)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot start %s: no memory", run->argv[0]);
	err = csink_counted_command_run(&command, &run->watch, &run->outside, &end, &started);
	free(command.env);
	if (!started) {
		csink_reservation_finish(&run->reservation, reservation);
		csink_run_directory_remove(&run->injection.directory);
		return csink_say_exec_failed(run->argv[0], -csink_start_failed(err, run->argv, reservation->inherited));
	}
	if (err)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot wait for %s: %s", run->argv[0], strerror(-err));
	return end.exec_errno ? csink_say_exec_failed(run->argv[0], end.exec_errno) : 0;
}

/* Without an object that was asked for, what it measures is left out, and all else is there. */
static void leave_out_missing(struct run *run)
{
	const char *missing = run->inject ? csink_missing_object(run->injection.library, run->texts) : NULL;

	if (!missing)
		return;
	csink_outside_note(&run->outside,
			   "alloc and lock are not measured: %s is not beside the library (incomplete installation?)",
			   missing);
	run->texts[CSINK_OPT_ALLOC] = run->texts[CSINK_OPT_LOCK] = "";
}

static int run_and_report(struct run *run)
{
	struct csink_inherited inherited;
	struct csink_reservation_command reservation;
	struct csink_relay relay;
	int status, err;

	csink_inherited_take(&inherited);
	err = csink_relay_init(&relay, &inherited);
	if (err)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot take signals: %s", strerror(-err));
	if (run->ranks.is_rank) {
		relay.on_term = keep_recordings;
		relay.on_term_arg = run;
	}
	reservation = reservation_of(run, &inherited);
	err = csink_reservation_begin(&run->reservation, &reservation);
	if (err == -EBUSY)
		csink_say_not_reserved(&run->reservation, "the command was not run");
	/* Now that counters are left to us, auto may find that they count. */
	if (err < 0 ||
	    (err && !csink_reservation_is_wanted(run->events.specs, run->events.nr) && resolve_events(run))) {
		csink_outside_free(&run->outside);
		return CSINK_EXIT_RUN_FAILED;
	}
	prepare_injection(run);
	leave_out_missing(run);
	run->inherited = &inherited;
	if (run->has_slices)
		begin_slices(run);
	status = run_command(run, &relay, &reservation);
	if (!status)
		finish_boundary(run);
	else if (run->has_boundary)
		csink_boundary_free(&run->boundary);
	if (status)
		csink_slices_cancel(&run->slices);
	csink_outside_close(&run->watch);
	csink_reservation_finish(&run->reservation, &reservation);
	if (!status) {
		status = csink_exit_status(run->outside.command_status);
		/* If there can be no such thread, INT and TERM wait until the report is printed. */
		if (copy_directory(&run->removed_on_signal, &run->injection.directory))
			csink_relay_release(&relay, remove_directory, &run->removed_on_signal);
		snprintf(run->outside.command, sizeof(run->outside.command), "%s", run->argv[0]);
		note_running(run);
		if (*run->kept.path || (run->ranks.is_rank && relay.ending == SIGTERM))
			make_profile_of_ended(run, &inherited);
		else
			make_profile(run, &inherited);
	}
	csink_run_directory_remove(&run->injection.directory);
	csink_outside_free(&run->outside);
	return status;
}

static int main_run(const struct csink_options *o, int nr, char **operands)
{
	static struct run run = {.injection.directory.fd = -1, .reservation.reserve.fd = -1, .slices.fd = -1};

	if (!nr)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "no command given: countersink %s (see countersink help)",
				  csink_command_find("run")->synopsis);
	run.options = o;
	run.argv = operands;
	/* Where a filter kills for what neither launcher nor library can do without, the command runs without them. */
	if (csink_filters_forbid_all(csink_deadly_calls)) {
		csink_say("a seccomp filter kills processes that call %s, which profiling needs: %s runs without being "
			  "profiled",
			  csink_deadly_name, run.argv[0]);
		return csink_say_exec_failed(run.argv[0], -csink_run_alone(run.argv, NULL));
	}
	if (csink_run_ranks_find(o, &run.ranks))
		return CSINK_EXIT_RUN_FAILED;
	if (!run.ranks.is_profiled)
		return csink_say_exec_failed(run.argv[0], -csink_run_alone(run.argv, NULL));
	if (resolve(&run))
		return CSINK_EXIT_RUN_FAILED;
	return run_and_report(&run);
}

const struct csink_command csink_command_run = {
	.name = "run",
	.synopsis = "[run] [OPTION]... [--] COMMAND [ARGUMENT]...",
	.help = "run a command and report the cost of its functions",
	.main = main_run,
	CSINK_COMMAND_OPTIONS(CSINK_RUN_COMMAND_OPTIONS),
	.usage_status = CSINK_EXIT_RUN_FAILED,
	.failed_status = CSINK_EXIT_RUN_FAILED,
};
