/* The table of functions, and what a run spent in each: see gate_functions.h. */
#include "launcher/gate/gate_functions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/profile/profile.h"

void csink_gate_functions_free(struct csink_gate_functions *functions)
{
	free(functions->all);
	free(functions->edges);
	csink_table_free(&functions->names);
	csink_table_free(&functions->calls);
	csink_table_free(&functions->interpreted);
	csink_profile_free(functions->texts);
	free(functions->modules);
	free(functions->programs[0]);
	free(functions->programs[1]);
	memset(functions, 0, sizeof(*functions));
}

void csink_gate_weights_free(struct csink_gate_weights *weights)
{
	free(weights->self);
	free(weights->total);
	free(weights->parts);
	memset(weights, 0, sizeof(*weights));
}

double csink_gate_weight(const struct csink_gate_weights *weights, uint32_t function)
{
	return function < weights->nr ? weights->self[function] : 0;
}

/* ---- names ---- */

const char *csink_gate_text(struct csink_gate_functions *functions, const char *text)
{
	csink_str_t id;

	if (!functions->texts)
		functions->texts = csink_profile_create();
	id = functions->texts ? csink_profile_str(functions->texts, text) : 0;
	return id ? csink_profile_text(functions->texts, id) : *text ? NULL : "";
}

/* Two versions of a library are one module: libz.so.1.2.13 and libz.so.1.3. */
static size_t module_length(const char *module)
{
	const char *so = strstr(module, ".so");

	return so && (so[3] == '.' || !so[3]) ? (size_t)(so - module) + 3 : strlen(module);
}

bool csink_gate_is_program(const struct csink_gate_functions *functions, const char *module)
{
	for (int side = 0; side < 2; side++) {
		if (functions->programs[side] && !strcmp(functions->programs[side], module))
			return true;
	}
	return false;
}

static int add_function(struct csink_gate_functions *functions, const char *name, const char *module, const char *file)
{
	struct csink_gate_function added = {.name = csink_gate_text(functions, name),
					    .module = csink_gate_text(functions, module),
					    .file = csink_gate_text(functions, file)};

	return added.name && added.module && added.file &&
			       CSINK_APPEND(functions->all, functions->nr, functions->cap, added)
		       ? 0
		       : -ENOMEM;
}

bool csink_gate_same_module(const struct csink_gate_functions *functions, const char *left, const char *right)
{
	size_t len = module_length(left);

	if (csink_gate_is_program(functions, left) && csink_gate_is_program(functions, right))
		return true;
	return len == module_length(right) && !memcmp(left, right, len);
}

int64_t csink_gate_function_find(struct csink_gate_functions *functions, const char *name, const char *module)
{
	bool program = csink_gate_is_program(functions, module);
	const struct csink_gate_function *all;
	struct csink_slot *slot;
	uint32_t hash;

	name = csink_gate_comparable_name(functions, name, module);
	hash = (uint32_t)csink_hash_pair(csink_hash_bytes(name, strlen(name)),
					 csink_hash_bytes(module, program ? 0 : module_length(module)));
	if (csink_table_room(&functions->names))
		return -ENOMEM;
	all = functions->all;
	CSINK_TABLE_PROBE(functions->names, hash, slot,
			  !strcmp(all[id - 1].name, name) &&
				  csink_gate_same_module(functions, all[id - 1].module, module));
	if (!slot->id) {
		/* The name that the program has now, not the one that it is compared with. */
		if (program && functions->programs[1])
			module = functions->programs[1];
		if (add_function(functions, name, module, ""))
			return -ENOMEM;
		csink_table_set(&functions->names, slot, hash, functions->nr);
	}
	return slot->id - 1;
}

static bool is_interpreted(const struct csink_gate_function *function, int side, const char *name, const char *path,
			   int64_t line)
{
	return function->side == side && function->line == line && !strcmp(function->name, name) &&
	       !strcmp(function->file, path);
}

