/*
 * `countersink report`: print a profile's report again, in one of its forms, or make the profile of a run directory.
 * The library that runs without launcher calls it at exit, as `countersink report --quiet -o PROFILE DIRECTORY`.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/recording_format.h"
#include "include/internal/shared_options.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/collect/run_directory.h"
#include "launcher/collect/run_reading.h"
#include "launcher/commands/registry.h"
#include "launcher/commands/report/read_ranks.h"
#include "launcher/commands/report/report_options.h"
#include "launcher/commands/save.h"
#include "launcher/output/export.h"
#include "launcher/output/pager.h"
#include "launcher/output/pprof.h"
#include "launcher/output/report.h"
#include "launcher/output/show_progress.h"
#include "launcher/profile/filter.h"
#include "launcher/profile/fold_native.h"
#include "launcher/profile/lock_waits.h"
#include "launcher/profile/pick.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/rows.h"
#include "launcher/profile/wall.h"
#include "launcher/session/leftovers.h"
#include "launcher/session/open_profile.h"
#include "launcher/session/send_profile.h"
#include "launcher/session/slice_keeper.h"
#include "launcher/symbols/symbols_fetch.h"

#define DEFAULT_FILE "countersink.pb.gz"
#define MAX_LEFTOVERS 16 /* that are listed */

static bool is_asked(const struct csink_options *o, enum csink_report_opt option)
{
	return *csink_options_text(o, option) != 0;
}

/* ---- what to print ---- */

static enum csink_by by_of(const struct csink_options *o)
{
	enum csink_by by = CSINK_BY_FUNCTION;

	while (strcmp(csink_by_words[by], csink_options_text(o, CSINK_REPORT_OPT_BY)))
		by++;
	return by;
}

/* Rows of waits for locks, which have no time. */
static bool wants_waits(const struct csink_options *o)
{
	return by_of(o) == CSINK_BY_LOCK || by_of(o) == CSINK_BY_HOLDER;
}

static bool wants_ranks(const struct csink_options *o)
{
	return by_of(o) == CSINK_BY_RANK || csink_options_bool(o, CSINK_REPORT_OPT_RANKS);
}

static uint32_t limit_of(const struct csink_options *o, bool is_machine)
{
	uint64_t limit = csink_options_number(o, CSINK_REPORT_OPT_LIMIT);

	/* --all in the environment gives way to --limit on the command line, but not to its default. */
	if (csink_options_bool(o, CSINK_REPORT_OPT_ALL) &&
	    o->values[CSINK_REPORT_OPT_ALL].source >= o->values[CSINK_REPORT_OPT_LIMIT].source)
		return 0;
	/* Programs want all rows, unless an option limits them. */
	if (is_machine && o->values[CSINK_REPORT_OPT_LIMIT].source == CSINK_FROM_DEFAULT)
		return 0;
	return CSINK_MIN(limit, UINT32_MAX);
}

static int fold_of(const struct csink_options *o, double *fold)
{
	const char *text = csink_options_text(o, CSINK_REPORT_OPT_FOLD);
	char *end;

	*fold = strtod(text, &end);
	if (end != text && !*end && *fold >= 0 && *fold <= 100)
		return 0;
	return csink_fail(-EINVAL, "option --fold: '%s' is no share from 0 to 100", text);
}

static int print_functions(const struct csink_options *o, const struct csink_profile *p,
			   const struct csink_report_options *how, bool *is_reported)
{
	const char *callers = csink_options_text(o, CSINK_REPORT_OPT_CALLERS);
	const char *annotate = csink_options_text(o, CSINK_REPORT_OPT_ANNOTATE);
	const char *pattern = *annotate ? annotate : callers;
	CSINK_AUTO(csink_rows_free) struct csink_rows rows;
	CSINK_AUTO_FREE bool *picked = NULL;
	char why[CSINK_WHY_BYTES] = "no memory";
	int err = csink_rows_build(&rows, p, CSINK_BY_FUNCTION);

	if (!err && *pattern)
		err = csink_pick_functions(&rows, pattern, &picked, why, sizeof(why));
	if (err) {
		csink_say("%s", why);
		*is_reported = true;
		return err;
	}
	if (*annotate)
		return csink_report_annotate(stdout, p, how, &rows, picked,
					     csink_options_bool(o, CSINK_REPORT_OPT_JSON));
	if (csink_options_bool(o, CSINK_REPORT_OPT_JSON))
		return csink_report_tree_json(stdout, p, &rows, picked);
	if (csink_options_bool(o, CSINK_REPORT_OPT_CSV))
		return csink_report_tree_csv(stdout, p, &rows, picked);
	return csink_report_tree_print(stdout, p, how, &rows, picked);
}

