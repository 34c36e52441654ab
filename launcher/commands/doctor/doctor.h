/*
 * What works here and what does not: each check makes one finding, in the order in which a user would fix them. Checks
 * read files, open and close events of this process, and change nothing. cmd_doctor.c prints the findings.
 */
#ifndef CSINK_DOCTOR_H
#define CSINK_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/event.h"
#include "preload/core/perf_system.h"

enum csink_level {
	CSINK_LEVEL_OK,
	CSINK_LEVEL_NOTE, /* less than there could be, and no harm */
	CSINK_LEVEL_WARN, /* something that people want is missing */
	CSINK_LEVEL_FAIL, /* perf events are refused altogether */
};

struct csink_finding {
	const char *check; /* "kernel", "paranoid" ... */
	enum csink_level level;
	char text[320];   /* one line, no full stop */
	char remedy[280]; /* "" where there is nothing to do */
};

#define CSINK_MAX_FINDINGS 24

struct csink_doctor {
	struct csink_perf_system system;
	bool refused; /* perf_event_open is, whatever is asked: refusal says why */
	struct csink_explanation refusal;
	bool has_pmu, pmu_counts; /* cycles opens; and counts */
	char core_pmu[64];        /* its name, where there is but one; else "" */
	bool user_only;           /* the kernel's side cannot be observed */
	const char *engine;       /* "sigtrap", "signal", "timer" */
	char event[64];           /* the one that auto chooses */
	int32_t largest_group;    /* hardware events that are counted together; -1: not measured */
	uint32_t nr_findings;
	struct csink_finding findings[CSINK_MAX_FINDINGS];
	char verdict[320];
};

/** Add a finding: what to do about it ("": nothing), and in fmt its text. */
__attribute__((format(printf, 5, 6))) void csink_doctor_add(struct csink_doctor *doctor, const char *check,
							    enum csink_level level, const char *remedy, const char *fmt,
							    ...);

/** Run every check, and draw the verdict. */
void csink_doctor_run(struct csink_doctor *doctor);

/** The worst level found. */
enum csink_level csink_doctor_level(const struct csink_doctor *doctor);

/* The checks, in order; each adds one finding or more. */
void csink_doctor_check_rights(
	struct csink_doctor *doctor);                     /* doctor_rights.c: kernel, paranoid, capabilities, filters */
void csink_doctor_check_pmu(struct csink_doctor *doctor); /* doctor_pmu.c: PMU, watchdog */
void csink_doctor_check_holders(struct csink_doctor *doctor); /* doctor_holders.c: other processes with open counters */
void csink_doctor_check_limits(struct csink_doctor *doctor);  /* doctor_limits.c: fds, locked memory, rates */
void csink_doctor_check_engine(struct csink_doctor *doctor);  /* doctor_engine.c: event and engine that will be used */
void csink_doctor_check_own_events(struct csink_doctor *doctor); /* doctor_engine.c: what --events=alloc needs */
void csink_doctor_check_outside(struct csink_doctor *doctor);    /* doctor_engine.c: what cannot be injected */
void csink_doctor_check_group(
	struct csink_doctor *doctor); /* doctor_group.c: the largest group that is counted whole */

#endif
