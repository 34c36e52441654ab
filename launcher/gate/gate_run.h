/*
 * Making one run of a command as countersink's own run does: spawned with the library injected, counted from outside,
 * its recordings collected into a profile. What the command prints is not shown; the end of its stderr is kept for the
 * case that it fails.
 */
#ifndef CSINK_GATE_RUN_H
#define CSINK_GATE_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "include/internal/event.h"
#include "launcher/base/message.h"
#include "launcher/collect/collect.h"
#include "launcher/session/choose_events.h"
#include "launcher/session/inherited.h"
#include "launcher/session/relay.h"
#include "launcher/session/reservation.h"

struct csink_profile;

/* What is the same for all runs. */
struct csink_gate_runner {
	const char *texts[CSINK_NR_RUN_OPTS]; /* the values for the library: as csink_env_build takes them */
	const char *input;                    /* a file that every run gets as its stdin; NULL: /dev/null */
	const char *output; /* a file that has the stdout of the latest run that is judged; likewise */
	bool is_counted;    /* a run without a profile is judged, too */
	struct csink_chosen_events events;
	char frequency_text[24], alloc_text[CSINK_ALLOC_TEXT];
	char event_reason[160];
	struct csink_reservation reservation;
	struct csink_inherited inherited;
	struct csink_relay relay;
};

/* What one run gave. */
struct csink_gate_outcome {
	int status;     /* waitpid(2)'s */
	int exec_errno; /* != 0: it never ran */
	uint64_t wall_ns;
	struct rusage usage;
	struct csink_outside outside;
	struct csink_profile *profile; /* NULL: not asked for, or it cannot be injected (why) */
	char why[CSINK_WHY_BYTES];
	char stderr_end[2048];
};

/**
 * Resolve events and rate. The texts are set by the caller, to their defaults at
 * least; events and frequency are replaced here by what is to be used.
 * @why  on failure: one line for people.
 * Returns 0 or -errno.
 */
int csink_gate_runner_init(struct csink_gate_runner *runner, char *why, size_t why_size);

/**
 * Take signals over, and reserve the counters. From here on only what waits for runs takes signals: what may block (a
 * file that the command line names may be a pipe) is opened before.
 * @why  on failure: one line for people.
 * Returns 0 or -errno.
 */
int csink_gate_runner_start(struct csink_gate_runner *runner, char *why, size_t why_size);

/**
 * Run a command once.
 * @padding  bytes that are put into the environment, so that the stack begins elsewhere.
 * @profile  false: run it without the library, as it is (hooks; counting).
 * Returns 0, also where the command failed (outcome->status), or -errno where it could not be run or waited for.
 */
int csink_gate_run(struct csink_gate_runner *runner, char **argv, uint32_t padding, bool profile,
		   struct csink_gate_outcome *outcome);
void csink_gate_outcome_free(struct csink_gate_outcome *outcome);

/** The signal that was sent to end this gate; 0: none. Once set, it stays. @outcome of the command that ran meanwhile;
 * may be NULL. */
int csink_gate_interrupted(struct csink_gate_runner *runner, const struct csink_gate_outcome *outcome);

#endif