static int print_table(const struct csink_options *o, const struct csink_profile *p,
		       const struct csink_report_options *how)
{
	bool json = csink_options_bool(o, CSINK_REPORT_OPT_JSON), csv = csink_options_bool(o, CSINK_REPORT_OPT_CSV);
	int err;

	if (csink_options_bool(o, CSINK_REPORT_OPT_RANKS))
		return json  ? csink_report_ranks_json(stdout, p, how)
		       : csv ? csink_report_ranks_csv(stdout, p, how)
			     : csink_report_ranks_print(stdout, p, how);
	if (json)
		err = csink_report_json(stdout, p, how);
	else if (csv)
		err = csink_report_csv(stdout, p, how);
	else
		err = csink_report_print(stdout, p, how);
	return err;
}

static int print(const struct csink_options *o, const struct csink_profile *p, const char *file,
		 const struct csink_wall *wall)
{
	bool is_machine = csink_options_bool(o, CSINK_REPORT_OPT_JSON) || csink_options_bool(o, CSINK_REPORT_OPT_CSV);
	struct csink_report_options how;
	bool is_reported = false;
	int err;

	csink_report_options_init(&how, stdout);
	how.limit = limit_of(o, is_machine);
	how.file = file;
	how.by = by_of(o);
	how.wall = wall;
	err = fold_of(o, &how.fold);
	if (err)
		return err;
	if (!is_machine && !csink_options_bool(o, CSINK_REPORT_OPT_NO_PAGER))
		csink_pager_start();
	if (is_asked(o, CSINK_REPORT_OPT_CALLERS) || is_asked(o, CSINK_REPORT_OPT_ANNOTATE) ||
	    csink_options_bool(o, CSINK_REPORT_OPT_TREE))
		err = print_functions(o, p, &how, &is_reported);
	else
		err = print_table(o, p, &how);
	err = csink_pager_end(err);
	if (err && ferror(stdout))
		csink_say_unwritten("standard output", -err, NULL);
	else if (err && !is_reported)
		csink_say("the report cannot be printed: %s", strerror(-err));
	return err;
}

/* ---- what to print it of ---- */

static int choose_event(const struct csink_options *o, struct csink_profile *p)
{
	const char *event = csink_options_text(o, CSINK_REPORT_OPT_EVENT);
	char hint[256];
	int type = csink_lock_waits_type(p);

	if (wants_waits(o) && type < 0)
		return csink_fail(-EINVAL, "option --by: the profile has no waits for locks: countersink run -e lock "
					   "measures them");
	if (wants_waits(o))
		p->default_type = (uint32_t)type;
	if (!*event)
		return 0;
	type = csink_profile_event_find(p, event, hint, sizeof(hint));
	if (type < 0)
		return csink_fail(-EINVAL, "option --event: the profile has no '%s'%s", event, hint);
	p->default_type = (uint32_t)type;
	return 0;
}

/*
 * The columns of --wall, by the whole profile: before anything else is taken out of it. is_added: whether they are
 * there. COUNTERSINK_WALL, which is meant for run, too, does without them where there can be none.
 */
static int add_wall(const struct csink_options *o, struct csink_profile *p, struct csink_wall *wall, bool *is_added)
{
	const char *text = csink_options_text(o, CSINK_REPORT_OPT_PARALLELISM);
	bool is_wanted = csink_options_bool(o, CSINK_REPORT_OPT_WALL);
	struct csink_wall_range range = {0, 0};
	char why[CSINK_WHY_BYTES];
	int err;

	*is_added = false;
	if (*text && csink_wall_range_parse(text, &range))
		return csink_fail(-EINVAL,
				  "option --parallelism: '%s' is neither a number of threads nor a range (1-2)", text);
	if ((!is_wanted && !*text) || wants_waits(o))
		return 0;
	err = csink_wall_apply(p, &range, wall, why, sizeof(why));
	*is_added = !err;
	if (err == -ENODATA && !*text && o->values[CSINK_REPORT_OPT_WALL].source == CSINK_FROM_ENVIRONMENT)
		return 0;
	if (err)
		csink_say("%s%s", !*text ? "option --wall: " : "", why);
	return err;
}

