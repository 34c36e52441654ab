/* The rows of a recording become samples; with its timeline, samples with a time. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/move.h"
#include "launcher/base/search.h"
#include "launcher/base/table.h"
#include "launcher/collect/collect_frames.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment_impl.h"

/* What samples of allocations stand for, scaled to what was counted, so that all rows together are that. */
struct spread {
	double factor;
	double all;    /* of the rows so far */
	int64_t given; /* the same in whole numbers */
};

struct reading {
	struct collector *c;
	struct image *image;
	const struct csink_recorded *rec;
	struct csink_frames frames;
	uint32_t *labels; /* by the recording's thread, + 1 for none: label set + 1; 0 not made yet */
	int types[CSINK_MAX_EVENTS];
	/* Of samples from outside, in the order of the recording's threads: the library's recording of the same, or
	 * NULL. */
	struct image **counterparts;
	struct spread spreads[CSINK_MAX_EVENTS];
	double *scales;   /* by the recording's thread: of the CPU time that no counterpart can have */
	uint64_t nr_kept; /* rows that are in the profile */
	struct site {
		uint64_t lock, address;
		uint32_t stack; /* as a wait has it; 0: not known */
	} * sites;              /* where locks were initialised */
	uint32_t nr_sites, cap_sites;
};

/* ---- labels and values ---- */

/* Rows that several threads had one after the other have the name that is that of all. */
static const char *name_of(const struct csink_rec_thread *thread)
{
	return thread->nr_former && thread->flags & CSINK_THREAD_RENAMED ? "[several threads]" : thread->name;
}

static uint32_t thread_labels(struct reading *r, uint32_t index)
{
	const struct csink_rec_thread *thread = index == CSINK_RECORDED_NONE ? NULL : r->rec->threads[index];
	uint32_t *known = &r->labels[thread ? index : r->rec->nr_threads], nr;
	struct csink_profile_label labels[5];
	struct csink_profile *p = r->c->p;

	if (*known)
		return *known - 1;
	nr = csink_collect_process_labels(r->c, r->image->pid, r->image->comm, labels);
	if (thread)
		labels[nr++] =
			(struct csink_profile_label){.key = csink_profile_str(p, CSINK_LABEL_TID), .num = thread->tid};
	if (thread && *thread->name)
		labels[nr++] = (struct csink_profile_label){.key = csink_profile_str(p, CSINK_LABEL_THREAD),
							    .str = csink_profile_str(p, name_of(thread))};
	*known = csink_profile_labels_add(p, labels, nr) + 1;
	return *known - 1;
}

/* A label set with the name of a row's phase. */
static uint32_t phase_labels(struct reading *r, uint32_t base, uint16_t phase)
{
	const struct csink_profile_range set = r->c->p->label_sets[base];
	struct csink_profile_label labels[8];
	uint32_t i;

	for (i = 0; i < r->rec->nr_phases && r->rec->phases[i]->head.aux != phase; i++)
		;
	if (i == r->rec->nr_phases)
		return base;
	memcpy(labels, r->c->p->labels + set.first, set.nr * sizeof(*labels));
	labels[set.nr] = (struct csink_profile_label){.key = csink_profile_str(r->c->p, CSINK_LABEL_PHASE),
						      .str = csink_profile_str(r->c->p, r->rec->phases[i]->name)};
	return csink_profile_labels_add(r->c->p, labels, set.nr + 1);
}

static uint32_t row_labels(struct reading *r, const struct csink_recorded_row *row)
{
	uint32_t base = thread_labels(r, row->thread);

	return row->phase && row->phase != CSINK_PHASE_INJECTED ? phase_labels(r, base, row->phase) : base;
}

/* A number that a recording claims, as a value of a profile. */
static int64_t claimed(uint64_t value)
{
	return (int64_t)CSINK_MIN(value, (uint64_t)INT64_MAX);
}

/*
 * The kernel's task-clock event goes on while the hypervisor runs another guest; a thread's CPU clock, and with it all
 * accounting, does not. Where they differ, the clock is right.
 */
static int64_t without_stolen(const struct reading *r, uint32_t index, uint32_t event, uint64_t weight)
{
	const struct csink_rec_thread *thread = index == CSINK_RECORDED_NONE ? NULL : r->rec->threads[index];
	uint64_t ns;

	if (!thread || !(r->rec->header.events[event].flags & CSINK_EVENT_CPU_NS) || !thread->totals[event])
		return claimed(weight);
	ns = csink_recorded_thread_ns(thread, event);
	return claimed((uint64_t)((unsigned __int128)weight * ns / thread->totals[event]));
}

