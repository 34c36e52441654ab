/*
 * Interim looks, for --runs auto: what each look at the runs may spend of alpha, and whether to continue. Pure
 * functions, for series.c and for simulations. Context: any thread.
 */
#ifndef CSINK_LOOKS_H
#define CSINK_LOOKS_H

#include "launcher/gate/gate.h"

#define CSINK_GATE_FIRST_LOOK 14 /* pairs */
#define CSINK_GATE_MAX_RUNS 3000 /* of a side, however much time there is */

/* All zero before the first look. */
struct csink_gate_looks {
	uint32_t nr;
	double fraction; /* of the time that was spent at the last look */
};

/**
 * What the next look may spend of alpha. All looks together spend no more than alpha, however many there are and
 * wherever they fall: a fifth of it goes to them by their number (1/2, 1/6, 1/12 ...), so that what is clear at once
 * ends at once; the rest by the time that was spent (O'Brien and Fleming's spending function), so that the last look
 * has most: that finds nearly as much as one look at the end.
 * @fraction  of the time that the gate has, at this look: 0 to 1. It must not depend on what the runs gave.
 */
double csink_gate_looks_level(struct csink_gate_looks *looks, double alpha, double fraction);

/** How many pairs there are to be at the next look. */
uint32_t csink_gate_looks_next(uint32_t made);

enum csink_gate_decision {
	CSINK_GATE_GO_ON,
	CSINK_GATE_SETTLED,  /* nothing is open */
	CSINK_GATE_NO_TIME,  /* something is open */
	CSINK_GATE_HOPELESS, /* the remaining time would most likely settle nothing */
};

/**
 * Whether to go on.
 * @made  pairs (runs, beside a baseline)
 * @more  about as many more can be made in the time that is left; below 1: none
 */
enum csink_gate_decision csink_gate_looks_decide(const struct csink_gate_verdicts *verdicts,
						 const struct csink_gate_rules *rules, uint32_t made, double more);

/**
 * The chance, 0 to 1, that so many more pairs settle whether a row is slower than the threshold, if their distribution
 * stays the same: that the confidence interval then excludes the threshold. It is computed by the estimate that judges
 * the row and by the trimmed mean; the larger of the two is returned. forecast.c
 */
double csink_gate_chance(const struct csink_gate_row *row, double threshold, uint32_t made, double more);

#endif
