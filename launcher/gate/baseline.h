/*
 * The baseline: a pprof profile in which the runs are distinguished by a label, and whose comments hold the figures of
 * each run and what they were made with (the fingerprint). Other readers see a profile of all the runs together.
 */
#ifndef CSINK_BASELINE_H
#define CSINK_BASELINE_H

#include "launcher/gate/fingerprint.h"
#include "launcher/gate/series.h"

struct csink_gate_baseline {
	struct csink_profile *profile; /* with the fingerprint; NULL: none */
	char when[32];                 /* it was made */
};

/**
 * Read a baseline and put its runs into the data, as those of CSINK_GATE_OLD.
 * @why  on failure: what is wrong with it, and what to do.
 * Returns 0 (csink_profile_free its profile), -ENOENT, -EBADMSG or -ENOMEM.
 */
int csink_gate_baseline_read(const char *path, struct csink_gate_data *data, struct csink_gate_baseline *out, char *why,
			     size_t why_size);

/** Write the new runs of a series as a baseline. @how and the result are csink_pprof_write_as()'s. */
int csink_gate_baseline_write(const char *path, struct csink_gate_series *series, const struct csink_profile *print,
			      unsigned int how);

#endif
