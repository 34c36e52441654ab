/*
 * What `stat` found out, and how it is written. cmd_stat.c fills it in; stat_print.c writes it for people,
 * stat_machine.c for programs.
 */
#ifndef CSINK_STAT_RESULT_H
#define CSINK_STAT_RESULT_H

#include <stdio.h>

#include "launcher/base/json.h"
#include "launcher/commands/stat/stat_counters.h"
#include "launcher/commands/stat/stat_metrics.h"
#include "launcher/commands/stat/stat_moments.h"
#include "launcher/commands/stat/stat_threads.h"

/* One event over all runs. */
struct csink_stat_row {
	struct csink_moments value, share;       /* share: of the time that it had a counter, 0 to 1 */
	struct csink_stat_metric metric, misses; /* the latest; what the runs gave is in the moments */
	struct csink_moments metric_value, misses_value;
	enum csink_stat_state state; /* the worst of all runs */
	bool waited;                 /* not counted, though it could have been */
};

#define CSINK_STAT_MAX_NOTES 16

struct csink_stat_result {
	char **argv;
	const struct csink_stat_counters *counters;
	uint32_t nr_runs; /* that were counted */
	struct csink_stat_row rows[CSINK_STAT_MAX_EVENTS];
	struct csink_moments wall_ns, user_ns, sys_ns;
	uint64_t max_rss_bytes;                          /* the largest of all runs */
	int status;                                      /* waitpid(2)'s of the last run, or of the first that failed */
	uint32_t nr_failed;                              /* runs of which the status was not 0 */
	const struct csink_stat_threads_result *threads; /* NULL: not asked for */
	uint32_t nr_notes;
	char *notes[CSINK_STAT_MAX_NOTES];
};

/** Add what one run, or one interval, counted. */
void csink_stat_result_add(struct csink_stat_result *result, const struct csink_stat_value *values, uint64_t wall_ns);

/** Why an event has no value, as one line; for those that opened and never counted, too. */
const char *csink_stat_reason(const struct csink_stat_result *result, uint32_t event);

enum csink_stat_format { CSINK_STAT_TEXT, CSINK_STAT_JSON, CSINK_STAT_CSV };

struct csink_stat_writer {
	FILE *out;
	const char *path; /* of out; NULL: it is stderr */
	enum csink_stat_format format;
	bool intervals; /* rows begin with a time */
	struct csink_json json;
	bool opened; /* the head was written */
};

/** What an interval counted; result holds that alone. at_ns: since the command was started. Falls back as below. */
void csink_stat_write_interval(struct csink_stat_writer *writer, const struct csink_stat_result *result,
			       uint64_t at_ns);

/** Write the whole result. If a file cannot be written, all of it goes to stderr, after a line with the reason. */
void csink_stat_write(struct csink_stat_writer *writer, const struct csink_stat_result *result);

/** The file cannot be written, for err (an errno): say so, and go on with stderr. */
void csink_stat_writer_fall_back(struct csink_stat_writer *writer, int err);

/* stat_print.c */
void csink_stat_print_rows(FILE *out, const struct csink_stat_result *result, const char *before);
void csink_stat_print(FILE *out, const struct csink_stat_result *result);

#endif
