/*
 * Ranks of parallel jobs: by the variables that each process began with, as its recording has them; where it had none,
 * by the launcher's own, which then runs once for each rank. What a PID does before its program begins (a child of the
 * job's launcher) or after one without these variables has the rank of its program.
 */
#include <errno.h>
#include <stdlib.h>

#include "include/internal/grow.h"
#include "include/internal/shared_options.h"
#include "launcher/base/hash.h"
#include "launcher/base/message.h"
#include "launcher/collect/collect_impl.h"

static void find(struct collector *c, const struct csink_rank *rank)
{
	c->has_ranks |= c->found_rank.size && (c->found_rank.rank != rank->rank || c->found_rank.size != rank->size);
	if (rank->size > c->found_rank.size)
		c->found_rank = *rank;
}

void csink_collect_own_rank(struct collector *c)
{
	if (!csink_rank_own(&c->own_rank))
		c->own_rank.size = 0;
}

static uint32_t add_ranked(struct collector *c, int32_t pid)
{
	if (CSINK_GROW(c->ranked, c->nr_ranked, c->cap_ranked))
		return 0;
	c->ranked[c->nr_ranked] = (struct ranked){.pid = pid};
	return ++c->nr_ranked;
}

int csink_collect_rank(struct collector *c, const struct csink_rec_header *header)
{
	char why[CSINK_WHY_BYTES];
	struct csink_rank rank;
	int got = csink_rank_read(header->rank_values, &rank, why, sizeof(why));
	uint32_t at;

	if (got < 0)
		csink_collect_tally(c, CSINK_FACT_WARNING, "%s", why);
	if (got <= 0)
		return 0;
	at = CSINK_TABLE_INTERN(c->ranked_table, csink_hash_number((uint32_t)header->pid),
				c->ranked[id - 1].pid == header->pid, add_ranked(c, header->pid));
	if (!at)
		return -ENOMEM;
	if (header->start_monotonic_ns >= c->ranked[at - 1].start_ns) {
		c->ranked[at - 1].rank = rank.rank;
		c->ranked[at - 1].start_ns = header->start_monotonic_ns;
	}
	find(c, &rank);
	return 0;
}

int32_t csink_collect_rank_of(const struct collector *c, int32_t pid)
{
	struct csink_slot *slot;

	if (pid && c->nr_ranked) {
		uint32_t hash = csink_hash_number((uint32_t)pid);

		CSINK_TABLE_PROBE(c->ranked_table, hash, slot, c->ranked[id - 1].pid == pid);
		if (slot->id)
			return c->ranked[slot->id - 1].rank;
	}
	return c->own_rank.size && !c->outside->is_attached ? c->own_rank.rank : -1;
}

/* The environment is the run's for its launcher, and for the command that the library starts at its end. */
void csink_collect_rank_facts(struct collector *c)
{
	bool is_of_run = c->outside ? !c->outside->is_attached : getenv(CSINK_ENV_RUN_ENDED) != NULL;
	char job[128] = "";

	if (c->own_rank.size && is_of_run)
		find(c, &c->own_rank);
	if (c->found_rank.size) {
		if (!c->has_ranks)
			csink_profile_fact_add(c->p, CSINK_FACT_RANK, "%d", c->found_rank.rank);
		csink_profile_fact_add(c->p, CSINK_FACT_RANKS, "%d", c->found_rank.size);
		csink_profile_fact_add(c->p, CSINK_FACT_RANKED_BY, "%s", c->found_rank.by);
	}
	if (is_of_run)
		csink_rank_job(job, sizeof(job));
	if (*job)
		csink_profile_fact_add(c->p, CSINK_FACT_JOB, "%s", job);
}
