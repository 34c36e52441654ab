/*
 * What a gate compares only with its like: the machine, the way of measuring, and the command with its libraries. A
 * baseline keeps it as comments of its profile (fingerprint.c has the table); baseline.c reads and writes those.
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

/* A library that the command uses, and which build of it. */
struct csink_gate_library {
	char *path, *id;
};

/* Texts are malloc'ed; "" unknown. */
struct csink_gate_fingerprint {
	char *program; /* base name */
	char *command; /* the whole line */
	char *events;  /* as printed for the library */
	char *frequency;
	char *cpu, *kernel, *governor;
	char *engine;                         /* known only after a run */
	char *mode;                           /* "measured" or "simulated" */
	struct csink_gate_library *libraries; /* known only after a run */
	uint32_t nr_libraries;
};

/** Of this machine, and the command. Returns 0 or -ENOMEM; free it in either case. */
int csink_gate_fingerprint_take(struct csink_gate_fingerprint *print, char *const *argv,
				const struct csink_gate_runner *runner, bool simulate);

/** Facts from the runs: the engine, and the libraries among the files that the new side used. Returns 0 or -ENOMEM.
 */
int csink_gate_fingerprint_learn(struct csink_gate_fingerprint *print, const char *engine,
				 const struct csink_gate_placement *placement);
void csink_gate_fingerprint_free(struct csink_gate_fingerprint *print);

/** From and to the comments of a profile. Reading returns 0 or -ENOMEM; free it in either case. */
int csink_gate_fingerprint_read(struct csink_gate_fingerprint *print, const struct csink_profile *profile);
void csink_gate_fingerprint_write(const struct csink_gate_fingerprint *print, struct csink_profile *profile);

/** Can runs made here be compared with those of old at all? Returns true, or false and why. Before the runs. */
bool csink_gate_fingerprint_fits(const struct csink_gate_fingerprint *old, const struct csink_gate_fingerprint *now,
				 char *why, size_t why_size);

/** Note in series what else differs, and what does in spite of --any-environment. After the runs. */
void csink_gate_fingerprint_note(const struct csink_gate_fingerprint *old, const struct csink_gate_fingerprint *now,
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
