/*
 * Opens all groups of a thread as csink_plan has them, and opens them again with a longer period. Runs on that thread
 * and in its handler.
 */
#include <errno.h>
#include <string.h>

#include "preload/agent/sampler/engine_impl.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

uint32_t csink_engine_leader(uint32_t g)
{
	uint32_t left = csink_plan.groups[g], cpu = csink_plan.cpu_event;
	bool is_first = true;

	for (; left; left &= left - 1, is_first = false) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		if (csink_plan.events[i].rec.flags & CSINK_EVENT_REFUSED)
			continue;
		return !is_first && !g && csink_plan.group_of[cpu] == 0 ? cpu : i;
	}
	return CSINK_MAX_EVENTS;
}

/* What of a group is to be opened: CPU time is counted by itself only where it leads (see csink_plan.groups). */
static uint8_t members_of(uint32_t g)
{
	uint32_t left = csink_plan.groups[g], leader = csink_engine_leader(g);
	uint8_t members = 0;

	for (; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(left);

		if (!(csink_plan.events[i].rec.flags & CSINK_EVENT_REFUSED) &&
		    (i == leader || i != csink_plan.cpu_event))
			members |= (uint8_t)(1u << i);
	}
	return members;
}

void csink_engine_close_groups(struct csink_thread *thread)
{
	for (uint32_t g = csink_plan.nr_groups; g-- > 0;)
		csink_group_close(&thread->groups[g]);
}

/* All of them, or none; *failed is then the event that could not be had. */
int csink_engine_open_groups(struct csink_thread *thread, enum csink_engine engine, uint32_t *failed)
{
	struct csink_group_open open = {
		.events = csink_plan.events,
		.how = engine == CSINK_ENGINE_SIGTRAP ? CSINK_GROUP_SIGTRAP : CSINK_GROUP_SETSIG,
		.signo = csink_engine_state.signo,
		.tid = thread->tid,
	};
	int err = 0;

	csink_thread_opener_stack(thread, &open);
	for (uint32_t g = 0; g < csink_plan.nr_groups && !err; g++) {
		open.members = members_of(g);
		open.leader = (uint8_t)csink_engine_leader(g);
		if (open.members)
			err = csink_group_open(&thread->groups[g], &open, failed);
	}
	if (err)
		csink_engine_close_groups(thread);
	return err;
}

void csink_engine_count_on(struct csink_thread *thread)
{
	for (uint32_t g = 0; g < csink_plan.nr_groups; g++)
		memcpy(thread->groups[g].base, thread->last, sizeof(thread->groups[g].base));
	memset(thread->last_enabled_ns, 0, sizeof(thread->last_enabled_ns));
	memset(thread->last_running_ns, 0, sizeof(thread->last_running_ns));
	memset(thread->last_waited_ns, 0, sizeof(thread->last_waited_ns));
}

/* ---- fewer samples ----------------------------------------------------------------------------------------------- */

/* From one step to the next. */
#define STEP 4
/* No thread is kept from running by one sample in so many events. */
#define LONGEST_PERIOD (1ULL << 48)

/*
 * Another thread may have been here meanwhile: then its rate is the one to take. Others read the rate as they open
 * their groups, before or after, and it matters to none of them which.
 */
static bool make_rarer(uint32_t event, uint64_t opened_at, enum csink_rate_why why)
{
	struct csink_event_spec *spec = &csink_plan.events[event];
	struct csink_rec_header *header = csink_own_recording.header;
	__u64 *to = spec->attr.freq ? &spec->attr.sample_freq : &spec->attr.sample_period;
	uint64_t now = __atomic_load_n(to, __ATOMIC_RELAXED), none = 0;
	uint64_t next = spec->attr.freq ? now / STEP : now * STEP;

	if (now != opened_at)
		return true;
	if (!next || next > LONGEST_PERIOD)
		return false;
	if (!__atomic_compare_exchange_n(to, &now, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return true;
	__atomic_compare_exchange_n(&csink_plan.rates[event].asked, &none, opened_at, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	csink_plan.rates[event].now = next;
	if (why != CSINK_RATE_NO_TIME || csink_plan.rates[event].why == CSINK_RATE_MEASURED)
		csink_plan.rates[event].why = why;
	header->rates[event] = csink_plan.rates[event];
	if (!spec->attr.freq)
		spec->rec.period = header->events[event].period = next;
	return true;
}

static uint64_t rate_of(uint32_t event)
{
	/* A union with the frequency. */
	return __atomic_load_n(&csink_plan.events[event].attr.sample_period, __ATOMIC_RELAXED);
}

void csink_engine_lower_rates(void)
{
	bool can =
		csink_engine_state.engine == CSINK_ENGINE_SIGTRAP || csink_engine_state.engine == CSINK_ENGINE_SIGNAL;

	for (uint32_t g = 0; g < csink_plan.nr_groups; g++) {
		uint32_t leader = csink_engine_leader(g);

		if (leader == CSINK_MAX_EVENTS || (can && make_rarer(leader, rate_of(leader), CSINK_RATE_BUDGET)) ||
		    csink_plan.rates[leader].asked)
			continue;
		csink_plan.rates[leader] = (struct csink_rec_rate){rate_of(leader), rate_of(leader), CSINK_RATE_BUDGET};
		csink_own_recording.header->rates[leader] = csink_plan.rates[leader];
	}
}

uint32_t csink_engine_outdated(const struct csink_thread *thread)
{
	for (uint32_t g = 0; g < csink_plan.nr_groups; g++)
		if (thread->groups[g].members && thread->groups[g].rate != rate_of(thread->groups[g].leader))
			return g;
	return CSINK_MAX_EVENTS;
}

int csink_engine_reopen_rarer(struct csink_thread *thread, uint32_t g, bool throttled)
{
	bool any = false;
	uint32_t failed;
	int err;

	for (uint32_t i = 0; i < csink_plan.nr_groups; i++)
		if (thread->groups[i].members && (i == g || g == CSINK_MAX_EVENTS))
			any |= make_rarer(thread->groups[i].leader, thread->groups[i].rate,
					  throttled ? CSINK_RATE_THROTTLED : CSINK_RATE_NO_TIME);
	if (!any)
		return -ERANGE;
	/* What was counted since the last sample was counted in its handler. */
	csink_engine_close_groups(thread);
	csink_engine_count_on(thread);
	err = csink_engine_open_groups(thread, thread->engine, &failed);
	if (err)
		thread->engine = CSINK_ENGINE_NONE;
	return err;
}

bool csink_engine_can_reopen(void)
{
	return !csink_calls_are_off(CSINK_CALLS_LIFE | CSINK_CALLS_MEMORY | CSINK_CALLS_RETURN);
}

int csink_engine_slow_down(struct csink_thread *thread, uint32_t g, bool throttled, void *context)
{
	if (!csink_engine_can_reopen())
		return -EPERM;
	if (atomic_load_explicit(&thread->engine_busy, memory_order_relaxed)) {
		atomic_fetch_or_explicit(&thread->is_held, CSINK_HELD_SAMPLES, memory_order_relaxed);
		csink_engine_block_in(context);
		return 0;
	}
	if (thread->engine != CSINK_ENGINE_SIGTRAP && thread->engine != CSINK_ENGINE_SIGNAL)
		return -EINVAL;
	return csink_engine_reopen_rarer(thread, g, throttled);
}
