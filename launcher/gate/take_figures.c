/* What a run spent in each function, from its profile: see gate_functions.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/gate/gate_functions.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/interpreted.h"
#include "launcher/profile/own_types.h"
#include "launcher/profile/profile.h"

/* While a profile is taken. */
struct take {
	struct csink_gate_functions *functions;
	const struct csink_profile *p;
	uint32_t *of_line;     /* of each line in the profile's pool: its function here */
	uint32_t *of_location; /* of locations that have no line */
	struct csink_gate_weights *weights;
	uint32_t *seen; /* of each function: the last sample whose stack it is in, from 1 */
	const struct csink_gate_scope *scope;
	signed char *held; /* of each of the profile's functions: whether the scope holds it; -1: not asked yet */
	int side;
};

static const char *module_of(const struct take *take, uint32_t mapping)
{
	const struct csink_profile *p = take->p;

	return mapping < p->nr_mappings ? csink_base_name(csink_profile_text(p, p->mappings[mapping].file)) : "";
}

static int64_t find_function(struct take *take, const struct csink_profile_location *location,
			     const struct csink_profile_line *line)
{
	const struct csink_profile_function *function = &take->p->functions[line->function];
	const char *name = csink_profile_text(take->p, function->name);
	const char *file = csink_profile_text(take->p, function->file);
	int64_t index;

	if (csink_is_interpreted(take->p, location->mapping, line->function))
		return csink_gate_interpreted_find(take->functions, take->side, name, file, function->start_line);
	index = csink_gate_function_find(take->functions, name, module_of(take, location->mapping));
	if (index >= 0)
		csink_gate_function_learn(take->functions, (uint32_t)index, take->side, file,
					  function->start_line > 0 ? function->start_line : line->line);
	return index;
}

static int map_location(struct take *take, uint32_t id)
{
	const struct csink_profile_location *location = &take->p->locations[id];
	const char *module = module_of(take, location->mapping);
	int64_t index;

	if (!location->nr_lines) {
		index = csink_gate_function_find(take->functions, *module ? CSINK_GATE_NO_NAME : "[unknown]", module);
		take->of_location[id] = (uint32_t)index;
		return index < 0 ? (int)index : 0;
	}
	for (uint32_t i = location->first_line; i < location->first_line + location->nr_lines; i++) {
		index = find_function(take, location, &take->p->lines[i]);
		if (index < 0)
			return (int)index;
		take->of_line[i] = (uint32_t)index;
	}
	return 0;
}

static int map_locations(struct take *take)
{
	int err = 0;

	take->of_line = calloc(take->p->nr_lines + 1, sizeof(*take->of_line));
	take->of_location = calloc(take->p->nr_locations + 1, sizeof(*take->of_location));
	if (!take->of_line || !take->of_location)
		return -ENOMEM;
	for (uint32_t i = 1; i < take->p->nr_mappings && !err; i++)
		err = csink_gate_module_learn(take->functions, module_of(take, i),
					      csink_profile_text(take->p, take->p->mappings[i].build_id));
	for (uint32_t id = 1; id < take->p->nr_locations && !err; id++)
		err = map_location(take, id);
	if (err)
		return err;
	err = csink_gate_weights_grow(take->weights, take->functions->nr);
	take->weights->total = calloc((size_t)take->functions->nr + 1, sizeof(*take->weights->total));
	take->seen = calloc((size_t)take->functions->nr + 1, sizeof(*take->seen));
	return err || (take->weights->total && take->seen) ? err : -ENOMEM;
}

static int add_part(struct csink_gate_weights *weights, uint32_t owner, uint32_t function, double weight)
{
	struct csink_gate_part part = {owner, function, weight};

	return CSINK_APPEND(weights->parts, weights->nr_parts, weights->cap_parts, part) ? 0 : -ENOMEM;
}

CSINK_COMPARE_BY(compare_parts, struct csink_gate_part, owner, function)

/* Each sample has added one: make those of the same two functions one. */
static void join_parts(struct csink_gate_weights *weights)
{
	struct csink_gate_part *parts = weights->parts;
	uint32_t nr = 0;

	if (parts)
		qsort(parts, weights->nr_parts, sizeof(*parts), compare_parts);
	for (uint32_t i = 0; i < weights->nr_parts; i++) {
		if (nr && !compare_parts(&parts[nr - 1], &parts[i]))
			parts[nr - 1].weight += parts[i].weight;
		else
			parts[nr++] = parts[i];
	}
	weights->nr_parts = nr;
}