static uint64_t *weights_of(const struct reading *r, const struct csink_recorded_row *row)
{
	return r->rec->weights + (size_t)(row - r->rec->rows) * r->rec->header.nr_events;
}

static int64_t scaled(const struct reading *r, const struct csink_recorded_row *row, uint32_t event, int64_t value)
{
	double scale = row->thread == CSINK_RECORDED_NONE ? 1 : r->scales[row->thread];
	bool is_scaled = scale != 1 && r->types[event] == r->c->cpu_event && row->phase != CSINK_PHASE_INJECTED;

	/* A damaged recording may have any number, which is not to overflow. */
	return is_scaled ? (int64_t)fmin((double)value * scale + 0.5, 0x1p62) : value;
}

static int64_t spread(struct spread *spread, uint64_t weight)
{
	int64_t value;

	spread->all = fmin(spread->all + (double)weight * spread->factor, 0x1p62);
	value = (int64_t)(spread->all + 0.5) - spread->given;
	spread->given += value;
	return value;
}

/* The first event of a recording that has a flag; nr_events: none. */
static uint32_t event_with(const struct csink_recorded *rec, uint32_t flag)
{
	uint32_t first = 0;

	while (first < rec->header.nr_events && !(rec->header.events[first].flags & flag))
		first++;
	return first;
}

/* The rows' sums, and so the factors. Of what is in use, nothing was counted: as of what was allocated. */
static void make_spreads(struct reading *r)
{
	const struct csink_rec_header *header = &r->rec->header;
	uint32_t nr_rows = event_with(r->rec, CSINK_EVENT_ALLOCATED) < header->nr_events ? r->rec->nr_rows : 0;
	double sums[CSINK_MAX_EVENTS] = {0};

	for (uint32_t i = 0; i < nr_rows; i++)
		for (uint32_t e = 0; e < header->nr_events; e++)
			sums[e] += (double)r->rec->weights[(size_t)i * header->nr_events + e];
	for (uint32_t e = 0; e < header->nr_events; e++) {
		const struct csink_rec_event *event = &header->events[e];

		r->spreads[e].factor = 1;
		if (event->flags & CSINK_EVENT_ALLOCATED && sums[e] > 0)
			r->spreads[e].factor = (double)header->counted[e] / sums[e];
		else if (event->flags & CSINK_EVENT_IN_USE && e >= 2 && !r->c->slice) /* not of a slice alone */
			r->spreads[e].factor = r->spreads[e - 2].factor;
	}
}

static void row_values(struct reading *r, const struct csink_recorded_row *from, int64_t *values)
{
	const uint64_t *weights = weights_of(r, from);

	memset(values, 0, (CSINK_MAX_EVENTS + 1) * sizeof(*values));
	values[0] = claimed(from->nr_samples);
	for (uint32_t i = 0; i < r->rec->header.nr_events; i++) {
		bool is_spread = r->rec->header.events[i].flags & (CSINK_EVENT_ALLOCATED | CSINK_EVENT_IN_USE);

		if (r->types[i] >= 0)
			values[r->types[i] + 1] = csink_add(
				values[r->types[i] + 1],
				is_spread ? spread(&r->spreads[i], weights[i])
					  : scaled(r, from, i, without_stolen(r, from->thread, i, weights[i])));
	}
	if (r->c->cpu_event >= 0)
		r->image->covered_cpu_ns = csink_add(r->image->covered_cpu_ns, values[r->c->cpu_event + 1]);
}

/* ---- samples ---- */

/* A thread's remainder that no sample shows: it keeps the thread's labels, and what the thread was started for. */
static void add_remainder(struct reading *r, uint32_t labels, const uint32_t *callers, const int64_t *values)
{
	const struct csink_profile_range *set = &r->c->p->label_sets[labels];

	csink_collect_pseudo(r->c, "not sampled", "[not sampled]", callers, r->c->p->labels + set->first, set->nr,
			     values);
}

/* What the program did not want to be profiled: time alone. */
static void add_paused(struct reading *r, uint32_t labels, const int64_t *values)
{
	const struct csink_profile_range *set = &r->c->p->label_sets[labels];
	int64_t time[CSINK_MAX_EVENTS + 1];

	memcpy(time, values, sizeof(time));
	time[0] = 0;
	csink_collect_pseudo(r->c, "paused", "[paused by the program]", NULL, r->c->p->labels + set->first, set->nr,
			     time);
}

