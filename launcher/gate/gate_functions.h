/*
 * The functions that a gate compares: one table for all runs of both sides, in which a function is the same in two
 * versions of a program if its name and its module are. Interpreted functions are entries of their own for each side;
 * the judge finds out which are the same (versions.c). Runs add to the table as they are taken; the judge reads it.
 */
#ifndef CSINK_GATE_FUNCTIONS_H
#define CSINK_GATE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/table.h"

struct csink_gate_data;
struct csink_profile;

/* The part of a run that is compared, where it is not all: the samples in whose stacks is a function that holds() is
 * true of. */
struct csink_gate_scope {
	bool (*holds)(void *arg, int side, const char *function);
	void *arg;
	struct csink_gate_data *data; /* where that part goes, as a run of its own */
};

struct csink_gate_function {
	const char *name;
	const char *module; /* base name of its file, as it was seen last; "" none */
	const char *file;   /* of the source; "" unknown */
	int64_t line;       /* where it begins, else the first line of it that a sample hit; 0 unknown */
	int side;           /* that file and line are of: the new one's, if it has them */
	bool is_pseudo;
	bool is_interpreted; /* the module is the source file */
	double top_level;    /* of the top level of a Python file: the weight of the samples below it */
};

/* A call that was seen in stacks, and the weight of the samples below it, in the runs of each side. */
struct csink_gate_edge {
	uint32_t caller, callee;
	double weights[2];
};

/* A program or library, by its base name, and the build of it that was seen first. */
struct csink_gate_module {
	const char *name, *id;
	bool differs; /* another build was seen, too, or the build is unknown */
};

struct csink_gate_functions {
	struct csink_gate_function *all;
	uint32_t nr, cap;
	struct csink_gate_edge *edges;
	uint32_t nr_edges, cap_edges;
	struct csink_gate_module *modules;
	uint32_t nr_modules;
	bool folds_native; /* native code counts as own time of the interpreted function that called it */
	bool has_news; /* a module of which functions may be known by their places differs: csink_gate_merge_places */
	char *programs[2]; /* base names of the two sides' programs: the same module in both. NULL: unknown */
	struct csink_table names, calls; /* of functions and of edges: index + 1 */
	struct csink_table interpreted;  /* of interpreted functions, which are not in names */
	struct csink_profile *texts;     /* where all texts but programs are; NULL: there are none yet */
};

/* A function's own time below an interpreted function, the innermost of the stack; it may be that itself. */
struct csink_gate_part {
	uint32_t owner, function;
	double weight;
};

/* What one run spent where: self and total are arrays of nr, of the functions that were known when it was taken; total
 * counts a function's callees, too, and is NULL where there are no stacks. In the unit of the event that samples. */
struct csink_gate_weights {
	uint32_t nr;
	double *self, *total;
	double sum;
	struct csink_gate_part *parts; /* of self; what is below no interpreted function is in none */
	uint32_t nr_parts, cap_parts;
	uint64_t nr_samples;
};

/** Keep a text as long as the table. Returns it, or NULL without memory. */
const char *csink_gate_text(struct csink_gate_functions *functions, const char *text);

/** All zero is an empty table. */
void csink_gate_functions_free(struct csink_gate_functions *functions);
void csink_gate_weights_free(struct csink_gate_weights *weights);

/**
 * Add up the samples of a profile by function.
 * @scope  only the samples in it; NULL: all.
 * @run   only the samples with this number as label CSINK_LABEL_RUN; -1: all.
 * @side  that the run is of.
 * Returns 0 or -ENOMEM.
 */
int csink_gate_take(struct csink_gate_functions *functions, const struct csink_profile *p,
		    const struct csink_gate_scope *scope, int64_t run, int side, struct csink_gate_weights *weights);

/** What a function weighs in a run that may have been taken before the function was known. */
double csink_gate_weight(const struct csink_gate_weights *weights, uint32_t function);

/** The function of that name in that module, which is added if it is new. Returns its index or -ENOMEM. */
int64_t csink_gate_function_find(struct csink_gate_functions *functions, const char *name, const char *module);

/** The same for an interpreted function, which is identified by its side, source file, name and first line. */
int64_t csink_gate_interpreted_find(struct csink_gate_functions *functions, int side, const char *name,
				    const char *path, int64_t line);

/** Add to the weight of a call on a side. Returns 0 or -ENOMEM. */
int csink_gate_call_add(struct csink_gate_functions *functions, uint32_t caller, uint32_t callee, int side,
			double weight);

/** Add calls between functions that have become others: to[f] is what f is now. What calls itself is left out. Returns
 * 0 or -ENOMEM. */
int csink_gate_calls_move(struct csink_gate_functions *functions, const struct csink_gate_edge *edges, uint32_t nr,
			  const uint32_t *to);

/** Remember where a function is on a side: the first file that is known, the first line in it. */
void csink_gate_function_learn(struct csink_gate_functions *functions, uint32_t function, int side, const char *file,
			       int64_t line);

/** Room for all functions that are known by now; new ones weigh 0. Returns 0 or -ENOMEM. */
int csink_gate_weights_grow(struct csink_gate_weights *weights, uint32_t nr);

/** Is that the program of one of the sides? */
bool csink_gate_is_program(const struct csink_gate_functions *functions, const char *module);

/** Are two modules, by their base names, one? Versions of a library are, and the programs of both sides. */
bool csink_gate_same_module(const struct csink_gate_functions *functions, const char *left, const char *right);

/** Move the weights of functions to others: to[f] is where that of f goes. No total gets larger than the run. Returns 0
 * or -ENOMEM. */
int csink_gate_weights_move(struct csink_gate_weights *weights, const uint32_t *to, uint32_t nr);

/* ---- places.c: functions without a name ---- */

/** A build of a module was seen; id: "" unknown. Returns 0 or -ENOMEM. */
int csink_gate_module_learn(struct csink_gate_functions *functions, const char *name, const char *id);

/** What a function is called on both sides: its name, also if that is a place and the module is the same build in all
 * that was seen so far; else CSINK_GATE_NO_NAME. */
const char *csink_gate_comparable_name(const struct csink_gate_functions *functions, const char *name,
				       const char *module);

#define CSINK_GATE_NO_NAME "[no symbol]" /* all functions of a module that have no name, together */

#endif