static int narrow(const struct csink_options *o, struct csink_profile *p)
{
	const struct csink_filter filter = {.thread = csink_options_text(o, CSINK_REPORT_OPT_THREAD),
					    .comm = csink_options_text(o, CSINK_REPORT_OPT_COMM),
					    .module = csink_options_text(o, CSINK_REPORT_OPT_MODULE),
					    .focus = csink_options_text(o, CSINK_REPORT_OPT_FOCUS),
					    .ignore = csink_options_text(o, CSINK_REPORT_OPT_IGNORE)};
	char why[CSINK_WHY_BYTES];
	int err = choose_event(o, p);

	if (err)
		return err;
	if (wants_ranks(o) && !csink_profile_has_ranks(p))
		return csink_fail(-EINVAL,
				  "option %s: no sample has the rank of a parallel job: none was known, or the "
				  "profiles were merged without --keep-ranks",
				  by_of(o) == CSINK_BY_RANK ? "--by" : "--ranks");
	if (csink_options_bool(o, CSINK_REPORT_OPT_FOLD_NATIVE) && csink_fold_native(p))
		return csink_fail(-ENOMEM, "no memory");
	err = csink_filter_apply(p, &filter, why, sizeof(why));
	if (err)
		csink_say("%s", why);
	return err;
}

/* The profile is in a file: remove the recordings, unless the run has not ended. */
static void remove_recordings(struct csink_reading *reading, const char *dir, bool quiet)
{
	int err = csink_reading_remove(reading, dir);

	if (err && !quiet)
		csink_say("the recordings in %s are kept: %s", dir,
			  err == -EBUSY ? "the run goes on" : "the run goes on, or another command reads them");
}

/* For the library, at the end of a program, that is the only moment: then a profile is saved elsewhere, too. */
static int write_profile(const struct csink_profile *profile, char *path, bool has_recordings)
{
	int err;

	if (getenv(CSINK_ENV_RUN_ENDED))
		return csink_save_anywhere(path, profile);
	err = csink_pprof_write(profile, path);
	if (err)
		csink_say_unwritten(path, -err, has_recordings ? "the recordings are kept" : NULL);
	return err;
}

/*
 * Write the profile to a file; recordings that it was made from are then removed, but not for what went into a device
 * or a pipe, where it may be gone. A name of another format has that written, too. save: where the profile is.
 * @dir  of the recordings; NULL: the profile was read from a file.
 */
static int save_as(const struct csink_profile *profile, const char *output, const char *dir,
		   struct csink_reading *reading, bool quiet, struct csink_save *save)
{
	struct stat st;
	int err;

	if (snprintf(save->path, PATH_MAX, "%s", output) >= PATH_MAX) {
		csink_say_unwritten(output, ENAMETOOLONG, dir ? "the recordings are kept" : NULL);
		return -ENAMETOOLONG;
	}
	save->format = csink_export_beside(save->path, PATH_MAX, save->exported);
	err = write_profile(profile, save->path, dir);
	if (err)
		return err;
	if (dir && !stat(save->path, &st) && S_ISREG(st.st_mode))
		remove_recordings(reading, dir, quiet);
	return save->format ? csink_save_export(save, profile, CSINK_SAVE_ERRORS) : 0;
}

/* Read what is to be reported; says what is wrong with it. Of a run directory, reading is to be ended. */
static int read_input(const struct csink_options *o, const char *path, struct csink_reading *reading,
		      struct csink_profile **profile)
{
	char why[CSINK_WHY_BYTES];
	int err = csink_is_directory(path) ? csink_reading_open(reading, path) : 0;

	if (err)
		return csink_fail(err, "%s: %s", path,
				  err == -EBUSY ? "another process has locked it" : strerror(-err));
	if (!csink_options_bool(o, CSINK_REPORT_OPT_QUIET))
		csink_progress_start();
	/* The library starts us once, at the end of the run. */
	if (reading->fd >= 0 && getenv(CSINK_ENV_RUN_ENDED))
		csink_run_directory_mark(reading->fd, path);
	err = csink_profile_open(path, profile, why, sizeof(why));
	csink_progress_end();
	if (reading->fd >= 0 && !csink_reading_is_whole(reading)) {
		csink_say("%s: recordings were removed while they were read: the run has ended, or another command has "
			  "made the profile; read that one",
			  path);
		if (!err)
			csink_profile_free(*profile);
		return -ESTALE;
	}
	if (err)
		csink_say("%s", why);
	return err;
}

/* What is reported of several profiles is what they are together. */
static int read_inputs(const struct csink_options *o, char **paths, int nr, struct csink_reading *reading,
		       struct csink_profile **profile)
{
	int err;

	if (nr == 1)
		return read_input(o, *paths, reading, profile);
	if (!csink_options_bool(o, CSINK_REPORT_OPT_QUIET))
		csink_progress_start();
	err = csink_read_ranks(paths, nr, csink_options_bool(o, CSINK_REPORT_OPT_QUIET), profile);
	csink_progress_end();
	return err;
}