int64_t csink_gate_interpreted_find(struct csink_gate_functions *functions, int side, const char *name,
				    const char *path, int64_t line)
{
	uint64_t text = csink_hash_pair(csink_hash_bytes(name, strlen(name)), csink_hash_bytes(path, strlen(path)));
	uint32_t hash = (uint32_t)csink_hash_pair(text, (uint64_t)line * 2 + (uint64_t)side);
	struct csink_gate_function *added;
	struct csink_slot *slot;

	if (csink_table_room(&functions->interpreted))
		return -ENOMEM;
	CSINK_TABLE_PROBE(functions->interpreted, hash, slot,
			  is_interpreted(&functions->all[id - 1], side, name, path, line));
	if (!slot->id) {
		if (add_function(functions, name, csink_base_name(path), path))
			return -ENOMEM;
		added = &functions->all[functions->nr - 1];
		added->is_interpreted = true;
		added->side = side;
		added->line = line;
		csink_table_set(&functions->interpreted, slot, hash, functions->nr);
	}
	return slot->id - 1;
}

/* ---- calls ---- */

int csink_gate_call_add(struct csink_gate_functions *functions, uint32_t caller, uint32_t callee, int side,
			double weight)
{
	uint32_t hash = (uint32_t)csink_hash_pair(caller, callee);
	struct csink_slot *slot;

	if (csink_table_room(&functions->calls) ||
	    CSINK_GROW(functions->edges, functions->nr_edges, functions->cap_edges))
		return -ENOMEM;
	CSINK_TABLE_PROBE(functions->calls, hash, slot,
			  functions->edges[id - 1].caller == caller && functions->edges[id - 1].callee == callee);
	if (!slot->id) {
		functions->edges[functions->nr_edges] = (struct csink_gate_edge){caller, callee, {0, 0}};
		csink_table_set(&functions->calls, slot, hash, ++functions->nr_edges);
	}
	functions->edges[slot->id - 1].weights[side] += weight;
	return 0;
}

int csink_gate_calls_move(struct csink_gate_functions *functions, const struct csink_gate_edge *edges, uint32_t nr,
			  const uint32_t *to)
{
	int err = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t caller = to[edges[i].caller], callee = to[edges[i].callee];

		for (int side = 0; side < 2 && caller != callee && !err; side++)
			err = csink_gate_call_add(functions, caller, callee, side, edges[i].weights[side]);
	}
	return err;
}

/* ---- more about them ---- */

void csink_gate_function_learn(struct csink_gate_functions *functions, uint32_t function, int side, const char *file,
			       int64_t line)
{
	struct csink_gate_function *known = &functions->all[function];

	if (*file && (!*known->file || side > known->side)) {
		file = csink_gate_text(functions, file);
		if (!file)
			return;
		known->file = file;
		known->line = 0;
		known->side = side;
	}
	if (side == known->side && line > 0 && (!known->line || line < known->line) && !strcmp(known->file, file))
		known->line = line;
}

static int grow_array(double **array, uint32_t from, uint32_t to)
{
	if (csink_grow((void **)array, (uint64_t)to + 1, sizeof(**array)))
		return -ENOMEM;
	memset(*array + from, 0, ((size_t)to + 1 - from) * sizeof(**array));
	return 0;
}

int csink_gate_weights_grow(struct csink_gate_weights *weights, uint32_t nr)
{
	if (grow_array(&weights->self, weights->nr, nr) ||
	    (weights->total && grow_array(&weights->total, weights->nr, nr)))
		return -ENOMEM;
	weights->nr = nr;
	return 0;
}

int csink_gate_weights_move(struct csink_gate_weights *weights, const uint32_t *to, uint32_t nr)
{
	uint32_t had = weights->nr;

	if (csink_gate_weights_grow(weights, CSINK_MAX(had, nr)))
		return -ENOMEM;
	for (uint32_t i = 0; i < weights->nr_parts; i++) {
		weights->parts[i].owner = to[weights->parts[i].owner];
		weights->parts[i].function = to[weights->parts[i].function];
	}
	for (uint32_t f = 0; f < had; f++) {
		if (to[f] == f)
			continue;
		weights->self[to[f]] += weights->self[f];
		weights->self[f] = 0;
		if (!weights->total)
			continue;
		weights->total[to[f]] = fmin(weights->sum, weights->total[to[f]] + weights->total[f]);
		weights->total[f] = 0;
	}
	return 0;
}
