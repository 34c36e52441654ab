/*
 * Opens all groups of a thread as csink_plan has them, and opens them again with a longer period. Runs on that thread
 * and in its handler.
 */
#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
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

/* ---- fewer samples, and more again ------------------------------------------------------------------------------- */

/* From one step to the next. */
#define STEP 4
/* No thread is kept from running by one sample in so many events. */
#define LONGEST_PERIOD (1ULL << 48)

static uint64_t rate_of(uint32_t event)
{
	/* A union with the frequency. */
	return __atomic_load_n(&csink_plan.events[event].attr.sample_period, __ATOMIC_RELAXED);
}

void csink_engine_set_timer_period(void)
{
	uint64_t rate = rate_of(csink_plan.cpu_event);

	csink_engine_state.period_ns = csink_plan.events[csink_plan.cpu_event].attr.freq ? CSINK_NS_PER_S / rate : rate;
}

/*
 * Another thread may have been here meanwhile: then its rate is the one to take. Others read the rate as they open
 * their groups, before or after, and it matters to none of them which.
 */
static void change_rate(uint32_t event, uint64_t opened_at, uint64_t next, enum csink_rate_why why)
{
	struct csink_event_spec *spec = &csink_plan.events[event];
	struct csink_rec_rate *rate = &csink_plan.rates[event];
	struct csink_rec_header *header = csink_own_recording.header;
	uint64_t now = opened_at, none = 0;

	if (!__atomic_compare_exchange_n(&spec->attr.sample_period, &now, next, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	__atomic_compare_exchange_n(&rate->asked, &none, opened_at, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	rate->now = next;
	rate->why = why;
	header->rates[event] = *rate;
	if (!spec->attr.freq)
		spec->rec.period = header->events[event].period = next;
	if (event == csink_plan.cpu_event)
		csink_engine_set_timer_period();
}

/* A rate that is lowered again for the budget alone may not rise to what the first reason forbids. */
static enum csink_rate_why reason_of(const struct csink_rec_rate *rate, enum csink_rate_why why)
{
	bool keeps = why == CSINK_RATE_BUDGET ? rate->why != CSINK_RATE_REGAINED
					      : why == CSINK_RATE_NO_TIME && rate->why == CSINK_RATE_THROTTLED;

	return rate->asked && keeps ? (enum csink_rate_why)rate->why : why;
}

/* Returns false where it is sampled rarely already. */
static bool make_rarer(uint32_t event, uint64_t opened_at, enum csink_rate_why why)
{
	uint64_t next = csink_plan.events[event].attr.freq ? opened_at / STEP : opened_at * STEP;

	if (rate_of(event) != opened_at)
		return true;
	if (!next || next > LONGEST_PERIOD)
		return false;
	change_rate(event, opened_at, next, reason_of(&csink_plan.rates[event], why));
	return true;
}

void csink_engine_lower_rates(void)
{
	for (uint32_t g = 0; g < csink_plan.nr_groups; g++) {
		uint32_t leader = csink_engine_leader(g);

		if (leader == CSINK_MAX_EVENTS || make_rarer(leader, rate_of(leader), CSINK_RATE_BUDGET) ||
		    csink_plan.rates[leader].asked)
			continue;
		csink_plan.rates[leader] = (struct csink_rec_rate){rate_of(leader), rate_of(leader), CSINK_RATE_BUDGET};
		csink_own_recording.header->rates[leader] = csink_plan.rates[leader];
	}
}

void csink_engine_raise_rates(void)
{
	for (uint32_t event = 0; event < csink_plan.nr_events; event++) {
		const struct csink_rec_rate *rate = &csink_plan.rates[event];
		uint64_t next = rate->now * STEP;

		if (rate->why != CSINK_RATE_BUDGET || rate->asked == rate->now)
			continue;
		if (!csink_plan.events[event].attr.freq)
			next = CSINK_MAX(rate->now / STEP, rate->asked);
		else if (next + next / STEP > rate->asked) /* but for what the divisions left over, as it was */
			next = rate->asked;
		change_rate(event, rate->now, next, next == rate->asked ? CSINK_RATE_REGAINED : CSINK_RATE_BUDGET);
	}
}

static bool is_outdated(const struct csink_thread *thread)
{
	if (thread->engine == CSINK_ENGINE_TIMER)
		return thread->timer_period_ns != csink_engine_state.period_ns;
	for (uint32_t g = 0; g < csink_plan.nr_groups; g++)
		if (thread->groups[g].members && thread->groups[g].rate != rate_of(thread->groups[g].leader))
			return true;
	return false;
}

/*
 * Open the thread's groups at the rates of now, and close those that it had: where the new ones cannot be had, for want
 * of memory or descriptors, the thread goes on with these. What was counted since the last sample was counted in its
 * handler.
 */
static int replace_groups(struct csink_thread *thread)
{
	struct csink_group before[CSINK_MAX_EVENTS];
	uint32_t failed;
	int err;

	memcpy(before, thread->groups, sizeof(before));
	memset(thread->groups, 0, sizeof(thread->groups));
	err = csink_engine_open_groups(thread, thread->engine, &failed);
	if (err) {
		memcpy(thread->groups, before, sizeof(before));
		return err;
	}
	for (uint32_t g = csink_plan.nr_groups; g-- > 0;)
		csink_group_close(&before[g]);
	csink_engine_count_on(thread);
	return 0;
}

void csink_engine_keep_rate(struct csink_thread *thread)
{
	bool was_kept;

	if (!is_outdated(thread) || !csink_engine_can_reopen() ||
	    atomic_load_explicit(&thread->engine_busy, memory_order_relaxed))
		return;
	if (thread->engine == CSINK_ENGINE_TIMER) {
		if (!csink_calls_are_off(CSINK_CALLS_PAUSE))
			csink_engine_start_timer(thread);
	} else if (thread->engine != CSINK_ENGINE_NONE) {
		was_kept = thread->keeps_rate;
		thread->keeps_rate = replace_groups(thread) != 0;
		/* No further attempt before the rates change again: each costs more than a sample. */
		for (uint32_t g = 0; g < csink_plan.nr_groups && thread->keeps_rate; g++)
			thread->groups[g].rate = rate_of(thread->groups[g].leader);
		if (thread->keeps_rate && !was_kept)
			csink_recording_note_text(&csink_own_recording, &thread->writer,
						  "a thread is sampled more often than --budget allows: no descriptor "
						  "or memory is left to lower its rate");
	}
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
	err = replace_groups(thread);
	if (!err)
		return 0;
	/* It cannot go on with the ones it has: perhaps what they take is what the new ones lack. */
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
