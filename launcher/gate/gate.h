/*
 * What a gate works on and what it finds. cmd_gate.c fills the settings in from the options; series.c makes the runs;
 * judge.c, reference.c and rollup.c come to verdicts; launcher/commands/gate writes them, a file for each format, and
 * read nothing but struct csink_gate_result.
 *
 * Side 0 is what is compared with: --vs, or the baseline. Side 1 is the command.
 */
#ifndef CSINK_GATE_H
#define CSINK_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/gate/gate_functions.h"
#include "launcher/gate/stats/stats.h"

enum csink_gate_side { CSINK_GATE_OLD, CSINK_GATE_NEW, CSINK_GATE_NR_SIDES };

#define CSINK_GATE_MAX_METRICS 40

/* A figure of the whole command. */
struct csink_gate_metric {
	char name[64];    /* "wall", "cpu", "max-rss", "page-faults", or an event's */
	char title[80];   /* "wall time" */
	char unit[16];    /* a pprof unit: "nanoseconds", "bytes", "count"; of reported ones any */
	bool is_reported; /* by the command itself */
	bool more_is_better;
};

struct csink_gate_run {
	enum csink_gate_side side;
	int32_t number;                         /* of the run on its side, from 0; -1: not known (a baseline's) */
	int cpu;                                /* that it was pinned to; -1: none */
	double metrics[CSINK_GATE_MAX_METRICS]; /* NAN: not measured */
	struct csink_gate_weights weights;
};

/* The runs so far. Paired: the nth of one side was made next to the nth of the other. */
struct csink_gate_data {
	struct csink_gate_functions functions;
	struct csink_gate_metric metrics[CSINK_GATE_MAX_METRICS];
	uint32_t nr_metrics;
	struct csink_gate_run *runs;
	uint32_t nr_runs, cap_runs;
	bool paired;
	bool exact;        /* instructions are counted: there is no chance in it */
	bool has_no_speed; /* functions are judged by what they allocate, which no machine does faster */
};

/** Room for a run at the end, all its metrics NAN, number and cpu -1. Returns it or NULL without memory; pointers to
 * others are invalid.
 */
struct csink_gate_run *csink_gate_run_add(struct csink_gate_data *data, enum csink_gate_side side);

/** Take the latest run away again. There is one. */
void csink_gate_run_drop(struct csink_gate_data *data);

/** The index of a metric; -ENOENT. */
int csink_gate_metric_lookup(const struct csink_gate_data *data, const char *name);

/** The same, of one that is made if there is none; -ENOSPC. */
int csink_gate_metric_find(struct csink_gate_data *data, const char *name, const char *title, const char *unit);

void csink_gate_data_free(struct csink_gate_data *data);

/** After runs were taken: what was known by its place in a module of which there is another build now becomes one
 * function, in all runs. Returns 0 or -ENOMEM. places.c */
int csink_gate_merge_places(struct csink_gate_data *data);

/* ---- judging ---- */

struct csink_gate_rules {
	double threshold; /* 0.05: a change of 5 % matters, less does not */
	double min_share; /* 0.01: functions below 1 % of both sides are not judged one by one */
	double alpha;     /* the rate of false regressions, over all functions together */
	uint64_t seed;
	bool strict;       /* an open question is as bad as a regression */
	bool folds_native; /* --fold-native */
};

enum csink_gate_verdict {
	CSINK_GATE_UNCHANGED,
	CSINK_GATE_IMPROVED,
	CSINK_GATE_REGRESSED,
	CSINK_GATE_INCONCLUSIVE,
	CSINK_GATE_NR_VERDICTS
};
extern const char *const csink_gate_verdict_words[CSINK_GATE_NR_VERDICTS];

/* One question: a figure of the whole command, or a function. */
struct csink_gate_row {
	int32_t metric;   /* index, or -1 */
	int32_t function; /* index, or -1 */
	enum csink_gate_verdict verdict;
	double ratio;                   /* new / old; INFINITY: there was nothing before. As it is judged */
	struct csink_interval interval; /* of the ratio, 95 % */
	double middle, error; /* of the ratio: a trimmed mean and its standard error, for forecasts; NAN: not known */
	double cost_ratio;    /* new / old as measured; of functions, ratio has the speed of runs taken out */
	double p_greater, p_less;           /* one-sided */
	double q;                           /* of the direction that the ratio has */
	double means[CSINK_GATE_NR_SIDES];  /* in the unit of the metric, or of the event that samples */
	double shares[CSINK_GATE_NR_SIDES]; /* of functions: of all samples' weight */
	uint32_t runs_needed;               /* more than there are, where it is inconclusive; 0 unknown */
	bool by_cost;                       /* of a function: judged by its cost as measured */
	bool is_below;    /* of native code: most of its time is below interpreted functions, for which it works */
	bool can_regress; /* inconclusive: a regression is not excluded */
	bool is_turned;   /* of a figure of which more is better: a ratio below 1 is worse, p_less is of a regression */
	char *note;       /* malloc'ed; NULL: none */
};

#define CSINK_GATE_MAX_MOVES 4

/* By how much the mean cost of a function changed, in the unit of the event that samples. */
struct csink_gate_move {
	uint32_t function;
	double delta;
	struct csink_interval interval; /* 95 % */
};

/* Where a change of the command's time went. */
struct csink_gate_moves {
	uint32_t nr; /* 0: no change, or unknown */
	struct csink_gate_move all[CSINK_GATE_MAX_MOVES +
				   1]; /* own costs, in the order of rows; one spare entry while they are ranked */
	struct csink_gate_move within; /* with what it calls: the least function that holds most of the change */
	bool has_within;
	double sum;   /* of all functions */
	uint32_t row; /* of the figure that changed */
};

struct csink_gate_verdicts {
	struct csink_gate_row *rows; /* metrics, then functions by share, those that are below others last */
	const char **modules; /* of each function, for people: of interpreted ones as much of the path as is unique */
	uint32_t *joined; /* of each function: the one of the other side that it was judged as; NULL: each by itself */
	struct csink_gate_moves moves;
	uint32_t nr_rows, nr_metric_rows;
	uint32_t counts[CSINK_GATE_NR_VERDICTS];
	uint32_t nr_open; /* inconclusive ones that may be regressions */
	uint32_t runs[CSINK_GATE_NR_SIDES];
	double samples[CSINK_GATE_NR_SIDES];
	double speed; /* new / old of what functions are compared with, which did not change; NAN: not known */
	struct csink_interval speed_interval; /* 95 % */
	double floor_function; /* smallest relative change of a function of 10 % that so many samples show */
	double floor_command;  /* of the command's CPU time, with so many runs of their spread; NAN unknown */
	double alpha;          /* that was used: this look's part */
	double smallest_q;     /* that so many runs can give a question that changed alone; 0 if there is no chance */
	uint32_t least_runs;   /* with fewer, q cannot be small enough for a regression; 0 any number will do */
	uint32_t steady_runs; /* pairs: with fewer, one that goes the other way can leave any change open; 0 as above */
};

/**
 * Judge all that is there.
 * @level  what this look may spend of rules->alpha (csink_gate_looks_level), so that looking again and again does not
 *         find something by chance in the end; 0: all of it, since this is the only look.
 * Returns 0 (csink_gate_verdicts_free them), -ENOMEM, or -ENODATA (a side has no runs).
 */
int csink_gate_judge(const struct csink_gate_data *data, const struct csink_gate_rules *rules, double level,
		     struct csink_gate_verdicts *out);
void csink_gate_verdicts_free(struct csink_gate_verdicts *verdicts);

#endif
