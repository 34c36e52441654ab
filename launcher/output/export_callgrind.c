/*
 * Callgrind's format, for KCachegrind and callgrind_annotate: the costs of each line, and of the calls from it. Whole
 * stacks are lost in it, and how often something was called is not known from samples: each call is counted once.
 *
 * A stack adds its weight to each function once, so that inclusive costs are right for recursive ones too: to the line
 * where the innermost function was, and to the outermost call of each other one. (A recursive function's own calls to
 * itself are therefore not shown where it is the innermost one.)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/search.h"
#include "launcher/base/text.h"
#include "launcher/output/calltree.h"
#include "launcher/output/export.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

#define MAX_EVENTS 32

/* What a cost is for: kept as a stack of a profile that adds up the values of equal ones. */
enum cost_field { COST_FRAME, COST_LINE, COST_CALLEE, COST_CALLEE_LINE, NR_COST_FIELDS };
#define NO_CALLEE UINT32_MAX

struct callgrind {
	FILE *out;
	const struct csink_profile *p;
	struct csink_calltree *tree;
	struct csink_rows map; /* of the locations: frames */
	struct csink_profile *costs;
	uint32_t *stamps; /* of each frame: the last sample that was added to it, + 1 */
	bool *named;      /* of each frame: its name was written */
	struct step {
		uint32_t frame, line;
	} * steps; /* a stack, innermost first */
	uint32_t cap_steps;
	uint32_t types[MAX_EVENTS], nr_types; /* of the profile: the chosen one first, by which readers sort */
};

static int add_cost(struct callgrind *c, uint32_t sample, const struct step *at, const struct step *callee)
{
	uint32_t key[NR_COST_FIELDS] = {at->frame, at->line, NO_CALLEE, 0};

	if (c->stamps[at->frame] == sample + 1)
		return 0;
	c->stamps[at->frame] = sample + 1;
	if (callee) {
		key[COST_CALLEE] = callee->frame;
		key[COST_CALLEE_LINE] = CSINK_MAX(c->tree->frames[callee->frame].start_line, 0);
	}
	csink_profile_sample_add(c->costs, csink_profile_stack_add(c->costs, key, NR_COST_FIELDS), 0,
				 csink_profile_values(c->p, sample));
	return csink_profile_error(c->costs);
}

/* The stack of a sample as functions and lines. Returns how many, or -ENOMEM. */
static int64_t unfold(struct callgrind *c, const struct csink_profile_range *stack)
{
	const struct csink_profile *p = c->p;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t id = p->stack_ids[stack->first + i];
		const struct csink_profile_range *span = &c->map.spans[id];
		const struct csink_profile_location *location = &p->locations[id];

		if (CSINK_GROW_TO(c->steps, c->cap_steps, (uint64_t)nr + span->nr))
			return -ENOMEM;
		for (uint32_t k = 0; k < span->nr; k++) {
			int64_t line = location->nr_lines ? p->lines[location->first_line + k].line : 0;

			c->steps[nr++] = (struct step){c->map.ids[span->first + k], CSINK_MAX(line, 0)};
		}
	}
	return nr;
}

static int add_samples(struct callgrind *c)
{
	int64_t nr;
	int err = 0;

	for (uint32_t s = 0; s < c->p->nr_samples && !err; s++) {
		nr = unfold(c, &c->p->stacks[c->p->samples[s].stack]);
		if (nr < 0)
			return nr;
		if (nr)
			err = add_cost(c, s, &c->steps[0], NULL);
		for (int64_t i = nr - 1; i > 0 && !err; i--)
			err = add_cost(c, s, &c->steps[i], &c->steps[i - 1]);
	}
	return err;
}

/* ---- writing ---- */

/* A name is written at its first use; later its number stands for it. Numbers are those of the frames. */
static void put_place(struct callgrind *c, const char *prefix, uint32_t frame)
{
	const struct csink_frame *f = &c->tree->frames[frame];

	csink_text_print_as(c->out, CSINK_TEXT_CALLGRIND, "%sob=%s\n%s=%s\n%sfn=(%u)", prefix,
			    *f->module ? f->module : "???", *prefix ? "cfi" : "fl", *f->file ? f->file : "???", prefix,
			    frame + 1);
	if (!c->named[frame])
		csink_text_print_as(c->out, CSINK_TEXT_CALLGRIND, " %s", f->name);
	c->named[frame] = true;
	putc('\n', c->out);
}

static void put_values(struct callgrind *c, uint32_t line, const int64_t *values)
{
	fprintf(c->out, "%u", line);
	for (uint32_t t = 0; t < c->nr_types; t++)
		fprintf(c->out, " %" PRId64, CSINK_MAX(values[c->types[t]], 0));
	putc('\n', c->out);
}