static void add_stack(struct reading *r, const struct csink_recorded_row *from, uint32_t labels, const int64_t *values)
{
	uint32_t stack[CSINK_MAX_DEPTH + 2], nr = csink_frames_callers(&r->frames, from->node, stack + 1);
	uint64_t time_ns = r->image->start_ns;

	if (from->node != CSINK_RECORDED_NONE)
		time_ns = r->rec->nodes[r->rec->nodes[from->node].root].pc;
	stack[nr + 1] = 0;
	if (from->phase == CSINK_PHASE_OFF) {
		add_paused(r, labels, values);
		return;
	}
	if (r->image->is_outside && from->leaf == CSINK_LEAF_IN_EXEC) {
		csink_profile_sample_add(r->c->p, csink_collect_kernel_stack(r->c, "execve"), labels, values);
		return;
	}
	if (!from->leaf) {
		add_remainder(r, labels, stack + 1, values);
		return;
	}
	stack[0] = csink_frames_leaf(&r->frames, from->leaf, time_ns);
	if (r->frames.err)
		return;
	if (r->frames.leaf_is_evaluator && nr)
		csink_move(stack, stack + 1, nr-- * sizeof(*stack));
	csink_profile_sample_add(r->c->p, csink_profile_stack_add(r->c->p, stack, nr + 1), labels, values);
}

/* Sampled from outside while the library took samples of the same thread: those count. */
static bool is_recorded_inside(const struct reading *r, const struct csink_recorded_row *row)
{
	return r->counterparts && row->phase == CSINK_PHASE_INJECTED && row->thread != CSINK_RECORDED_NONE &&
	       r->counterparts[row->thread];
}

/* The CPU time of a thread that the library only watched, while it was sampled from outside: what samples lack of it is
 * the process's (collect_account.c). */
static bool is_recorded_outside(const struct reading *r, const struct csink_recorded_row *row)
{
	const struct csink_rec_thread *thread =
		row->thread == CSINK_RECORDED_NONE ? NULL : r->rec->threads[row->thread];

	return !r->image->is_outside && !row->leaf && row->phase != CSINK_PHASE_OFF &&
	       (!r->image->has_engine || (thread && thread->flags & CSINK_THREAD_NOT_SAMPLED)) &&
	       csink_collect_is_outside_too(r->c, r->image);
}

static void add_row(struct reading *r, const struct csink_recorded_row *from)
{
	int64_t values[CSINK_MAX_EVENTS + 1];
	uint32_t i, any = 0;

	if (is_recorded_inside(r, from) || is_recorded_outside(r, from))
		return;
	row_values(r, from, values);
	if (r->image->is_left_out) /* csink_collect_account() gives its sum */
		return;
	r->nr_kept++;
	for (i = 0; i < CSINK_MAX_EVENTS + 1; i++)
		any |= values[i] != 0;
	if (any) /* a timeline may have taken all of it */
		add_stack(r, from, row_labels(r, from), values);
}

/* ---- the timeline ---- */

static struct csink_profile_label time_label(const struct reading *r, uint64_t time_ns)
{
	return (struct csink_profile_label){.key = csink_profile_str(r->c->p, CSINK_LABEL_TIME),
					    .num = r->rec->header.start_realtime_ns + time_ns -
						   r->rec->header.start_monotonic_ns,
					    .num_unit = csink_profile_str(r->c->p, "nanoseconds")};
}

/* One moment, with its time as a label; what it weighs is taken out of its row, which keeps the rest. */
static void add_moment(struct reading *r, const struct csink_rec_moment *moment, uint64_t time_ns)
{
	uint32_t event = moment->event_weight >> CSINK_MOMENT_WEIGHT_BITS, index, thread;
	uint64_t weight = moment->event_weight & ((1ULL << CSINK_MOMENT_WEIGHT_BITS) - 1);
	int64_t values[CSINK_MAX_EVENTS + 1] = {0};
	const struct csink_profile_range *set;
	struct csink_profile_label labels[8];
	struct csink_recorded_row *row;
	uint64_t *left;

	index = csink_recorded_row_at(r->rec, moment->row);
	if (index == CSINK_RECORDED_NONE || event >= r->rec->header.nr_events || r->types[event] < 0)
		return;
	row = &r->rec->rows[index];
	left = &weights_of(r, row)[event];
	if (*left < weight)
		return;
	*left -= weight;
	weight = (uint64_t)scaled(r, row, event, without_stolen(r, row->thread, event, weight));
	values[r->types[event] + 1] = (int64_t)weight;
	if (!(r->rec->header.events[event].flags & CSINK_EVENT_OFF_CPU) && row->nr_samples) {
		row->nr_samples--;
		values[0] = 1;
	}
	if (r->types[event] == r->c->cpu_event)
		r->image->covered_cpu_ns = csink_add(r->image->covered_cpu_ns, weight);
	thread = row_labels(r, row); /* may move the sets */
	set = &r->c->p->label_sets[thread];
	memcpy(labels, r->c->p->labels + set->first, set->nr * sizeof(*labels));
	labels[set->nr] = time_label(r, time_ns);
	add_stack(r, row, csink_profile_labels_add(r->c->p, labels, set->nr + 1), values);
}

