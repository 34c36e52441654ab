/*
 * On which CPU the runs of a gate are made. Both runs of a pair on one CPU differ less than on two: nothing migrates,
 * and both meet the same cache and the same neighbours. The CPU is drawn anew for each pair, so that no CPU's own speed
 * is in the result. That is for commands of one process with one thread: others would measure something else.
 */
#ifndef CSINK_PIN_H
#define CSINK_PIN_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "launcher/gate/stats/stats.h"
#include "launcher/session/inherited.h"

struct csink_profile;

enum csink_gate_pin_how { CSINK_GATE_PIN_AUTO, CSINK_GATE_PIN_NO, CSINK_GATE_PIN_CPU };

struct csink_gate_pin {
	enum csink_gate_pin_how how;
	int cpu;           /* CSINK_GATE_PIN_CPU: the one; else of the latest pair, -1: none */
	cpu_set_t allowed; /* to the launcher, and so to the command */
	bool may_draw;     /* AUTO, and there are several CPUs to draw from */
	bool is_single;    /* a run was seen, and each that was seen had one process with one thread */
	bool has_several;  /* a run was seen that had more */
	bool has_drawn;    /* a pair was pinned */
};

/**
 * Before the first run: find which CPUs there are to draw from. @pairs  the runs are made in pairs.
 * Returns 0, or -EINVAL: why has the reason.
 */
int csink_gate_pin_init(struct csink_gate_pin *pin, bool pairs, char *why, size_t why_size);

/** See how many threads a run had. profile: NULL if that is not known. */
void csink_gate_pin_learn(struct csink_gate_pin *pin, const struct csink_profile *profile);

/** Before each pair: draw its CPU. */
void csink_gate_pin_draw(struct csink_gate_pin *pin, struct csink_random *random);

/** Start the next commands on the pair's CPU; from csink_gate_pin_end() on, start them on the CPUs that they would have
 * without the gate. */
void csink_gate_pin_begin(const struct csink_gate_pin *pin, struct csink_inherited *inherited);
void csink_gate_pin_end(struct csink_inherited *inherited);

#endif
