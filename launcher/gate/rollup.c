/*
 * Cost that only moved: where a function is split in two, inlined or renamed, others get costlier by as much as it gets
 * cheaper. Functions that changed and are neighbours in the call tree (one calls the other, or the same function calls
 * both) are therefore judged together if some got costlier and some cheaper: if their sum did not regress, none did.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/format.h"
#include "launcher/base/search.h"
#include "launcher/gate/judge_impl.h"

#define CALL_SHARE 0.05 /* of what a function is called by: weaker calls connect nothing */
#define NEW_RATIO 10    /* what grew as much was not there before, but for a stray sample */
#define MOVER_P 0.05    /* what is as unlikely as that to be chance may have given the cost */
#define GIVER_SHARE 0.5 /* of what the costlier ones gained: less is not where it came from */

/* A function; it moved if its row got costlier or cheaper. Groups are made by union-find. */
struct member {
	uint32_t parent;
	double called; /* the weight of all calls to it */
	bool moved;
	bool joins; /* it moved, or is there on one side only, as what a split leaves behind */
};

struct rollup {
	struct judge *judge;
	struct csink_gate_row *rows;
	uint32_t nr;
	struct member *of; /* each function */
};

static uint32_t root_of(struct rollup *r, uint32_t f)
{
	while (r->of[f].parent != f)
		f = r->of[f].parent = r->of[r->of[f].parent].parent;
	return f;
}

static bool is_costlier(const struct csink_gate_row *row)
{
	return row->verdict == CSINK_GATE_REGRESSED ||
	       (row->verdict == CSINK_GATE_INCONCLUSIVE && row->ratio > 1 && row->p_greater <= MOVER_P);
}

/* What gave its cost away shows that as clearly as the other one that it has it; the odd one among many that is a bit
 * cheaper by chance gave nothing. */
static bool is_cheaper(const struct csink_gate_row *row)
{
	return row->ratio < 1 && row->q <= MOVER_P;
}

static int compare_by_caller(const void *a, const void *b)
{
	const struct csink_gate_edge *left = a, *right = b;

	return CSINK_COMPARE(left->caller, right->caller);
}

static void join(struct rollup *r, uint32_t f, uint32_t other)
{
	r->of[root_of(r, f)].parent = root_of(r, other);
}

/* Join functions that one function calls, and with it if it joins, too. */
static void connect(struct rollup *r, struct csink_gate_edge *edges, uint32_t nr)
{
	qsort(edges, nr, sizeof(*edges), compare_by_caller);
	for (uint32_t i = 0, k; i < nr; i = k) {
		int64_t first = r->of[edges[i].caller].joins ? (int64_t)edges[i].caller : -1;

		for (k = i; k < nr && edges[k].caller == edges[i].caller; k++) {
			uint32_t f = edges[k].callee;

			if (!r->of[f].joins || edges[k].weights[0] + edges[k].weights[1] < CALL_SHARE * r->of[f].called)
				continue;
			if (first >= 0)
				join(r, f, (uint32_t)first);
			else
				first = f;
		}
	}
}

/* Functions that were in stacks of one side only. A baseline of counted instructions has no stacks: then none is. */
static int mark_one_sided(struct rollup *r)
{
	const struct csink_gate_functions *functions = &r->judge->data->functions;
	CSINK_AUTO_FREE double *seen = calloc((size_t)functions->nr * 2 + 2, sizeof(*seen));
	double all[2] = {0, 0};

	if (!seen)
		return -ENOMEM;
	for (uint32_t i = 0; i < functions->nr_edges; i++) {
		const struct csink_gate_edge *edge = &functions->edges[i];

		for (int side = 0; side < 2; side++) {
			seen[edge->caller * 2 + side] += edge->weights[side];
			seen[edge->callee * 2 + side] += edge->weights[side];
			all[side] += edge->weights[side];
		}
	}
	for (uint32_t f = 0; f < functions->nr && all[0] > 0 && all[1] > 0; f++)
		r->of[f].joins |= (seen[f * 2] > 0) != (seen[f * 2 + 1] > 0);
	return 0;
}

static int find_groups(struct rollup *r)
{
	const struct csink_gate_functions *functions = &r->judge->data->functions;
	CSINK_AUTO_FREE struct csink_gate_edge *edges = malloc((functions->nr_edges + 1) * sizeof(*edges));
	int err = edges ? mark_one_sided(r) : -ENOMEM;

	if (err)
		return err;
	if (functions->nr_edges)
		memcpy(edges, functions->edges, functions->nr_edges * sizeof(*edges));
	for (uint32_t i = 0; i < functions->nr_edges; i++)
		r->of[edges[i].callee].called += edges[i].weights[0] + edges[i].weights[1];
	for (uint32_t f = 0; f < functions->nr; f++)
		r->of[f].parent = f;
	for (uint32_t i = 0; i < r->nr; i++) {
		bool moved = is_costlier(&r->rows[i]) || is_cheaper(&r->rows[i]);

		r->of[r->rows[i].function].moved = moved;
		r->of[r->rows[i].function].joins |= moved;
	}
	connect(r, edges, functions->nr_edges);
	return 0;
}

