/*
 * Functions without a name. Where a module is the same build on both sides, the place of its code is a name as good as
 * another: "[libz.so.1+0x1a40]" is the same function in every run. In another build everything is elsewhere; then all
 * of a module's are one function, CSINK_GATE_NO_NAME. Which of the two holds is known when both sides were seen.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "launcher/gate/gate.h"

static struct csink_gate_module *find_module(const struct csink_gate_functions *functions, const char *name)
{
	for (uint32_t i = 0; i < functions->nr_modules; i++) {
		if (csink_gate_same_module(functions, functions->modules[i].name, name))
			return &functions->modules[i];
	}
	return NULL;
}

int csink_gate_module_learn(struct csink_gate_functions *functions, const char *name, const char *id)
{
	struct csink_gate_module *module = find_module(functions, name);

	if (module) {
		bool differs = !*id || strcmp(module->name, name) || strcmp(module->id, id);

		functions->has_news |= differs && !module->differs;
		module->differs |= differs;
		return 0;
	}
	if (CSINK_GROW_UNCAPPED(functions->modules, functions->nr_modules))
		return -ENOMEM;
	module = &functions->modules[functions->nr_modules];
	/* Places have their program's name in them: by two names they are two. */
	if (csink_gate_is_program(functions, name) && functions->programs[0] && functions->programs[1] &&
	    strcmp(functions->programs[0], functions->programs[1]))
		id = "";
	*module = (struct csink_gate_module){csink_gate_text(functions, name), csink_gate_text(functions, id), !*id};
	if (!module->name || !module->id)
		return -ENOMEM;
	functions->nr_modules++;
	return 0;
}

static bool is_place(const char *name, const char *module)
{
	int len;
	const char *object = csink_place_object(module, &len);

	return name[0] == '[' && len && !strncmp(name + 1, object, (size_t)len) && name[len + 1] == '+';
}

const char *csink_gate_comparable_name(const struct csink_gate_functions *functions, const char *name,
				       const char *module)
{
	const struct csink_gate_module *known;

	if (!is_place(name, module))
		return name;
	known = find_module(functions, module);
	return known && !known->differs ? name : CSINK_GATE_NO_NAME;
}

/* ---- when a second build has come ---- */

static int move_calls(struct csink_gate_functions *functions, const uint32_t *to)
{
	CSINK_AUTO_FREE struct csink_gate_edge *edges = functions->edges;
	uint32_t nr = functions->nr_edges;

	functions->edges = NULL;
	functions->nr_edges = functions->cap_edges = 0;
	csink_table_free(&functions->calls);
	return csink_gate_calls_move(functions, edges, nr, to);
}

int csink_gate_merge_places(struct csink_gate_data *data)
{
	struct csink_gate_functions *functions = &data->functions;
	CSINK_AUTO_FREE uint32_t *to = NULL;
	uint32_t nr = functions->nr;
	int err = 0;

	if (!functions->has_news)
		return 0;
	to = calloc((size_t)nr + 1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (uint32_t f = 0; f < nr && !err; f++) {
		int64_t now;

		to[f] = f;
		if (functions->all[f].is_interpreted) /* it is not known by its module */
			continue;
		/* Look it up by its current name. */
		now = csink_gate_function_find(functions, functions->all[f].name, functions->all[f].module);

		to[f] = now < 0 ? 0 : (uint32_t)now;
		err = now < 0 ? (int)now : 0;
	}
	for (uint32_t i = 0; i < data->nr_runs && !err; i++)
		err = csink_gate_weights_move(&data->runs[i].weights, to, functions->nr);
	if (!err)
		err = move_calls(functions, to);
	functions->has_news = false;
	return err;
}