static void add_timeline(struct reading *r, const struct csink_rec_timeline *chunk)
{
	uint64_t time_ns = chunk->base_ns;

	for (uint32_t i = 0; i < chunk->nr && !r->frames.err; i++) {
		time_ns += chunk->moments[i].delta_us * 1000ULL;
		add_moment(r, &chunk->moments[i], time_ns);
	}
}

static void map_types(struct reading *r)
{
	uint32_t i, k;

	for (i = 0; i < r->rec->header.nr_events; i++) {
		r->types[i] = -1;
		for (k = 0; k < r->c->nr_events; k++) {
			if (!(r->rec->header.events[i].flags & CSINK_EVENT_REFUSED) &&
			    !strcmp(r->rec->header.events[i].name, r->c->events[k].name))
				r->types[i] = k;
		}
	}
}

static void add_unstored(struct reading *r)
{
	const struct csink_rec_header *header = &r->rec->header;
	int64_t values[CSINK_MAX_EVENTS + 1] = {claimed(header->losses[CSINK_LOSS_RECORDING_FULL])};
	struct csink_profile_label labels[3];
	uint64_t any = 0;

	for (uint32_t i = 0; i < header->nr_events; i++) {
		if (r->types[i] >= 0)
			values[r->types[i] + 1] = claimed(header->unstored[i]);
		any |= header->unstored[i];
	}
	if (!any)
		return;
	if (r->c->cpu_event >= 0)
		r->image->covered_cpu_ns = csink_add(r->image->covered_cpu_ns, values[r->c->cpu_event + 1]);
	csink_collect_pseudo(r->c, "lost", "[lost: recording full]", NULL, labels,
			     csink_collect_process_labels(r->c, r->image->pid, r->image->comm, labels), values);
}

/* ---- waits for locks ---- */

/* The innermost functions of a row's stack. Returns their number. */
static uint32_t innermost(struct reading *r, uint32_t index, uint32_t *locations, uint32_t most)
{
	const struct csink_recorded_row *row = &r->rec->rows[index];
	uint32_t callers[CSINK_MAX_DEPTH], nr_callers = csink_frames_callers(&r->frames, row->node, callers), nr = 0;

	if (!r->frames.leaf_is_evaluator || !nr_callers)
		locations[nr++] = csink_frames_leaf(
			&r->frames, row->leaf,
			row->node == CSINK_RECORDED_NONE ? 0 : r->rec->nodes[r->rec->nodes[row->node].root].pc);
	for (uint32_t i = 0; i < nr_callers && nr < most; i++)
		locations[nr++] = callers[i];
	return nr;
}

/* A label that csink_collect_holders() gives its text, or a text for no holder. */
static struct csink_profile_label holder_label(struct reading *r, uint32_t holder)
{
	static const char *const no_holder[CSINK_WAIT_NR_HOLDERS] = {
		[CSINK_WAIT_UNKNOWN] = "[unknown]",
		[CSINK_WAIT_HAND_OFF] = "[free: the waiter was not running yet]",
		[CSINK_WAIT_CONDITION] = "[a thread that went on to wait for a condition]",
		[CSINK_WAIT_OTHERS] = "[another process]",
		[CSINK_WAIT_NOT_ENDED] = "[not released until the end]",
		[CSINK_WAIT_SEMAPHORE] = "[none]",
		[CSINK_WAIT_JOIN] = "[none]",
		[CSINK_WAIT_BARRIER] = "[none]",
		[CSINK_WAIT_FUTEX] = "[none]",
		[CSINK_WAIT_SIGNALLED] = "[none]"};
	struct csink_profile_label label = {.key = csink_profile_str(r->c->p, CSINK_LABEL_HOLDER)};
	uint32_t index = CSINK_RECORDED_NONE;
	struct collector *c = r->c;
	struct holder found = {.nr = 0};

	if (holder >= CSINK_WAIT_NR_HOLDERS)
		index = csink_recorded_row_at(r->rec, holder >> 1);
	if (index == CSINK_RECORDED_NONE) {
		label.str = csink_profile_str(c->p, no_holder[holder < CSINK_WAIT_NR_HOLDERS ? holder : 0]);
		return label;
	}
	found.nr = innermost(r, index, found.locations, CSINK_ARRAY_SIZE(found.locations));
	label.num = CSINK_TABLE_INTERN(c->known_holders, (uint32_t)csink_hash_bytes(&found, sizeof(found)),
				       !memcmp(&c->holders[id - 1], &found, sizeof(found)),
				       CSINK_APPEND(c->holders, c->nr_holders, c->cap_holders, found));
	if (!label.num)
		r->frames.err = -ENOMEM;
	return label;
}

