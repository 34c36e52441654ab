/*
 * The baseline: a pprof profile in which the runs are told apart by a label, and whose comments hold the figures of
 * each run and what they were made with (the fingerprint). Other readers see a profile of all the runs together.
 */
#ifndef CSINK_LAUNCHER_GATE_BASELINE_H
#define CSINK_LAUNCHER_GATE_BASELINE_H

#include <stdbool.h>

#include "launcher/gate/series.h"

/* What a gate compares only with its like. Texts are malloc'ed; "" unknown. */
struct csink_gate_fingerprint {
	char *program; /* base name */
	char *command; /* the whole line */
	char *events;  /* as printed for the library */
	char *frequency;
	char *cpu, *kernel, *governor, *engine; /* of these four, engine is known only after a run */
	char *mode;                             /* "measured" or "simulated" */
};

/** Of this machine, and the command. Returns 0 or -ENOMEM; release it in either case. */
int csink_gate_fingerprint_take(struct csink_gate_fingerprint *print, char *const *argv,
				const struct csink_gate_runner *runner, bool simulate);
void csink_gate_fingerprint_release(struct csink_gate_fingerprint *print);

struct csink_gate_baseline {
	struct csink_profile *profile;
	struct csink_gate_fingerprint print;
	char when[32]; /* it was made */
};

/**
 * Read a baseline and put its runs into the data, as those of CSINK_GATE_OLD.
 * @why  on failure: what is wrong with it, and what to do.
 * Returns 0 (release it), -ENOENT, -EBADMSG or -ENOMEM.
 */
int csink_gate_baseline_read(const char *path, struct csink_gate_data *data, struct csink_gate_baseline *out, char *why,
			     size_t why_size);
void csink_gate_baseline_release(struct csink_gate_baseline *baseline);

/**
 * Can runs made here be compared with the baseline? Differences that only may matter are noted in series.
 * Returns true, or false and why.
 */
bool csink_gate_baseline_fits(const struct csink_gate_baseline *baseline, const struct csink_gate_fingerprint *now,
			      struct csink_gate_series *series, char *why, size_t why_size);

/** Note in series which libraries are others than when the baseline was made; profile: of the new runs. */
void csink_gate_baseline_compare_modules(const struct csink_gate_baseline *baseline,
					 const struct csink_profile *profile, struct csink_gate_series *series);

/** Write the new runs of a series as a baseline. Returns 0 or -errno. */
int csink_gate_baseline_write(const char *path, struct csink_gate_series *series,
			      const struct csink_gate_fingerprint *print);

#endif
