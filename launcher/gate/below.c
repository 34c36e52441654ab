/*
 * What is named in a verdict, where an interpreter's own functions are among those that changed: the function that
 * people wrote comes before those that the interpreter runs for it, and by a file that no other one is mistaken for.
 * Runs on the thread that judges.
 */
#include <errno.h>
#include <stdlib.h>

#include "include/internal/cleanup.h"
#include "launcher/gate/judge_impl.h"
#include "launcher/profile/short_paths.h"

int csink_judge_below(struct judge *judge)
{
	CSINK_AUTO_FREE double *own = calloc((size_t)judge->data->functions.nr * 2 + 1, sizeof(*own));
	double *below = own + judge->data->functions.nr;

	if (!own)
		return -ENOMEM;
	EACH_RUN(judge, side, i)
	{
		const struct csink_gate_weights *weights = &judge->runs[side][i]->weights;

		/* A run without parts, as of an old baseline, has no callers. */
		for (uint32_t f = 0; weights->nr_parts && f < weights->nr; f++)
			own[f] += weights->self[f];
		for (uint32_t k = 0; k < weights->nr_parts; k++) {
			if (weights->parts[k].owner != weights->parts[k].function)
				below[weights->parts[k].function] += weights->parts[k].weight;
		}
	}
	for (uint32_t f = 0; f < judge->data->functions.nr; f++)
		judge->is_below[f] = !judge->data->functions.all[f].is_interpreted && below[f] > own[f] / 2;
	return 0;
}

/* ---- files ---- */

/* The files of a side that are named, each to be shortened beside the others. */
struct naming {
	const struct csink_gate_functions *functions;
	const char **paths;
	uint32_t *of; /* functions */
	uint32_t nr;
	int side;
};

static void add(struct naming *n, int64_t f)
{
	if (f < 0 || !n->functions->all[f].is_interpreted || n->functions->all[f].side != n->side)
		return;
	n->paths[n->nr] = n->functions->all[f].file;
	n->of[n->nr++] = (uint32_t)f;
}

int csink_judge_modules(struct judge *judge)
{
	const struct csink_gate_functions *functions = &judge->data->functions;
	struct csink_gate_verdicts *out = judge->out;
	size_t room = (size_t)out->nr_rows + CSINK_GATE_MAX_MOVES + 1;
	CSINK_AUTO_FREE const char **paths = calloc(room, sizeof(*paths));
	CSINK_AUTO_FREE uint32_t *of = calloc(room, sizeof(*of));

	out->modules = calloc((size_t)functions->nr + 1, sizeof(*out->modules));
	if (!paths || !of || !out->modules)
		return -ENOMEM;
	for (uint32_t f = 0; f < functions->nr; f++)
		out->modules[f] = functions->all[f].module;
	/* The two versions of a file may be in different directories: each side is named by itself. */
	for (int side = 0; side < 2; side++) {
		struct naming n = {functions, paths, of, 0, side};

		for (uint32_t i = 0; i < out->nr_rows; i++)
			add(&n, out->rows[i].function);
		for (uint32_t i = 0; i < out->moves.nr; i++)
			add(&n, out->moves.all[i].function);
		if (out->moves.has_within)
			add(&n, out->moves.within.function);
		csink_short_paths(paths, n.nr);
		for (uint32_t i = 0; i < n.nr; i++)
			out->modules[of[i]] = paths[i];
	}
	return 0;
}