CSINK_COMPARE_BY(compare_sites, struct site, lock, address)

/* Where locks were initialised, in the order of their addresses. Returns 0 or -ENOMEM. */
static int find_sites(struct reading *r)
{
	for (uint32_t i = 0; i < r->rec->nr_waits; i++) {
		const struct csink_rec_wait *wait = r->rec->waits[i];
		struct site site = {wait->lock, wait->open, wait->waiter};

		/* Without its address it was just being written. */
		if (wait->holder == CSINK_WAIT_MADE && site.address &&
		    !CSINK_APPEND(r->sites, r->nr_sites, r->cap_sites, site))
			return -ENOMEM;
	}
	if (!r->nr_sites)
		return 0;
	qsort(r->sites, r->nr_sites, sizeof(*r->sites), compare_sites);
	/* Of several locks that had one address after each other, it is not known whose a wait is: 0. */
	for (uint32_t i = 1, first = 0; i < r->nr_sites; i++) {
		if (r->sites[i].lock != r->sites[first].lock)
			first = i;
		else if (r->sites[i].address != r->sites[first].address)
			r->sites[first].address = 0;
		else if (r->sites[i].stack != r->sites[first].stack)
			r->sites[first].stack = 0;
	}
	return 0;
}

/* A label that csink_collect_holders() gives its text; num 0: where the lock was initialised is not known. */
static struct csink_profile_label made_label(struct reading *r, uint64_t lock, const char *kind)
{
	struct csink_profile_label label = {.key = csink_profile_str(r->c->p, CSINK_LABEL_LOCK)};
	struct made_lock made = {.kind = kind};
	uint32_t low, index = CSINK_RECORDED_NONE;
	struct collector *c = r->c;

	low = CSINK_LOWER(r->nr_sites, i, r->sites[i].lock < lock);
	if (low == r->nr_sites || r->sites[low].lock != lock || !r->sites[low].address)
		return label;
	if (r->sites[low].stack)
		index = csink_recorded_row_at(r->rec, r->sites[low].stack >> 1);
	if (index != CSINK_RECORDED_NONE)
		made.nr = innermost(r, index, made.locations, CSINK_ARRAY_SIZE(made.locations));
	else
		made.locations[made.nr++] = csink_frames_leaf(&r->frames, r->sites[low].address - 1, UINT64_MAX >> 1);
	label.num = CSINK_TABLE_INTERN(
		c->known_made_locks, (uint32_t)csink_hash_bytes(made.locations, sizeof(made.locations)),
		c->made_locks[id - 1].nr == made.nr &&
			!memcmp(c->made_locks[id - 1].locations, made.locations, sizeof(made.locations)) &&
			!strcmp(c->made_locks[id - 1].kind, kind),
		CSINK_APPEND(c->made_locks, c->nr_made_locks, c->cap_made_locks, made));
	return label;
}

/*
 * What was waited for: a lock or a semaphore by its name, other objects with what they are. What is no variable is
 * named by where it was initialised, else by its address.
 */
static struct csink_profile_label awaited(struct reading *r, const struct csink_rec_wait *wait)
{
	static const char *const kinds[CSINK_WAIT_NR_HOLDERS] = {
		[CSINK_WAIT_BARRIER] = "barrier", [CSINK_WAIT_FUTEX] = "futex", [CSINK_WAIT_SIGNALLED] = "condition"};
	const char *kind = (wait->holder < CSINK_WAIT_NR_HOLDERS ? kinds[wait->holder] : NULL) ?: "", *name = "";
	struct csink_profile_label label = {.key = csink_profile_str(r->c->p, CSINK_LABEL_LOCK)};
	bool is_join = wait->holder == CSINK_WAIT_JOIN;
	csink_str_t plain = is_join ? 0 : csink_collect_lock_name(r->c, wait->lock);
	char text[512] = "[join]";
	int length;

	if (plain && !*kind) {
		label.str = plain;
		return label;
	}
	if (!plain && !is_join)
		label = made_label(r, wait->lock, kind);
	if (label.num)
		return label;
	name = csink_profile_text(r->c->p, plain);
	length = (int)strlen(name);
	if (length > 1 && *name == '[' && name[length - 1] == ']') {
		name++;
		length -= 2;
	}
	if (plain)
		snprintf(text, sizeof(text), "[%s %.*s]", kind, CSINK_MIN(length, 480), name);
	else if (!is_join)
		snprintf(text, sizeof(text), "[%s%s0x%" PRIx64 " of process %d]", kind, *kind ? " " : "", wait->lock,
			 (int)r->image->pid);
	label.str = csink_profile_str(r->c->p, text);
	return label;
}