/* ---- the end of a run without launcher that has slices ---- */

static int send_slice(void *arg, const char *path)
{
	return csink_send_by_environment(path, *(const bool *)arg);
}

/* The whole run, of which there are slices alone. */
static int print_whole(const struct csink_options *o, const struct csink_slice_keeper *k)
{
	struct csink_profile *whole;
	char why[CSINK_WHY_BYTES];
	struct csink_wall wall;
	bool has_wall;
	int err;

	if (!csink_slices_has_whole(&k->slices))
		return 0;
	err = csink_profile_open(k->directory.path, &whole, why, sizeof(why));
	if (err) {
		csink_say("%s", why);
		return err;
	}
	err = add_wall(o, whole, &wall, &has_wall) ?: narrow(o, whole);
	if (!err)
		err = print(o, whole, NULL, has_wall ? &wall : NULL);
	csink_profile_free(whole);
	return err;
}

/* In the background where processes of the run go on: the program that starts us has ended, and does not wait. */
static void go_on(struct csink_slice_keeper *k)
{
	if (csink_slice_keeper_detach(k) <= 0)
		return;
	csink_slice_keeper_run(k);
	_exit(0);
}

/* Returns what to exit with; -1: the run has no slices. */
static int end_slices(const struct csink_options *o, const char *path, bool quiet)
{
	static struct csink_slice_keeper k = {.lock_fd = -1, .directory.fd = -1};
	bool goes_on;
	int err, printed = 0;

	if (!getenv(CSINK_ENV_RUN_ENDED) || !csink_slice_keeper_is_of(path))
		return -1;
	err = csink_slice_keeper_take(&k, path) ?: csink_slice_keeper_load(&k);
	k.slices.on_written = send_slice;
	k.slices.arg = &quiet;
	if (err) {
		csink_slice_keeper_release(&k);
		if (err == -EALREADY)
			return CSINK_EXIT_OK; /* the keeper writes the last slice when we have ended */
		if (err == -EBADMSG || err == -ENOENT) {
			csink_say("how far the slices are cannot be read: one profile has the whole run, also what "
				  "they have");
			return -1;
		}
		return csink_fail(CSINK_EXIT_FAILED, "no last slice: %s: %s", path, strerror(-err));
	}
	goes_on = csink_slice_keeper_goes_on(&k);
	if (goes_on)
		go_on(&k);
	else
		err = csink_slice_keeper_end(&k);
	if (!quiet) {
		printed = print_whole(o, &k);
		csink_slices_say(&k.slices);
	}
	if (!goes_on && !err)
		csink_slice_keeper_remove(&k);
	csink_slice_keeper_release(&k);
	return err || printed ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

static int report(const struct csink_options *o, char **paths, int nr)
{
	const char *path = *paths;
	const char *output = csink_options_text(o, CSINK_REPORT_OPT_OUTPUT);
	struct csink_reading reading = {.fd = -1};
	bool quiet = csink_options_bool(o, CSINK_REPORT_OPT_QUIET), is_dir;
	struct csink_profile *profile;
	static struct csink_save save;
	struct csink_wall wall;
	bool has_wall;
	int err, printed;

	csink_debuginfod_wanted = csink_options_bool(o, CSINK_REPORT_OPT_DEBUGINFOD);
	err = *output ? end_slices(o, path, quiet) : -1;
	if (err >= 0)
		return err;
	err = read_inputs(o, paths, nr, &reading, &profile);
	is_dir = reading.fd >= 0;
	if (err) {
		csink_reading_close(&reading);
		return CSINK_EXIT_FAILED;
	}
	if (*output) {
		err = save_as(profile, output, is_dir ? path : NULL, &reading, quiet, &save);
		output = save.path;
	} else if (is_dir && !quiet && csink_reading_is_live(&reading, path))
		csink_say("%s: the run goes on; this is what it did until now", path);
	csink_reading_close(&reading);
	if (!quiet) {
		printed = add_wall(o, profile, &wall, &has_wall) ?: narrow(o, profile);
		if (!printed)
			printed = print(o, profile,
					*output && !err                          ? output
					: is_dir || nr > 1 || !strcmp(path, "-") ? NULL
										 : path,
					has_wall ? &wall : NULL);
		err = err ? err : printed;
	}
	csink_profile_free(profile);
	/* Of a run without a launcher, whose end waits for this. */
	if (*output && !err && getenv(CSINK_ENV_RUN_ENDED))
		csink_send_by_environment(output, quiet);
	return !err ? CSINK_EXIT_OK : err == -EINVAL ? CSINK_EXIT_USAGE : CSINK_EXIT_FAILED;
}

/* There is nothing here; is there something elsewhere that was meant to become a profile? */
static void offer_leftovers(void)
{
	struct csink_leftover left[MAX_LEFTOVERS];
	uint32_t nr = csink_leftovers_find(left, MAX_LEFTOVERS);
	char when[32];
	struct tm tm;
	time_t start;

	if (!nr)
		return;
	csink_say("found recordings of killed runs; `countersink report -o FILE DIRECTORY` makes a profile of one and "
		  "removes it:");
	for (uint32_t i = 0; i < CSINK_MIN(nr, (uint32_t)MAX_LEFTOVERS); i++) {
		start = (time_t)(left[i].start_realtime_ns / CSINK_NS_PER_S);
		localtime_r(&start, &tm);
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
		csink_say("  %s  %s, %s, %u process%s, %s", left[i].path, left[i].comm, when, left[i].nr_processes,
			  left[i].nr_processes == 1 ? "" : "es",
			  csink_amount((int64_t)left[i].data_bytes, "bytes").text);
	}
	if (nr > MAX_LEFTOVERS)
		csink_say("  and %u more", nr - MAX_LEFTOVERS);
}

/* Forms that exclude each other. */
static int check(const struct csink_options *o)
{
	if (csink_options_bool(o, CSINK_REPORT_OPT_JSON) && csink_options_bool(o, CSINK_REPORT_OPT_CSV))
		return csink_fail(-EINVAL, "options --json and --csv exclude each other: use one");
	if (is_asked(o, CSINK_REPORT_OPT_ANNOTATE) && csink_options_bool(o, CSINK_REPORT_OPT_CSV))
		return csink_fail(-EINVAL, "option --annotate has no --csv: use --json");
	if (csink_options_bool(o, CSINK_REPORT_OPT_TREE) + is_asked(o, CSINK_REPORT_OPT_CALLERS) +
		    is_asked(o, CSINK_REPORT_OPT_ANNOTATE) + (by_of(o) != CSINK_BY_FUNCTION) >
	    1)
		return csink_fail(-EINVAL,
				  "options --tree, --callers, --annotate and --by exclude each other: use one");
	if (csink_options_bool(o, CSINK_REPORT_OPT_RANKS) &&
	    (csink_options_bool(o, CSINK_REPORT_OPT_TREE) || is_asked(o, CSINK_REPORT_OPT_CALLERS) ||
	     is_asked(o, CSINK_REPORT_OPT_ANNOTATE) || by_of(o) == CSINK_BY_RANK))
		return csink_fail(-EINVAL, "option --ranks excludes --tree, --callers, --annotate and --by rank");
	if ((csink_options_bool(o, CSINK_REPORT_OPT_RANKS) || csink_options_bool(o, CSINK_REPORT_OPT_TREE) ||
	     is_asked(o, CSINK_REPORT_OPT_CALLERS) || is_asked(o, CSINK_REPORT_OPT_ANNOTATE)) &&
	    o->values[CSINK_REPORT_OPT_WALL].source == CSINK_FROM_OPTION)
		return csink_fail(-EINVAL, "option --wall excludes --ranks, --tree, --callers and --annotate: it adds "
					   "columns to the table");
	if (wants_waits(o) &&
	    (is_asked(o, CSINK_REPORT_OPT_PARALLELISM) || o->values[CSINK_REPORT_OPT_WALL].source == CSINK_FROM_OPTION))
		return csink_fail(-EINVAL, "options --wall and --parallelism exclude --by lock and --by holder: waits "
					   "for locks have no times");
	return 0;
}

static int main_report(const struct csink_options *o, int nr, char **operands)
{
	static char default_file[] = DEFAULT_FILE, *default_files[] = {default_file};
	int status;

	if (nr > 1 && !wants_ranks(o))
		return csink_fail(CSINK_EXIT_USAGE,
				  "report takes one profile or run directory, not %d, unless --ranks or --by rank is "
				  "given (see countersink help report)",
				  nr);
	if (check(o))
		return CSINK_EXIT_USAGE;
	status = report(o, nr ? operands : default_files, nr ? nr : 1);
	if (status == CSINK_EXIT_FAILED && !nr && access(DEFAULT_FILE, F_OK))
		offer_leftovers();
	return status;
}

const struct csink_command csink_command_report = {
	.name = "report",
	.synopsis = "report [OPTION]... [FILE]...",
	.help = "print the report of a profile again",
	.main = main_report,
	CSINK_COMMAND_OPTIONS(CSINK_REPORT_OPTIONS),
};
