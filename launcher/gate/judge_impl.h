/*
 * What the files that judge share: judge.c, judge_functions.c, judge_pairs.c, below.c, forecast.c, inverse.c, moves.c,
 * reference.c, rollup.c and versions.c. Beside them, only tests/unit/test_gate_versions.c includes this.
 */
#ifndef CSINK_JUDGE_IMPL_H
#define CSINK_JUDGE_IMPL_H

#include "launcher/gate/gate.h"

/* The part of alpha that functions have for the case that all of them got slower by chance; each has the rest. */
#define CSINK_COST_ALPHA 0.1

#define CSINK_GATE_LEVEL 0.95     /* of intervals */
#define CSINK_JUDGE_LEAST_PAIRS 6 /* of signed ranks: fewer have no interval of that level */

/* Go over the runs of both sides; not to be left by break. */
#define EACH_RUN(judge, side, i)                                                                                       \
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)                                                         \
		for (uint32_t i = 0; i < (judge)->nr[side]; i++)

struct judge {
	const struct csink_gate_data *data;
	const struct csink_gate_rules *rules;
	struct csink_gate_verdicts *out;
	struct csink_random random;
	const struct csink_gate_run **runs[CSINK_GATE_NR_SIDES]; /* in order; of a pair at the same index */
	uint32_t nr[CSINK_GATE_NR_SIDES];
	double *values[CSINK_GATE_NR_SIDES]; /* scratch of the tests: a value for each run */
	double *differences;                 /* likewise, of each pair */
	double *sums[CSINK_GATE_NR_SIDES];   /* of each function: its weight in all runs of the side */
	double all[CSINK_GATE_NR_SIDES];     /* of all functions, pseudo ones apart */
	bool *is_reference;                  /* of each function: it did not change beside the others */
	bool *is_below;                      /* of each function: as of a row */
	/* Of each run and function: the part of its weight by which it is compared, or may be of the reference. */
	double **comparable[CSINK_GATE_NR_SIDES];
	enum csink_gate_verdict command; /* on its CPU time */
	bool by_cost;                    /* that changed; from judge_functions.c on: and the reference, too */
	bool reference_moved;            /* the reference is slower or faster on one side, and that is not by chance */
	uint32_t nr_judged;              /* functions */
};

/** Test judge->values, which are sums that may be 0, by permutation; set ratio, interval and p-values of the row. */
void csink_judge_weights(struct judge *judge, struct csink_gate_row *row);

/** The same for values with outliers, such as those of a busy disk or machine: by ranks of their logarithms, if all are
 * positive. Changes judge->values. */
void csink_judge_ranks(struct judge *judge, struct csink_gate_row *row);

/** The same of differences of logarithms, one of each pair, of which there are at least CSINK_JUDGE_LEAST_PAIRS. */
void csink_judge_differences(const double *differences, uint32_t nr, struct csink_gate_row *row);

/** Judge what some functions cost together; by_cost of the row is set, too. is_in: of each function. judge_pairs.c */
void csink_judge_part(struct judge *judge, const bool *is_in, struct csink_gate_row *row);

/** Of a figure of which more is better: have judge->values be reciprocals. Returns false where one was 0. inverse.c */
bool csink_judge_invert(struct judge *judge);

/** Of such a row, after its verdict: have it be about the figure, not about reciprocals. */
void csink_judge_turn_back(struct csink_gate_row *row);

/** Come to a verdict from interval, p-values and q. nr_tests: of the family that q was adjusted for. */
void csink_judge_conclude(const struct judge *judge, struct csink_gate_row *row, double q_greater, double q_less,
			  uint32_t nr_tests);

/** Below this number of runs no p-value can be small enough, whatever was measured. @steady: also if one pair of
 * otherwise equal ones differs in the other direction. */
uint32_t csink_judge_least_runs(const struct judge *judge, uint32_t nr_tests, bool steady);

/** Set middle and error of a row from judge->values, before anything has changed these. forecast.c */
void csink_judge_estimate(const struct judge *judge, struct csink_gate_row *row);

/** The same from differences of logarithms. forecast.c */
void csink_judge_estimate_logs(const double *differences, uint32_t nr, struct csink_gate_row *row);

/** How many more runs would likely settle an inconclusive row; 0: no reasonable number. forecast.c */
uint32_t csink_judge_more_runs(const struct judge *judge, const struct csink_gate_row *row, uint32_t nr_tests);

/**
 * Make figures in which an interpreted function of both sides is one function: the table's entry of the new side.
 * @view    shares with data what is not changed; csink_gate_versions_free it before data.
 * @joined  of each function: the one that it became; malloc'ed.
 * Returns 0 or -ENOMEM. versions.c
 */
int csink_gate_versions_join(const struct csink_gate_data *data, struct csink_gate_data *view, uint32_t **joined);
void csink_gate_versions_free(struct csink_gate_data *view);

/** Set judge->is_below. Returns 0 or -ENOMEM. below.c */
int csink_judge_below(struct judge *judge);

/** Set the verdicts' modules, when rows and moves are there. Returns 0 or -ENOMEM. below.c */
int csink_judge_modules(struct judge *judge);

/** Judge every function that has the minimum share, behind the rows that there are. Returns 0 or -ENOMEM. */
int csink_judge_functions(struct judge *judge);

/** Find what functions are compared with, and the machine's drift. Returns 0 or -ENOMEM. reference.c */
int csink_judge_find_reference(struct judge *judge);

/** Fill judge->values with the weight of the reference in each run, without some functions (NULL: with all).
 * @rest  that of all runs of each side.
 * Returns whether it has enough of the time. */
bool csink_judge_reference(struct judge *judge, const bool *without, double *rest);

/** Fill judge->values with the weight of some functions in each run, the speed of the run taken out unless by_cost or
 * too little is left to know it by. is_in: of each function. Returns whether the speed was taken out. */
bool csink_judge_fill(struct judge *judge, const bool *is_in, bool by_cost);

/** Take back verdicts on functions between which cost was only moved. Returns 0 or -ENOMEM. */
int csink_judge_rollup(struct judge *judge);

/** Find where a change of the CPU time went. After all rows are judged. */
void csink_judge_moves(struct judge *judge);

#endif