/* When a process ended: of one that was killed, as far as that is known, at most the end of the run. One that runs:
 * now. */
static uint64_t end_of(const struct reading *r)
{
	const struct csink_outside *outside = r->c->outside;
	uint64_t end_ns = r->rec->header.end_monotonic_ns;

	if (r->rec->header.state != CSINK_REC_LIVE)
		return end_ns;
	for (uint32_t i = 0; outside && i < outside->nr_processes; i++)
		if (outside->processes[i].pid == r->image->pid && outside->processes[i].end_ns)
			return CSINK_MAX(end_ns, outside->processes[i].end_ns);
	if (r->image->nr_moment)
		return csink_moment_ns(r->c->now);
	if (!outside)
		return csink_collect_is_running(r->image) ? CSINK_MAX(end_ns, csink_monotonic_ns()) : end_ns;
	return outside->wall_ns ? CSINK_MAX(end_ns, r->c->images[0].start_ns + outside->wall_ns) : end_ns;
}

/* Is what has not ended part of this profile? Of slices, that in which the program ends has it. */
static bool has_ends(const struct reading *r)
{
	return !r->c->slice || !(r->image->is_open || r->image->is_past);
}

/* When a program began, also before the slice. */
static uint64_t begin_of(const struct reading *r)
{
	uint32_t nr = r->image->nr_moment;

	return nr ? r->c->now->at[nr - 1].copy.header.start_monotonic_ns : r->image->start_ns;
}

/* How long waits that have not ended lasted until then. Returns how many they are. */
static uint32_t open_waits(const struct reading *r, const struct csink_rec_wait *wait, uint64_t *ns)
{
	uint64_t mask = UINT64_MAX >> CSINK_WAIT_OPEN_BITS, end_ns, us, most_us;
	uint32_t nr = wait->open & ((1 << CSINK_WAIT_OPEN_BITS) - 1);

	*ns = 0;
	if (!nr)
		return 0;
	end_ns = end_of(r);
	us = (nr * (end_ns / 1000) - (wait->open >> CSINK_WAIT_OPEN_BITS)) & mask;
	most_us = end_ns > begin_of(r) ? nr * ((end_ns - begin_of(r)) / 1000 + 1) : 0;
	*ns = us <= most_us ? us * 1000 : 0; /* else the end is that of an older copy, or the number is damaged */
	return nr;
}

/* @is_total  it is in the sum that the process has of all waits. */
static void add_wait(struct reading *r, const struct csink_rec_wait *wait, uint32_t first, bool is_total)
{
	uint32_t index = csink_recorded_row_at(r->rec, wait->waiter >> 1), base;
	int64_t values[CSINK_MAX_EVENTS + 1] = {0};
	struct csink_profile_label labels[8];
	const struct csink_profile_range *set;
	const struct csink_recorded_row *row;
	uint64_t open_ns;
	uint32_t nr_open = open_waits(r, wait, &open_ns);

	if (index == CSINK_RECORDED_NONE || r->types[first] < 0 || r->types[first + 1] < 0 ||
	    !(wait->delay_ns | wait->contentions | nr_open))
		return;
	row = &r->rec->rows[index];
	values[r->types[first] + 1] = csink_add(claimed(wait->delay_ns), claimed(open_ns));
	values[r->types[first + 1] + 1] = csink_add(claimed(wait->contentions), nr_open);
	if (is_total) {
		r->spreads[first].given = csink_add(r->spreads[first].given, claimed(wait->delay_ns));
		r->spreads[first + 1].given = csink_add(r->spreads[first + 1].given, claimed(wait->contentions));
	}
	base = row_labels(r, row);
	set = &r->c->p->label_sets[base];
	memcpy(labels, r->c->p->labels + set->first, set->nr * sizeof(*labels));
	labels[set->nr] = awaited(r, wait);
	labels[set->nr + 1] = holder_label(r, wait->holder);
	base = csink_profile_labels_add(r->c->p, labels, set->nr + 2);
	add_stack(r, row, base, values);
}

/* Waits that go on, and those whose lock was taken and not released since, so that who had it before is not known. */
static void add_not_ended(struct reading *r, const struct csink_rec_wait *wait, uint32_t first)
{
	struct csink_rec_wait open = *wait, pending = *wait;

	if (!has_ends(r))
		return;
	open.delay_ns = open.contentions = 0;
	add_wait(r, &open, first, false);
	pending.open = 0;
	pending.holder = CSINK_WAIT_UNKNOWN;
	if (pending.contentions < CSINK_WAIT_DATED)
		add_wait(r, &pending, first, false);
}