static const uint32_t *cost_key(const struct csink_profile *costs, uint32_t sample)
{
	return costs->stack_ids + costs->stacks[costs->samples[sample].stack].first;
}

static int compare_costs(const void *left, const void *right, void *costs)
{
	const uint32_t *a = cost_key(costs, *(const uint32_t *)left), *b = cost_key(costs, *(const uint32_t *)right);
	int order = 0;

	for (int i = 0; i < NR_COST_FIELDS && !order; i++)
		order = CSINK_COMPARE(a[i] + (i == COST_CALLEE), b[i] + (i == COST_CALLEE)); /* own costs first */
	return order;
}

static int put_costs(struct callgrind *c)
{
	uint32_t nr = c->costs->nr_samples, last = UINT32_MAX;
	CSINK_AUTO_FREE uint32_t *order = csink_sorted(nr, compare_costs, c->costs);
	const uint32_t *key;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		key = cost_key(c->costs, order[i]);
		if (key[COST_FRAME] != last) {
			putc('\n', c->out);
			put_place(c, "", key[COST_FRAME]);
			last = key[COST_FRAME];
		}
		if (key[COST_CALLEE] != NO_CALLEE) {
			put_place(c, "c", key[COST_CALLEE]);
			fprintf(c->out, "calls=1 %u\n", key[COST_CALLEE_LINE]);
		}
		put_values(c, key[COST_LINE], csink_profile_values(c->costs, order[i]));
	}
	return 0;
}

static void put_head(struct callgrind *c)
{
	const char *command = csink_profile_fact(c->p, CSINK_FACT_COMMAND, 0);
	const struct csink_profile *p = c->p;
	int64_t sums[MAX_EVENTS] = {0};

	csink_text_print_as(c->out, CSINK_TEXT_CALLGRIND,
			    "# callgrind format\nversion: 1\ncreator: countersink " CSINK_VERSION
			    "\ncmd: %s\npart: 1\npositions: line\n",
			    command ? command : "?");
	for (uint32_t t = 0; t < c->nr_types; t++)
		csink_text_print_as(c->out, CSINK_TEXT_CALLGRIND, "event: e%u : %s (%s)\n", t,
				    csink_profile_text(p, p->types[c->types[t]].name),
				    csink_profile_text(p, p->types[c->types[t]].unit));
	fputs("events:", c->out);
	for (uint32_t t = 0; t < c->nr_types; t++) {
		putc(' ', c->out);
		for (const char *n = csink_profile_text(p, p->types[c->types[t]].name); *n; n++)
			putc((*n >= 'a' && *n <= 'z') || (*n >= 'A' && *n <= 'Z') || (*n >= '0' && *n <= '9') ? *n
													      : '_',
			     c->out);
	}
	for (uint32_t s = 0; s < p->nr_samples; s++) {
		for (uint32_t t = 0; t < c->nr_types && p->stacks[p->samples[s].stack].nr; t++)
			sums[t] = csink_add(sums[t], csink_profile_values(p, s)[c->types[t]]);
	}
	fputs("\nsummary:", c->out);
	for (uint32_t t = 0; t < c->nr_types; t++)
		fprintf(c->out, " %" PRId64, sums[t]);
	putc('\n', c->out);
}

static int export(struct callgrind *c, uint32_t chosen)
{
	int err;

	for (uint32_t k = 0; k < c->p->nr_types && k < MAX_EVENTS; k++)
		c->types[c->nr_types++] = k == 0 ? chosen : k <= chosen ? k - 1 : k;
	c->tree = csink_calltree_create();
	c->costs = csink_profile_create();
	if (!c->tree || !c->costs)
		return -ENOMEM;
	for (uint32_t t = 0; t < c->p->nr_types; t++)
		csink_profile_type_add(c->costs, csink_profile_text(c->p, c->p->types[t].name), "");
	err = csink_calltree_map(c->tree, c->p, &c->map);
	c->stamps = calloc((size_t)c->tree->nr_frames + 1, sizeof(*c->stamps));
	c->named = calloc((size_t)c->tree->nr_frames + 1, sizeof(*c->named));
	if (!err && (!c->stamps || !c->named))
		err = -ENOMEM;
	if (!err)
		err = add_samples(c);
	if (err)
		return err;
	put_head(c);
	return put_costs(c);
}

int csink_export_callgrind(FILE *out, const struct csink_profile *p, uint32_t type)
{
	struct callgrind c = {.out = out, .p = p};
	int err = export(&c, CSINK_MIN(type, CSINK_MAX(p->nr_types, 1) - 1));

	csink_rows_free(&c.map);
	csink_calltree_free(c.tree);
	csink_profile_free(c.costs);
	free(c.stamps);
	free(c.named);
	free(c.steps);
	return err;
}
