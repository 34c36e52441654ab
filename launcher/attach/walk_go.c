/* See walk_go.h. Runs in the attach command's one thread. */
#include "launcher/attach/walk_go.h"

#include "include/internal/base.h"
#include "include/internal/recording_format.h"
#include "launcher/attach/go_object.h"

#define KERNELS_LEAST_DEPTH 127 /* a walk of the kernel's that has so many callers may lack the rest */

/* The kernel's walk, an entry at a time, with where its return address lies. */
struct chain {
	const struct csink_walk_copy *copy;
	uint64_t next, fp;
	bool has_fp;
	uint64_t address, slot; /* of the entry; slot 0: it is not known */
};

static bool is_caller(uint64_t address)
{
	return address && address < (uint64_t)-4095 && address >> 48 == 0;
}

static void begin(struct chain *chain, const struct csink_walk_copy *copy)
{
	*chain = (struct chain){.copy = copy, .has_fp = true, .fp = csink_walk_copy_reg(copy->regs, CSINK_REG_FP)};
	/* Marks of contexts; then the interrupted instruction. */
	while (chain->next < copy->nr_chain && !is_caller(copy->chain[chain->next]))
		chain->next++;
	chain->next++;
}

static bool next(struct chain *chain)
{
	bool is_cut = false;

	if (chain->next >= chain->copy->nr_chain || !is_caller(chain->copy->chain[chain->next]))
		return false;
	chain->address = chain->copy->chain[chain->next++];
	chain->slot = chain->has_fp ? chain->fp + 8 : 0;
	chain->has_fp = chain->has_fp && csink_walk_copy_load(chain->copy, chain->fp, &chain->fp, &is_cut);
	return true;
}

static bool rule_of(const struct csink_walk_copy *copy, uint64_t address, struct csink_go_rule *rule)
{
	const struct csink_attach_object *object;
	uint64_t bias;

	return copy->locate(copy->arg, address, &object, &bias) && object->go &&
	       csink_go_rule_at(object->go, address - bias, rule);
}

/* Whether a frame is of Go: then its frame pointer, which the kernel followed, is one. */
static bool is_go(const struct csink_walk_copy *copy, const uint64_t *frames, uint32_t nr)
{
	const struct csink_attach_object *object;
	uint64_t bias, pc = nr ? (frames[nr - 1] & ~CSINK_FRAME_EXACT) - 1 : csink_walk_copy_pc(copy->regs);

	return copy->locate(copy->arg, pc, &object, &bias) && object->go;
}

/*
 * The thread went from a goroutine's stack to its own, in order to run another goroutine. The first one may run
 * elsewhere by now: its stack is not what it was.
 */
static bool left_for_good(const struct csink_walk_copy *copy, const uint64_t *frames, uint32_t nr)
{
	struct csink_go_rule rule;

	if (!nr || !rule_of(copy, frames[nr - 1] - 1, &rule) || !(rule.role & CSINK_GO_SWITCHES))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (rule_of(copy, (frames[i] & ~CSINK_FRAME_EXACT) - 1, &rule) && rule.role & CSINK_GO_SCHEDULES)
			return true;
	return false;
}

/* Go to the entry whose return address lies where the last frame's does. */
static bool meet(struct chain *chain, const uint64_t *cfas, const uint64_t *frames, uint32_t nr)
{
	begin(chain, chain->copy);
	if (!nr)
		return true;
	while (next(chain)) {
		if (chain->slot == cfas[nr - 1] - 8)
			return chain->address == (frames[nr - 1] & ~CSINK_FRAME_EXACT);
	}
	return false;
}

uint32_t csink_walk_go_join(const struct csink_walk_copy *copy, uint64_t *frames, uint64_t *cfas, uint32_t nr,
			    uint32_t max_frames, enum csink_walk_copy_end *end)
{
	struct chain chain = {.copy = copy};
	struct csink_go_rule rule = {0};
	uint32_t met = nr;

	if (left_for_good(copy, frames, nr)) {
		*end = CSINK_COPY_COMPLETE;
		return nr;
	}
	/* A function without a frame of its own, of which the kernel knows nothing, may be the last one that was found.
	 */
	while (copy->nr_chain && met && is_go(copy, frames, met) && !meet(&chain, cfas, frames, met))
		met--;
	if (!copy->nr_chain || !is_go(copy, frames, met) || !meet(&chain, cfas, frames, met))
		return nr;
	while (next(&chain)) {
		if (chain.slot && met < nr && chain.slot <= cfas[nr - 1] - 8)
			continue; /* between those frames that were found */
		if (nr == max_frames) {
			*end = CSINK_COPY_DEPTH;
			return nr;
		}
		if (!rule_of(copy, chain.address - 1, &rule))
			break;
		cfas[nr] = chain.slot ? chain.slot + 8 : nr ? cfas[nr - 1] : 0;
		frames[nr++] = chain.address;
	}
	if (rule.role & CSINK_GO_OUTERMOST)
		*end = CSINK_COPY_COMPLETE;
	else if (nr > met && copy->nr_chain >= KERNELS_LEAST_DEPTH)
		*end = CSINK_COPY_CUT;
	else if (nr > met && *end == CSINK_COPY_SWITCHED)
		*end = CSINK_COPY_NO_CFI;
	return nr;
}
