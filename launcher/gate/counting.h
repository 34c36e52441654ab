/*
 * What counts the instructions of a gate's runs, for --deterministic: the hardware, qemu-user with countersink's
 * plugin, or valgrind's callgrind. The counts of two tools are never compared.
 */
#ifndef CSINK_COUNTING_H
#define CSINK_COUNTING_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/message.h"

#define CSINK_GATE_PMU_EVENT "instructions:u"

struct csink_gate_run;
struct csink_gate_series;

enum csink_gate_tool {
	CSINK_GATE_MEASURED, /* nothing counts exactly: time is measured */
	CSINK_GATE_PMU,
	CSINK_GATE_QEMU,
	CSINK_GATE_CALLGRIND,
	CSINK_GATE_NR_TOOLS
};

struct csink_gate_counting {
	enum csink_gate_tool tool;
	bool is_auto;                          /* --deterministic=auto */
	char version[CSINK_GATE_NR_TOOLS][96]; /* as the tool prints it; "" unknown */
	char plugin[PATH_MAX];                 /* of qemu */
	char why[CSINK_WHY_BYTES];             /* why no earlier one of the list was chosen; "": it was the first */
	bool has_suite;                        /* launcher/gate/suite/ judges what the latest run executed besides */
	uint32_t nr_programs;                  /* of that: as of struct csink_gate_uncounted */
	char programs[512];
};

/** The tool of a word, "auto", "pmu", "qemu", "callgrind" or "no", for two commands (NULL: none). Returns 0, or -ENOENT
 * and why: a line for people. */
int csink_gate_counting_choose(struct csink_gate_counting *counting, const char *word, char **const *argv, char *why,
			       size_t why_size);

/** The same, where a baseline has been made by a tool (csink_gate_counting_mode): auto is that tool. */
void csink_gate_counting_follow(struct csink_gate_counting *counting, const char *mode);

/** What a baseline is compared by: "measured", "simulated" (by callgrind), "simulated by qemu-user", "counted". */
const char *csink_gate_counting_mode(const struct csink_gate_counting *counting);

/** The tool as --deterministic has it: "qemu". */
const char *csink_gate_counting_word(const struct csink_gate_counting *counting);

/** "instructions, counted by ..." */
void csink_gate_counting_describe(const struct csink_gate_counting *counting, char *out, size_t size);

/**
 * Run the command of the run's side, and fill the run in.
 * @warmup  nothing is counted yet: with --deterministic=auto, callgrind counts a command that qemu-user cannot
 *          count.
 * Returns 0, -EINTR, -ECHILD or -errno, with series->error.
 */
int csink_gate_counting_run(struct csink_gate_series *series, struct csink_gate_run *run, bool warmup);

/**
 * With --deterministic=auto, have callgrind count from now on what qemu-user cannot.
 * @error     with which it fails under qemu-user; NULL: it does not
 * @programs  that it executes, if it does not fail
 * Returns whether callgrind counts.
 */
bool csink_gate_counting_give_way(struct csink_gate_counting *counting, const char *error, const char *programs);

/** Note what the tool does not see, and by how much equal runs differ. After the last run. */
void csink_gate_counting_note(struct csink_gate_series *series);

/* ---- for the tools ---- */

/** Run a command that a tool wraps, and free what is known of it. @tool  its name. Returns as csink_gate_counting_run.
 */
int csink_gate_run_under(struct csink_gate_series *series, char **argv, const char *tool);

/** What a program prints for --version, up to "(": "qemu-x86_64 version 7.2.22"; "": nothing. */
void csink_gate_ask_version(const char *program, char *version, size_t size);

/* ---- qemu_run.c ---- */

struct csink_gate_uncounted;

/** Whether qemu-user can simulate a command here. @version  what it prints, @plugin  PATH_MAX. Returns 0, or -ENOENT
 * and why. */
int csink_gate_qemu_find(const char *command, char *version, size_t version_size, char *plugin, char *why,
			 size_t why_size);

/** Run the command of the run's side under qemu-user, and fill the run's weights in. @directory  an empty one for the
 * counts. Returns as csink_gate_counting_run. */
int csink_gate_qemu_run(struct csink_gate_series *series, struct csink_gate_run *run, const char *directory,
			struct csink_gate_uncounted *uncounted);

#endif
