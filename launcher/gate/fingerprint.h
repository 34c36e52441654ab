/*
 * What a gate compares only with its like: the machine, the way of measuring, and the command with its libraries. It is
 * kept as facts of a profile (fingerprint.c has the table): a baseline has those of its runs among its comments.
 */
#ifndef CSINK_FINGERPRINT_H
#define CSINK_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csink_gate_placement;
struct csink_gate_runner;
struct csink_gate_series;
struct csink_profile;

/** Of this machine, and the command. mode: csink_gate_counting_mode. Returns a profile with facts alone
 * (csink_profile_free it), or NULL without memory. */
struct csink_profile *csink_gate_fingerprint_take(char *const *argv, const struct csink_gate_runner *runner,
						  const char *mode);

/** The mode of a baseline, csink_gate_counting_mode; NULL: it has none. */
const char *csink_gate_fingerprint_mode(const struct csink_profile *baseline);

/** Facts from the runs: the engine, and the libraries among the files that the new side used. Returns 0 or -ENOMEM.
 */
int csink_gate_fingerprint_learn(struct csink_profile *print, const char *engine,
				 const struct csink_gate_placement *placement);

/** Write one into a baseline. */
void csink_gate_fingerprint_write(const struct csink_profile *print, struct csink_profile *baseline);

/** Can runs made here be compared with those of a baseline at all? Returns true, or false and why. Before the runs. */
bool csink_gate_fingerprint_fits(const struct csink_profile *old, const struct csink_profile *now, char *why,
				 size_t why_size);

/** Note in series what else differs, and what does in spite of --any-environment. After the runs. */
void csink_gate_fingerprint_note(const struct csink_profile *old, const struct csink_profile *now,
				 struct csink_gate_series *series);

/** The CPU as /proc/cpuinfo (@path) has it. Returns a malloc'ed text, "" unknown; NULL without memory. */
char *csink_gate_cpu_name(const char *path);

/**
 * The CPU frequency governors in use, each once: "performance", "performance, powersave".
 * @directory  with cpu0, cpu1 ...: /sys/devices/system/cpu
 * Returns a malloc'ed text, "" where there are none (virtual machines); NULL without memory.
 */
char *csink_gate_governors(const char *directory);

/**
 * What distinguishes two builds of a library: its build-id, or a checksum of a file that has none.
 * Returns a malloc'ed text, "" where the file cannot be read; NULL without memory.
 */
char *csink_gate_library_id(const char *path);

#endif