/* When a lock was released that a thread waited for, and by which thread: for the critical path. Its time is no part of
 * any value, which the sums have. */
static void add_release(struct reading *r, const struct csink_rec_wait *wait)
{
	uint32_t waiter = csink_recorded_row_at(r->rec, wait->waiter >> 1), releaser, base;
	int64_t values[CSINK_MAX_EVENTS + 1] = {0};
	const struct csink_recorded_row *row;
	struct csink_profile_label labels[8];
	const struct csink_profile_range *set;

	releaser = wait->holder < CSINK_WAIT_NR_HOLDERS ? CSINK_RECORDED_NONE
							: csink_recorded_row_at(r->rec, wait->holder >> 1);
	if (waiter == CSINK_RECORDED_NONE || releaser == CSINK_RECORDED_NONE || !wait->delay_ns ||
	    r->rec->rows[releaser].thread == CSINK_RECORDED_NONE)
		return;
	row = &r->rec->rows[waiter];
	base = row_labels(r, row);
	set = &r->c->p->label_sets[base];
	memcpy(labels, r->c->p->labels + set->first, set->nr * sizeof(*labels));
	labels[set->nr] = (struct csink_profile_label){.key = csink_profile_str(r->c->p, CSINK_LABEL_RELEASER),
						       .num = r->rec->threads[r->rec->rows[releaser].thread]->tid};
	labels[set->nr + 1] = time_label(r, wait->delay_ns);
	add_stack(r, row, csink_profile_labels_add(r->c->p, labels, set->nr + 2), values);
}

/* What is in use at the end has no thread: who allocated it, and who keeps it, may be others. */
static void add_in_use(struct reading *r, const struct csink_rec_wait *wait, uint32_t first)
{
	uint32_t index = csink_recorded_row_at(r->rec, wait->waiter >> 1);
	int64_t values[CSINK_MAX_EVENTS + 1] = {0};
	struct csink_profile_label labels[3];

	if (index == CSINK_RECORDED_NONE || r->types[first] < 0 || r->types[first + 1] < 0)
		return;
	values[r->types[first] + 1] = spread(&r->spreads[first], wait->delay_ns);
	values[r->types[first + 1] + 1] = spread(&r->spreads[first + 1], wait->contentions);
	add_stack(r, &r->rec->rows[index],
		  csink_profile_labels_add(r->c->p, labels,
					   csink_collect_process_labels(r->c, r->image->pid, r->image->comm, labels)),
		  values);
}

static void add_waits(struct reading *r)
{
	uint32_t waited = event_with(r->rec, CSINK_EVENT_WAITED), in_use = event_with(r->rec, CSINK_EVENT_IN_USE);
	uint32_t nr = r->rec->header.nr_events, nr_dated = 0;

	if (r->rec->nr_waits && (find_sites(r) || csink_collect_lock_modules(r->c, r->rec)))
		r->frames.err = -ENOMEM;
	for (uint32_t i = 0; i < r->rec->nr_waits && !r->frames.err; i++) {
		const struct csink_rec_wait *wait = r->rec->waits[i];

		if (wait->holder == CSINK_WAIT_NOT_ENDED) {
			if (waited + 1 < nr)
				add_not_ended(r, wait, waited);
		} else if (wait->holder == CSINK_WAIT_IN_USE) {
			if (in_use + 1 < nr)
				add_in_use(r, wait, in_use);
		} else if (wait->contentions >= CSINK_WAIT_DATED) {
			nr_dated++;
			add_release(r, wait);
		} else if (wait->holder != CSINK_WAIT_MADE && waited + 1 < nr) {
			add_wait(r, wait, waited, true);
		}
	}
	nr_dated += r->rec->nr_former_dated;
	if (r->rec->nr_waits - nr_dated >= CSINK_WAIT_MAX_APART)
		csink_collect_tally(
			r->c, CSINK_FACT_NOTE,
			"a %s process has %u pairs of who waits for whom: of others, the holder is [unknown], "
			"and the lock [other locks]",
			r->rec->header.comm, CSINK_WAIT_MAX_APART);
	if (nr_dated >> CSINK_WAIT_DATED_BITS)
		csink_collect_tally(
			r->c, CSINK_FACT_NOTE,
			"after %u waits for locks in a %s process, the critical path leaves out who ended those "
			"of less than %.1f ms",
			1U << CSINK_WAIT_DATED_BITS, r->rec->header.comm,
			(double)CSINK_WAIT_DATED_LEAST_NS(nr_dated) / 1e6);
}

