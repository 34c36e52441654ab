/*
 * Making the runs of a gate: the two commands in turn, in pairs of random order, each a fresh process; until there are
 * enough of them.
 */
#ifndef CSINK_SERIES_H
#define CSINK_SERIES_H

#include "launcher/gate/gate.h"
#include "launcher/gate/gate_run.h"
#include "launcher/gate/looks.h"
#include "launcher/gate/pin.h"
#include "launcher/gate/placement.h"

struct csink_gate_counting;

/* What is to be done. */
struct csink_gate_plan {
	char **argv[CSINK_GATE_NR_SIDES]; /* [CSINK_GATE_OLD] NULL: the baseline's runs are in the data already */
	uint32_t runs;                    /* of a side; 0: as many as it takes (auto) */
	uint64_t max_time_ns;             /* no pair is begun that would likely end later; the first look is made */
	uint32_t warmup;                  /* runs of each side that are not counted */
	char *prepare, *cleanup;          /* shell commands around each run; NULL: none */
	enum csink_gate_pin_how pin;
	int cpu;                               /* of CSINK_GATE_PIN_CPU */
	bool move;                             /* each run has its program in other pages: placement.h */
	struct csink_gate_counting *counting;  /* counts instructions exactly; NULL: time is measured */
	const struct csink_gate_scope *scopes; /* the parts of each run that are compared, each in its own data; NULL:
						  all, in the series' data */
	uint32_t nr_scopes;
	bool keep;       /* merge the profiles of each side */
	bool progress;   /* on stderr, which is a terminal */
	bool look_again; /* runs are judged as they come, to see whether they are enough */
};

#define CSINK_GATE_MAX_NOTES 24

struct csink_gate_series {
	const struct csink_gate_plan *plan;
	const struct csink_gate_rules *rules;
	struct csink_gate_runner *runner;
	struct csink_gate_data *data;
	struct csink_random random;
	struct csink_gate_placement placement;
	struct csink_gate_pin pin;
	struct csink_merge *merges[CSINK_GATE_NR_SIDES]; /* of the runs until now; NULL: none */
	struct csink_profile *kept[CSINK_GATE_NR_SIDES]; /* all runs of a side in one, from the series' end on */
	struct csink_gate_looks looks;
	double level; /* for csink_gate_judge: of the last look; 0: the runs were not judged before */
	uint64_t start_ns;
	char error[3072]; /* why there is no verdict: what failed, with the end of its stderr */
	char engine[64];  /* that took the samples of the latest run; "" unknown */
	int signal;       /* that ended the series; 0: none */
	uint32_t nr_notes;
	char *notes[CSINK_GATE_MAX_NOTES];
};

/** After the runs: each side's runs that were kept in one profile. Returns 0 or -ENOMEM. */
int csink_gate_series_join(struct csink_gate_series *series);

/**
 * Make the runs. They are in data then, and their merged profiles in kept.
 * Returns 0, -EINTR (signal), -ECHILD (a command failed: error), or another -errno (error).
 */
int csink_gate_series_make(struct csink_gate_series *series);
void csink_gate_series_free(struct csink_gate_series *series);

/** One run of a side, with its hooks; its result is added to the data. number: counted from 0 on its side; < 0 is a
 * warm-up, which leaves nothing. Returns as csink_gate_series_make. turn.c, for series.c. */
int csink_gate_turn(struct csink_gate_series *series, enum csink_gate_side side, int32_t number);

/** Remember a line about the measurement, once. */
__attribute__((format(printf, 2, 3))) void csink_gate_note(struct csink_gate_series *series, const char *fmt, ...);

/** See whether a command did what it should. who: what it is, for series->error. Returns 0, -EINTR or -ECHILD. */
int csink_gate_check(struct csink_gate_series *series, const struct csink_gate_outcome *outcome, const char *who);

#endif
