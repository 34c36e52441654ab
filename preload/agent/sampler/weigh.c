/*
 * What a sample weighs: what the events of its group counted since the one before. Runs in the handler, and by its
 * rules: no lock, no malloc, no stdio, no loader, no syscall.
 */
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"

/* Once for each event of the process; the flag is the report's to show. */
static void mark_scaled(uint32_t event)
{
	struct csink_rec_event *rec = &csink_own_recording.header->events[event];

	if (!(__atomic_load_n(&rec->flags, __ATOMIC_RELAXED) & CSINK_EVENT_SCALED))
		__atomic_fetch_or(&rec->flags, CSINK_EVENT_SCALED, __ATOMIC_RELAXED);
}

/* The kernel counts a switch between kinds of CPU in a moment that belongs to neither; events take turns for longer. */
#define SHORTEST_WAIT_NS 100000

/*
 * How long a group of one kind of CPU had to wait for counters since the last sample of it or of the groups of the
 * other kinds, which are enabled all the time as well. Time in which none of them ran counts as waiting; where several
 * were there since, it is charged to the group that samples now. A single group gives no measure of waiting.
 */
static __attribute__((noinline)) uint64_t has_waited(struct csink_thread *thread, uint32_t g,
						     const struct csink_group_read *read)
{
	uint32_t all = csink_plan.counterparts_of[g], left = all;
	uint64_t ran_ns = read->running_ns, waited_ns, *last_ns;

	for (; left; left &= left - 1) {
		const struct csink_group *other = &thread->groups[__builtin_ctz(left)];

		if (!csink_group_is_open(other))
			return 0;
		ran_ns += csink_group_page_running_ns(other);
	}
	last_ns = &thread->last_waited_ns[__builtin_ctz(all | 1u << g)]; /* shared by all counterparts */
	if (!all || read->enabled_ns <= ran_ns + *last_ns)
		return 0;
	waited_ns = read->enabled_ns - ran_ns - *last_ns;
	*last_ns += waited_ns;
	return waited_ns > SHORTEST_WAIT_NS ? waited_ns : 0;
}

static void weigh_counts(struct csink_thread *thread, uint32_t g, const struct csink_group_read *read,
			 uint64_t *weights)
{
	uint64_t enabled = read->enabled_ns - thread->last_enabled_ns[g];
	uint64_t running = read->running_ns - thread->last_running_ns[g];
	uint32_t left = thread->groups[g].members;
	bool shared;

	if (CSINK_UNLIKELY(csink_plan.events[thread->groups[g].leader].cpus[0]))
		enabled = running + has_waited(thread, g, read);
	shared = running && running < enabled;
	for (; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		/* A flush that the thread outlived took its CPU clock, which runs a little ahead of the counter. */
		if (CSINK_UNLIKELY(read->counts[i] < thread->last[i]))
			continue;
		weights[i] = read->counts[i] - thread->last[i];
		thread->last[i] = read->counts[i];
		if (CSINK_UNLIKELY(shared)) {
			weights[i] = (uint64_t)((unsigned __int128)weights[i] * enabled / running);
			mark_scaled(i);
		}
	}
	thread->last_enabled_ns[g] = read->enabled_ns;
	thread->last_running_ns[g] = read->running_ns;
}

void csink_sample_weigh(struct csink_thread *thread, uint32_t g, const struct csink_group_read *read, uint64_t *weights)
{
	const struct csink_group *group = &thread->groups[g];
	uint32_t cpu = csink_plan.cpu_event;

	memset(weights, 0, csink_plan.nr_events * sizeof(*weights));
	weigh_counts(thread, g, read, weights);
	if (csink_plan.time_groups >> g & 1 && !(thread->groups[csink_plan.group_of[cpu]].members >> cpu & 1)) {
		uint64_t now = group->base[cpu] + read->enabled_ns;

		weights[cpu] = now > thread->last[cpu] ? now - thread->last[cpu] : 0;
		thread->last[cpu] += weights[cpu];
	}
	if (CSINK_UNLIKELY(atomic_load_explicit(&thread->remainder, memory_order_relaxed) != NULL))
		csink_thread_unflush(thread);
}