/* Allocations of a process too few to have a sample, and waits in threads that are not known. */
static void add_unsampled(struct reading *r)
{
	const struct csink_rec_header *header = &r->rec->header;
	int64_t values[CSINK_MAX_EVENTS + 1] = {0};
	struct csink_profile_label labels[3];
	bool any = false;

	for (uint32_t i = 0; i < header->nr_events; i++) {
		int64_t left = claimed(header->counted[i]) - r->spreads[i].given;

		if (!(header->events[i].flags & (CSINK_EVENT_ALLOCATED | CSINK_EVENT_WAITED)) || r->types[i] < 0 ||
		    left <= 0)
			continue;
		values[r->types[i] + 1] = left;
		any = true;
	}
	if (any && !r->image->is_left_out)
		csink_collect_pseudo(r->c, "not sampled", "[not sampled]", NULL, labels,
				     csink_collect_process_labels(r->c, r->image->pid, r->image->comm, labels), values);
}

/* A process that became another program has nothing in use. */
static void note_in_use(struct reading *r)
{
	const struct csink_rec_header *header = &r->rec->header;

	for (uint32_t i = 0; i < header->nr_events; i++)
		if (header->events[i].flags & CSINK_EVENT_IN_USE) {
			r->c->nr_without_in_use += !header->counted[i] && header->state != CSINK_REC_EXECED &&
						   !(header->events[i].flags & CSINK_EVENT_REFUSED);
			return;
		}
}

static void add_samples(struct reading *r)
{
	struct csink_profile *p = r->c->p;

	csink_profile_expect(p, r->rec->nr_rows);
	for (uint32_t i = 0; i < r->rec->nr_timelines && !r->frames.err && !csink_profile_error(p); i++)
		add_timeline(r, r->rec->timelines[i]);
	for (uint32_t i = 0; i < r->rec->nr_rows && !r->frames.err && !csink_profile_error(p); i++)
		add_row(r, &r->rec->rows[i]);
	if (!r->frames.err) {
		add_unstored(r);
		add_waits(r);
		add_unsampled(r);
	}
}

static int keep_tids(struct image *image, const struct csink_recorded *rec)
{
	image->tids = calloc(rec->nr_threads + 1, sizeof(*image->tids));
	if (!image->tids)
		return -ENOMEM;
	for (uint32_t i = 0; i < rec->nr_threads; i++)
		if (!(rec->threads[i]->flags & CSINK_THREAD_NOT_SAMPLED))
			image->tids[image->nr_tids++] = rec->threads[i]->tid;
	image->lacks_tids = rec->nr_gone_threads != 0;
	return 0;
}

static int find_counterparts(struct reading *r)
{
	r->counterparts = calloc(r->rec->nr_threads + 1, sizeof(*r->counterparts));
	for (uint32_t i = 0; i < r->rec->nr_threads && r->counterparts; i++)
		r->counterparts[i] = csink_collect_counterpart(r->c, r->image, r->rec->threads[i]->tid);
	return r->counterparts ? 0 : -ENOMEM;
}

static int make_scales(struct reading *r)
{
	uint32_t nr = r->rec->nr_threads;

	r->scales = malloc((nr + 1UL) * sizeof(*r->scales));
	if (!r->scales)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		r->scales[i] = 1;
	if (r->image->is_outside)
		return csink_collect_outside_scales(r->c, r->image, r->rec, r->scales);
	csink_collect_tail_scales(r->c, r->image, r->rec, r->scales);
	return 0;
}

int csink_collect_recording(struct collector *c, struct image *image, const struct csink_recorded *rec)
{
	struct reading r = {.c = c, .image = image, .rec = rec};
	int err = csink_frames_open(&r.frames, c, rec, image->pid);
	bool is_shown;

	r.labels = calloc(rec->nr_threads + 1, sizeof(*r.labels));
	if (!err && !r.labels)
		err = -ENOMEM;
	if (!err && image->is_outside)
		err = find_counterparts(&r);
	if (!err)
		err = make_scales(&r);
	if (!err) {
		map_types(&r);
		make_spreads(&r);
		note_in_use(&r);
		add_samples(&r);
		err = r.frames.err;
	}
	if (!err) {
		/* Of a program that the library sampled, only its loader is from outside. */
		is_shown = !image->is_outside || (r.nr_kept && !csink_collect_counterpart(c, image, image->pid));
		if (!image->is_past) /* slices before have them */
			csink_collect_notes(c, image, rec, is_shown);
		image->nr_threads += rec->nr_threads + rec->nr_gone_threads;
		image->nr_former_threads = rec->nr_former_threads;
	}
	if (!err && !image->is_outside)
		err = keep_tids(image, rec);
	csink_frames_close(&r.frames);
	free(r.labels);
	free(r.counterparts);
	free(r.scales);
	free(r.sites);
	return err ? err : csink_profile_error(c->p);
}
