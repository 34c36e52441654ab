/*
 * Joins interpreted functions of both sides: the table has an entry for each side's function, and entries that
 * csink_match_places() matches become one function. The judge works on a copy of the figures; the table keeps its
 * entries, since with more runs the match may be better. Runs on the thread that judges.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/gate/judge_impl.h"
#include "launcher/profile/match_functions.h"

struct joining {
	const struct csink_gate_functions *functions;
	struct csink_place *places; /* of interpreted functions */
	uint32_t *of_place;         /* their indices in the table */
	uint32_t nr;
	uint32_t *same, *file;
	uint32_t *to; /* of each function of the table: the one that it becomes */
};

/* The file whose top level has most of a side's weight below it: its script. */
static const char *find_script(const struct joining *j, int side)
{
	const struct csink_gate_function *best = NULL;

	for (uint32_t i = 0; i < j->nr; i++) {
		const struct csink_gate_function *function = &j->functions->all[j->of_place[i]];

		if (function->side == side && function->top_level > (best ? best->top_level : 0))
			best = function;
	}
	return best ? best->file : NULL;
}

/* A function of both sides becomes the entry of the new side; before that, one whose line is known. */
static void fill_to(struct joining *j)
{
	for (uint32_t f = 0; f < j->functions->nr; f++)
		j->to[f] = f;
	for (int way = 0; way < 4; way++) {
		int side = way & 1 ? CSINK_GATE_NEW : CSINK_GATE_OLD;

		for (uint32_t i = 0; i < j->nr; i++) {
			if (j->places[i].side == side && (j->places[i].line > 0) == way >> 1)
				j->to[j->of_place[j->same[i]]] = j->of_place[i];
		}
	}
	for (uint32_t i = 0; i < j->nr; i++) {
		if (j->same[i] != i)
			j->to[j->of_place[i]] = j->to[j->of_place[j->same[i]]];
	}
}

static int join(struct joining *j)
{
	uint32_t nr = j->functions->nr;
	const char *scripts[2];
	int err;

	j->same = j->of_place + nr + 1;
	j->file = j->same + nr + 1;
	for (uint32_t f = 0; f < nr; f++) {
		const struct csink_gate_function *function = &j->functions->all[f];

		if (!function->is_interpreted)
			continue;
		j->of_place[j->nr] = f;
		j->places[j->nr++] =
			(struct csink_place){function->file, function->name, function->line, function->side};
	}
	for (int side = 0; side < 2; side++)
		scripts[side] = find_script(j, side);
	err = csink_match_places(j->places, j->nr, scripts, j->same, j->file);
	if (!err)
		fill_to(j);
	return err;
}

/* Returns false without memory. */
static bool copy_array(void *to, const void *from, size_t bytes)
{
	void *copy = from ? malloc(bytes + 1) : NULL;

	if (copy)
		memcpy(copy, from, bytes);
	*(void **)to = copy;
	return copy || !from;
}

static int copy_weights(struct csink_gate_weights *to, const struct csink_gate_weights *from)
{
	size_t bytes = ((size_t)from->nr + 1) * sizeof(double);
	bool copied = copy_array(&to->self, from->self, bytes);

	copied &= copy_array(&to->total, from->total, bytes);
	copied &= copy_array(&to->parts, from->parts, (size_t)from->nr_parts * sizeof(*from->parts));
	return copied ? 0 : -ENOMEM;
}

static int copy_runs(struct csink_gate_data *view, const struct csink_gate_data *data, const uint32_t *to)
{
	int err = 0;

	view->runs = calloc((size_t)data->nr_runs + 1, sizeof(*view->runs));
	if (!view->runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->nr_runs && !err; i++) {
		view->runs[i] = data->runs[i];
		view->nr_runs = i + 1;
		err = copy_weights(&view->runs[i].weights, &data->runs[i].weights);
		if (!err)
			err = csink_gate_weights_move(&view->runs[i].weights, to, data->functions.nr);
	}
	return err;
}

int csink_gate_versions_join(const struct csink_gate_data *data, struct csink_gate_data *view, uint32_t **joined)
{
	size_t nr = (size_t)data->functions.nr + 1;
	CSINK_AUTO_FREE struct csink_place *places = calloc(nr, sizeof(*places));
	CSINK_AUTO_FREE uint32_t *scratch = calloc(nr * 3, sizeof(*scratch));
	uint32_t *to = calloc(nr, sizeof(*to));
	struct joining j = {.functions = &data->functions, .places = places, .to = to, .of_place = scratch};
	int err;

	*view = *data;
	view->runs = NULL;
	view->nr_runs = 0;
	view->functions.edges = NULL;
	view->functions.nr_edges = view->functions.cap_edges = 0;
	view->functions.calls = (struct csink_table){0};
	err = places && scratch && to ? join(&j) : -ENOMEM;
	err = err ?: copy_runs(view, data, to) ?: csink_gate_calls_move(&view->functions, data->functions.edges, data->functions.nr_edges, to);
	*joined = err ? NULL : to;
	if (!err)
		return 0;
	free(to);
	csink_gate_versions_free(view);
	return err;
}

void csink_gate_versions_free(struct csink_gate_data *view)
{
	for (uint32_t i = 0; i < view->nr_runs; i++)
		csink_gate_weights_free(&view->runs[i].weights);
	free(view->runs);
	free(view->functions.edges);
	csink_table_free(&view->functions.calls);
}