/* ---- a group ---- */

/* "f, g and 3 others", of the functions in the group that got costlier or cheaper. */
static void name_some(const struct rollup *r, const bool *is_in, bool costlier, char *out, size_t size)
{
	uint32_t nr = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < r->nr; i++) {
		const char *name = r->judge->data->functions.all[r->rows[i].function].name;

		if (!is_in[r->rows[i].function] || is_costlier(&r->rows[i]) != costlier)
			continue;
		if (nr++ < 3)
			csink_append(out, size, "%s%.60s", *out ? ", " : "", name);
	}
	if (nr > 3)
		csink_append(out, size, " and %u others", nr - 3);
}

/* How much costlier a function got, corrected by the speed of the runs. */
static double gain_of(const struct rollup *r, const struct csink_gate_row *row)
{
	double speed = isnan(r->judge->out->speed) ? 1 : r->judge->out->speed;

	return isfinite(row->ratio) ? row->means[0] * (row->ratio - 1) : row->means[1] / speed;
}

/*
 * Did cost move between the functions of a group? A function that was there before and got costlier is not explained by
 * one that got cheaper by far more. Its regression is not explained by functions that are cheaper at MOVER_P alone
 * either: in up to that share of the gates, one of its neighbours is cheaper by chance.
 */
static bool is_exchange(const struct rollup *r, const bool *is_in)
{
	double gained = 0, given = 0, sure = 0;
	bool all_new = true, blames_old = false;

	for (uint32_t i = 0; i < r->nr; i++) {
		const struct csink_gate_row *row = &r->rows[i];
		double gain = gain_of(r, row);

		if (!is_in[row->function])
			continue;
		if (is_costlier(row)) {
			gained += gain;
			all_new &= !(row->ratio < NEW_RATIO);
			blames_old |= row->ratio < NEW_RATIO && row->verdict == CSINK_GATE_REGRESSED;
		} else {
			given -= gain;
			sure -= row->q <= r->judge->out->alpha ? gain : 0;
		}
	}
	return gained > 0 && (blames_old ? sure : given) > GIVER_SHARE * gained &&
	       (all_new || given < gained / GIVER_SHARE);
}

static int take_back(struct rollup *r, const bool *is_in, const struct csink_gate_row *sum)
{
	char costlier[256], cheaper[256];

	name_some(r, is_in, true, costlier, sizeof(costlier));
	name_some(r, is_in, false, cheaper, sizeof(cheaper));
	for (uint32_t i = 0; i < r->nr; i++) {
		struct csink_gate_row *row = &r->rows[i];

		if (!is_in[row->function])
			continue;
		free(row->note);
		row->note = NULL;
		if (asprintf(&row->note,
			     "cost moved between functions: %s got slower, %s faster; together %+.1f %% (95 %% CI "
			     "%+.1f to %+.1f)",
			     costlier, cheaper, (sum->ratio - 1) * 100, (sum->interval.low - 1) * 100,
			     (sum->interval.high - 1) * 100) < 0)
			return -ENOMEM;
		row->verdict = sum->verdict;
		row->can_regress = sum->can_regress;
		row->runs_needed = sum->runs_needed;
	}
	return 0;
}

static int judge_group(struct rollup *r, uint32_t root, bool *is_in)
{
	struct csink_gate_row sum = {.metric = -1, .function = -1};
	uint32_t members = 0;

	memset(is_in, 0, r->judge->data->functions.nr * sizeof(*is_in));
	for (uint32_t i = 0; i < r->nr; i++) {
		uint32_t f = (uint32_t)r->rows[i].function;

		if (!r->of[f].moved || root_of(r, f) != root)
			continue;
		is_in[f] = true;
		members++;
		sum.means[0] += r->rows[i].means[0];
		sum.means[1] += r->rows[i].means[1];
	}
	if (members < 2 || !is_exchange(r, is_in))
		return 0;
	sum.cost_ratio = sum.means[1] / sum.means[0];
	csink_judge_part(r->judge, is_in, &sum);
	csink_judge_conclude(r->judge, &sum, sum.p_greater, sum.p_less, 1);
	/* A sum that got worse leaves its members as they are: one of them did. */
	return sum.verdict == CSINK_GATE_REGRESSED ? 0 : take_back(r, is_in, &sum);
}

int csink_judge_rollup(struct judge *judge)
{
	uint32_t nr_functions = judge->data->functions.nr;
	struct rollup r = {.judge = judge,
			   .rows = judge->out->rows + judge->out->nr_metric_rows,
			   .nr = judge->out->nr_rows - judge->out->nr_metric_rows};
	CSINK_AUTO_FREE struct member *of = calloc((size_t)nr_functions + 1, sizeof(*of));
	CSINK_AUTO_FREE bool *is_in = calloc(nr_functions + 1, sizeof(*is_in));
	int err;

	r.of = of;
	err = is_in && of ? find_groups(&r) : -ENOMEM;
	for (uint32_t f = 0; !err && f < nr_functions; f++) {
		if (root_of(&r, f) == f && r.of[f].joins)
			err = judge_group(&r, f, is_in);
	}
	return err;
}