/* Walk a sample's stack from its innermost function, inlined ones included; without the native code that is folded. */
static int add_stack(struct take *take, uint32_t sample, double value)
{
	uint32_t number = take->p->samples[sample].stack;
	const struct csink_profile_range *stack = &take->p->stacks[number];
	uint32_t callee = UINT32_MAX, leaf = UINT32_MAX, owner = UINT32_MAX;
	uint32_t folded_end =
		stack->first + (take->functions->folds_native ? csink_outermost_interpreted(take->p, number) : 0);

	for (uint32_t i = stack->first; i < stack->first + stack->nr; i++) {
		uint32_t id = take->p->stack_ids[i];
		const struct csink_profile_location *location = &take->p->locations[id];

		if (i < folded_end && !csink_is_interpreted_location(take->p, id))
			continue;
		for (uint32_t k = 0; k < CSINK_MAX(location->nr_lines, 1); k++) {
			uint32_t f =
				location->nr_lines ? take->of_line[location->first_line + k] : take->of_location[id];

			if (leaf == UINT32_MAX)
				take->weights->self[leaf = f] += value;
			else if (callee != f && csink_gate_call_add(take->functions, f, callee, take->side, value))
				return -ENOMEM;
			/* One that calls itself has the time once. */
			if (take->seen[f] != sample + 1)
				take->weights->total[f] += value;
			take->seen[f] = sample + 1;
			callee = f;
			if (owner == UINT32_MAX && take->functions->all[f].is_interpreted)
				owner = f;
		}
	}
	return owner == UINT32_MAX ? 0 : add_part(take->weights, owner, leaf, value);
}

static void mark_pseudo(struct take *take, const struct csink_profile_range *stack)
{
	const struct csink_profile_location *location;

	if (!stack->nr)
		return;
	location = &take->p->locations[take->p->stack_ids[stack->first]];
	if (location->nr_lines)
		take->functions->all[take->of_line[location->first_line]].is_pseudo = true;
}

static bool holds(struct take *take, uint32_t function)
{
	if (take->held[function] < 0)
		take->held[function] = take->scope->holds(
			take->scope->arg, take->side, csink_profile_text(take->p, take->p->functions[function].name));
	return take->held[function];
}

/* Is a stack in the scope? */
static bool is_inside(struct take *take, const struct csink_profile_range *stack)
{
	for (uint32_t i = stack->first; i < stack->first + stack->nr; i++) {
		const struct csink_profile_location *location = &take->p->locations[take->p->stack_ids[i]];

		for (uint32_t k = 0; k < location->nr_lines; k++) {
			if (holds(take, take->p->lines[location->first_line + k].function))
				return true;
		}
	}
	return false;
}

static int add_samples(struct take *take, int64_t run)
{
	const struct csink_profile *p = take->p;
	csink_str_t pseudo_key = csink_profile_str_find(p, CSINK_LABEL_PSEUDO);
	csink_str_t run_key = csink_profile_str_find(p, CSINK_LABEL_RUN);
	int counts = csink_profile_type_find(p, "samples");
	int64_t alloc_period = csink_own_period(p, p->default_type);
	uint32_t top;

	for (uint32_t i = 0; i < p->nr_samples; i++) {
		const struct csink_profile_range *stack = &p->stacks[p->samples[i].stack];
		uint32_t labels = p->samples[i].labels;
		const struct csink_profile_label *label = csink_profile_label_find(p, labels, run_key);
		const int64_t *values = csink_profile_values(p, i);
		double value = (double)values[p->default_type];

		if (run >= 0 && (!label || label->num != run))
			continue;
		if (take->scope && !is_inside(take, stack))
			continue;
		if (csink_profile_label_find(p, labels, pseudo_key))
			mark_pseudo(take, stack);
		else
			take->weights->nr_samples += counts < 0 ? 1 : (uint64_t)values[counts];
		take->weights->sum += value;
		if (add_stack(take, i, value))
			return -ENOMEM;
		top = csink_top_level(p, p->samples[i].stack);
		if (top)
			take->functions->all[take->of_line[p->locations[top].first_line]].top_level += value;
	}
	if (alloc_period)
		take->weights->nr_samples = (uint64_t)(take->weights->sum / (double)alloc_period);
	return 0;
}

int csink_gate_take(struct csink_gate_functions *functions, const struct csink_profile *p,
		    const struct csink_gate_scope *scope, int64_t run, int side, struct csink_gate_weights *weights)
{
	struct take take = {.functions = functions, .p = p, .weights = weights, .scope = scope, .side = side};
	int err;

	memset(weights, 0, sizeof(*weights));
	take.held = malloc((size_t)p->nr_functions + 1);
	if (!take.held)
		return -ENOMEM;
	memset(take.held, -1, (size_t)p->nr_functions + 1);
	err = map_locations(&take);
	if (!err)
		err = add_samples(&take, run);
	join_parts(weights);
	free(take.of_line);
	free(take.of_location);
	free(take.seen);
	free(take.held);
	if (err)
		csink_gate_weights_free(weights);
	return err;
}
