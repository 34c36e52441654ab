/* Turns what was found into ranges of addresses that share their lines, for symbols_cache.c to store. */
#include <errno.h>
#include <stdlib.h>

#include "include/internal/grow.h"
#include "launcher/symbols/symbols_impl.h"

static bool has_same_lines(const struct csink_profile *p, uint32_t a, uint32_t b)
{
	const struct csink_profile_location *left = &p->locations[a], *right = &p->locations[b];

	if (left->nr_lines != right->nr_lines)
		return false;
	for (uint32_t i = 0; i < left->nr_lines; i++) {
		const struct csink_profile_line *one = &p->lines[left->first_line + i];
		const struct csink_profile_line *other = &p->lines[right->first_line + i];

		if (one->function != other->function || one->line != other->line)
			return false;
	}
	return true;
}

/* Neighbours with the same lines become one. */
static int add(struct csink_answers *answers, const struct csink_answer *answer)
{
	struct csink_answer *last = answers->nr ? &answers->all[answers->nr - 1] : NULL;

	if (last && last->high == answer->low && last->flags == answer->flags &&
	    has_same_lines(answers->p, last->location, answer->location)) {
		last->high = answer->high;
		return 0;
	}
	return CSINK_APPEND(answers->all, answers->nr, answers->cap, *answer) ? 0 : -ENOMEM;
}

/* As symbols.c does it, but for procedure linkage tables, which no unit has. */
static int resolve(struct csink_batch *batch, const struct csink_elfs *elfs, Dwarf *dwarf)
{
	Elf *const files[] = {elfs->main, elfs->debug};
	int err = csink_elf_symbols(batch, files, CSINK_ARRAY_SIZE(files));

	if (!err && dwarf)
		err = csink_dwarf_resolve(batch, dwarf, NULL);
	if (!err && elfs->main)
		csink_elf_init_and_fini(batch, elfs->main);
	if (!err && elfs->main)
		csink_elf_unwind_starts(batch, elfs->main, elfs->path);
	csink_batch_fill_rest(batch);
	return err ? err : csink_profile_error(batch->p);
}

int csink_answers_find(struct csink_answers *answers, const struct csink_bounds *bounds, const struct csink_elfs *elfs,
		       Dwarf *dwarf, struct csink_spending *spending)
{
	struct csink_batch batch = {.p = csink_profile_create(),
				    .path = elfs->path,
				    .spending = *spending,
				    .wants = calloc(bounds->nr + 1, sizeof(*batch.wants)),
				    .found = calloc(bounds->nr + 1, sizeof(*batch.found))};
	uint64_t *highs = calloc(bounds->nr + 1, sizeof(*highs));
	int err = 0;

	*answers = (struct csink_answers){.p = batch.p};
	if (!batch.p || !batch.wants || !batch.found || !highs)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i + 1 < bounds->nr; i++) {
		if (!csink_bounds_hold(bounds, bounds->all[i]))
			continue;
		highs[batch.nr] = bounds->all[i + 1];
		batch.wants[batch.nr++] = (struct csink_want){
			bounds->all[i], csink_profile_location_add(batch.p, 0, bounds->all[i], NULL, 0)};
	}
	if (!err && batch.nr)
		err = resolve(&batch, elfs, dwarf);
	for (uint32_t i = 0; !err && i < batch.nr; i++) {
		struct csink_answer answer = {batch.wants[i].address, highs[i], batch.wants[i].location,
					      csink_batch_flags(&batch, i)};

		err = add(answers, &answer);
	}
	*spending = batch.spending;
	free(batch.wants);
	free(batch.found);
	free(highs);
	return err ? err : batch.flags & CSINK_LEFT;
}

static bool is_held(const struct csink_answers *answers, uint64_t address)
{
	uint32_t at = CSINK_LOWER(answers->nr, i, answers->all[i].high <= address);

	return at < answers->nr && answers->all[at].low <= address;
}

int csink_answers_add_wants(struct csink_answers *answers, const struct csink_batch *batch,
			    const struct csink_answers *others)
{
	int err = 0;

	*answers = (struct csink_answers){.p = batch->p};
	for (uint32_t i = 0; i < batch->nr && !err; i++) {
		const struct csink_want *want = &batch->wants[i];
		struct csink_answer answer = {want->address, want->address + 1, want->location,
					      csink_batch_flags(batch, i)};

		/* The other file of a split unit may be there the next time. */
		if (!batch->found[i].is_split && !is_held(others, want->address) &&
		    (!answers->nr || answers->all[answers->nr - 1].low != want->address))
			err = add(answers, &answer);
	}
	return err;
}

void csink_answers_free(struct csink_answers *answers)
{
	free(answers->all);
	*answers = (struct csink_answers){0};
}
