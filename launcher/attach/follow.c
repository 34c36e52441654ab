/*
 * Reading the rings: records of forks, execs, exits and mappings update the images, samples are walked and added up:
 * see follow.h. Runs in the attach command's one thread.
 */
#include "launcher/attach/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/grow.h"
#include "launcher/attach/attach_sample.h"
#include "launcher/attach/interpreters.h"
#include "launcher/base/hash.h"
#include "launcher/base/proc.h"
#include "launcher/session/outside.h"

/* How long a record may take to come after one of a later time, from another CPU. */
#define SETTLE_NS 2000000

/* ---- what a sample weighs ---- */

/* What the thread's event counted since its last sample; 0: there is no memory for it. */
static uint64_t count_since_last(struct csink_attach_follow *f, uint64_t event, uint32_t owner, uint64_t value)
{
	uint32_t number = CSINK_TABLE_INTERN(
		f->last_index, (uint32_t)csink_hash_pair(event, owner),
		f->last[id - 1].owner == owner && f->last[id - 1].id == event,
		CSINK_APPEND(f->last, f->nr_last, f->cap_last, (struct csink_attach_last){event, 0, owner}));
	struct csink_attach_last *last;
	uint64_t since;

	if (!number)
		return 0;
	last = &f->last[number - 1];
	since = value >= last->value ? value - last->value : value;
	last->value = value;
	return since;
}

/* ---- samples ---- */

struct place {
	struct csink_attach_image *image;
};

static bool locate(void *arg, uint64_t pc, const struct csink_attach_object **object, uint64_t *bias)
{
	struct place *place = arg;
	const struct csink_attach_mapping *mapping = csink_attach_image_find(place->image, pc);

	if (!mapping)
		return false;
	*object = mapping->object;
	*bias = mapping->bias;
	return true;
}

/* Replaces a native stack by one with Python frames, where there are any. */
static uint32_t merge_python(struct csink_attach_follow *f, struct csink_attach_image *image,
			     const struct csink_attach_sample *s, const struct csink_native_stack *native,
			     uint64_t *frames, uint16_t *flags)
{
	uint64_t merged[CSINK_MAX_DEPTH];
	struct csink_merge_faults faults = {0};
	int32_t nr = csink_attach_pythons_merge(&f->pythons, s, native, merged, f->max_depth, &faults);

	if (nr < 0)
		return native->nr;
	memcpy(frames, merged, (uint32_t)nr * sizeof(*frames));
	if (faults.is_cut && !(*flags & CSINK_CHAIN_TRUNCATED)) {
		*flags |= CSINK_CHAIN_TRUNCATED;
		image->losses[CSINK_LOSS_DEPTH]++;
	}
	if (faults.is_broken) {
		*flags |= CSINK_CHAIN_BROKEN;
		image->losses[CSINK_LOSS_BAD_STACK]++;
	}
	return (uint32_t)nr;
}

static uint32_t walk_copy(struct csink_attach_follow *f, struct csink_attach_image *image,
			  const struct csink_attach_sample *s, uint64_t *frames, uint16_t *flags)
{
	uint64_t cfas[CSINK_MAX_DEPTH];
	struct place place = {image};
	struct csink_walk_trust trust = {0};
	struct csink_walk_copy copy = {.regs = s->regs,
				       .stack = s->stack,
				       .stack_bytes = s->stack_bytes,
				       .locate = locate,
				       .arg = &place,
				       .cfas = cfas,
				       .chain = s->callchain,
				       .nr_chain = s->nr_callchain,
				       .is_32 = s->is_32,
				       .trust = &trust};
	enum csink_walk_copy_end end;
	bool helped;
	uint32_t nr = csink_walk_chosen(f->walk_by, &copy, frames, f->max_depth, &end, &helped);

	f->nr_helped += helped;
	f->nr_by_code += trust.by_code && !trust.by_guess;
	f->nr_guessed += trust.by_guess;
	if (end == CSINK_COPY_DEPTH || end == CSINK_COPY_CUT) {
		*flags = CSINK_CHAIN_TRUNCATED;
		image->losses[CSINK_LOSS_DEPTH] += end == CSINK_COPY_DEPTH;
		f->nr_deep += end == CSINK_COPY_CUT;
	} else if (end != CSINK_COPY_COMPLETE) {
		*flags = CSINK_CHAIN_BROKEN;
		image->losses[end == CSINK_COPY_NO_CFI     ? CSINK_LOSS_NO_CFI
			      : end == CSINK_COPY_RULES    ? CSINK_LOSS_RULES
			      : end == CSINK_COPY_SWITCHED ? CSINK_LOSS_SWITCHED
							   : CSINK_LOSS_BAD_STACK]++;
	}
	return merge_python(f, image, s,
			    &(struct csink_native_stack){csink_walk_copy_pc(s->regs),
							 csink_walk_copy_reg(s->regs, CSINK_REG_SP), frames, cfas, nr,
							 end == CSINK_COPY_COMPLETE},
			    frames, flags);
}

/* The kernel's own walk: marks of contexts, the interrupted address, then return addresses. */
static uint32_t take_callchain(const struct csink_attach_follow *f, const struct csink_attach_sample *s,
			       uint64_t *frames)
{
	uint32_t nr = 0, i = 0;

	while (i < s->nr_callchain && s->callchain[i] >= (uint64_t)PERF_CONTEXT_MAX)
		i++;
	for (i++; i < s->nr_callchain && nr < f->max_depth; i++) {
		if (s->callchain[i] < (uint64_t)PERF_CONTEXT_MAX && s->callchain[i] >> 48 == 0 && s->callchain[i])
			frames[nr++] = s->callchain[i];
	}
	return nr;
}

/* The counts of the other events of the group are identified by their position. */
#define MEMBER_SHIFT 48

static void weigh(struct csink_attach_follow *f, const struct csink_attach_sample *s,
		  const struct csink_attach_event *event, uint32_t owner, uint64_t *weights)
{
	const struct csink_attach_counters *c = &f->counters;
	const struct csink_attach_event *end = c->events + c->nr_events;
	uint64_t k = 0;

	if (!c->has_read) {
		weights[event->column] = c->has_period ? s->period : event->attr.sample_period;
		return;
	}
	for (const struct csink_attach_event *member = event; member < end && k < s->nr_values; member++) {
		if (member->err)
			continue;
		weights[member->column] = count_since_last(f, s->id | k << MEMBER_SHIFT, owner, s->values[k]);
		k++;
	}
}

static uint64_t leaf_of(const struct csink_attach_follow *f, const struct csink_attach_sample *s)
{
	return f->counters.stacks == CSINK_ATTACH_COPY ? csink_walk_copy_pc(s->regs) : s->regs[0];
}

/*
 * Between an exec and the program's first instruction, the registers are those of the program that called execve(2):
 * until a sample is in the program itself. The record of the exec may come later: what /proc has then is of the new
 * program, and the registers may point into it by chance.
 */
static bool is_in_exec(const struct csink_attach_follow *f, struct csink_attach_image *image,
		       const struct csink_attach_sample *s, uint64_t time_ns)
{
	bool may_come;

	if (image->has_run)
		return false;
	may_come = f->counters.at_exec && image->lacks_start && csink_attach_is_near(image->start_ns, time_ns);
	if (!image->is_exec && !may_come)
		return false;
	image->has_run = !s->in_kernel || (!may_come && csink_attach_image_find(image, leaf_of(f, s)));
	return !image->has_run;
}

/* The stack of a sample; frames has room for CSINK_MAX_DEPTH. */
static struct csink_attach_stack stack_of(struct csink_attach_follow *f, struct csink_attach_image *image,
					  const struct csink_attach_sample *s, uint64_t time_ns, uint64_t *frames)
{
	struct csink_attach_stack stack = {.frames = frames};

	if (!s->regs)
		return stack;
	if (is_in_exec(f, image, s, time_ns)) {
		stack.leaf = CSINK_LEAF_IN_EXEC;
		return stack;
	}
	stack.leaf = leaf_of(f, s);
	if (f->counters.stacks == CSINK_ATTACH_COPY)
		stack.nr_frames = walk_copy(f, image, s, frames, &stack.flags);
	else if (f->counters.stacks == CSINK_ATTACH_FP)
		stack.nr_frames = take_callchain(f, s, frames);
	return stack;
}

static int time_column(const struct csink_attach_counters *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (c->events[i].column >= 0 && c->events[i].spec.rec.flags & CSINK_EVENT_CPU_NS)
			return c->events[i].column;
	return -1;
}

/* Of a process that is followed, and is brief so far; which are so at the end is known then. */
static void take_cpu_sample(struct csink_attach_follow *f, const struct csink_attach_sample *s, uint64_t time_ns)
{
	const struct csink_attach_living *thread = csink_attach_images_known(&f->images, s->pid, s->tid);
	struct csink_attach_image *image = thread ? f->images.at[thread->image] : NULL;
	uint64_t frames[CSINK_MAX_DEPTH], weights[CSINK_MAX_EVENTS] = {0};
	struct csink_attach_stack stack;
	int column = time_column(&f->counters);

	if (!s->regs)
		csink_cpu_samples_note_bare(&f->cpus, s->pid, time_ns);
	if (!s->regs || !image || image->nr_own_samples >= CSINK_BRIEF_SAMPLES || image->is_injected || column < 0)
		return;
	stack = stack_of(f, image, s, time_ns, frames);
	stack.is_by_cpu = true;
	weights[column] = f->cpus.period_ns;
	csink_attach_images_add(&f->images, thread, &stack, weights, time_ns);
}

static void take_sample(struct csink_attach_follow *f, const struct perf_event_header *record, uint64_t time_ns)
{
	struct csink_attach_living *thread;
	struct csink_attach_event *event;
	const struct csink_attach_counters *c = &f->counters;
	uint64_t frames[CSINK_MAX_DEPTH], weights[CSINK_MAX_EVENTS] = {0};
	struct csink_attach_stack stack;
	struct csink_attach_sample s;
	uint32_t source = 0;

	if (!csink_attach_sample_read(&f->counters, record, &s))
		return;
	event = csink_attach_counters_find(&f->counters, s.id, &source);
	if (!event && csink_cpu_samples_has(&f->cpus, s.id))
		take_cpu_sample(f, &s, time_ns);
	thread = event && event->column >= 0 ? csink_attach_images_thread(&f->images, s.pid, s.tid, time_ns) : NULL;
	if (!thread)
		return;
	/* An event without inherit counts one thread, whatever its TID after an exec; that of a control group counts
	 * all threads on its CPU. */
	weigh(f, &s, event, c->inherit && c->cgroup_fd < 0 ? thread->owner : 1, weights);
	if (!csink_attach_images_is_source(thread, source))
		return; /* its counts are known, should it become the source */
	stack = stack_of(f, f->images.at[thread->image], &s, time_ns, frames);
	f->nr_samples++;
	csink_attach_images_add(&f->images, thread, &stack, weights, time_ns);
}

/* ---- other records ---- */

/*
 * The kernel reports that a thread's counters ended. If it was the only one, and did not end, it has just changed its
 * credentials by exec, and a process without them may not observe it any more. Where others are left, one of them has
 * taken over its TID by exec.
 */
static void note_taken_away(struct csink_attach_follow *f, int32_t pid, int32_t tid, uint64_t time_ns)
{
	struct csink_task task;

	if (!csink_attach_images_has_ended(&f->images, pid) || csink_task_read(tid, &task) || task.is_ending ||
	    task.tgid != pid || !csink_proc_was_there(pid, time_ns))
		return;
	f->outside->attached_gap_has_more = 1;
	csink_attach_images_note_going_on(&f->images, pid);
	csink_outside_note(
		f->outside,
		"%s (%d) changed its credentials by exec (set-user-id or capabilities): the kernel ended its events",
		task.comm, pid);
}

/* Of which source's events is the record of a fork or exec? Behind the time is the event's id. */
static void note_source(struct csink_attach_follow *f, const struct perf_event_header *record, int32_t pid)
{
	uint32_t source = 0;
	uint64_t id;

	memcpy(&id, (const char *)record + record->size - sizeof(id), sizeof(id));
	if (csink_attach_counters_find(&f->counters, id, &source))
		csink_attach_images_note_source(&f->images, pid, source);
}

/* A group counts nothing while its leader is stopped (Linux 6.16). */
static bool counts_cpu_time(const struct csink_attach_counters *c, const struct csink_attach_event *event)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (c->events[i].spec.group == event->spec.group && c->events[i].spec.rec.flags & CSINK_EVENT_CPU_NS)
			return true;
	return false;
}

/* The events of CPU time then lack more than switches and exits. */
static void take_throttle(struct csink_attach_follow *f, const struct perf_event_header *record)
{
	const struct csink_attach_event *event = NULL;
	uint64_t time_and_id[2];

	f->nr_throttled++;
	if (record->size >= sizeof(*record) + sizeof(time_and_id)) {
		memcpy(time_and_id, record + 1, sizeof(time_and_id));
		event = csink_attach_counters_find(&f->counters, time_and_id[1], NULL);
	}
	if (event && counts_cpu_time(&f->counters, event))
		f->outside->attached_gap_has_more = 1;
}

static void take_record(void *arg, const struct perf_event_header *record, uint64_t time_ns)
{
	struct csink_attach_follow *f = arg;
	const char *body = (const char *)(record + 1);
	int32_t ids[4];  /* of FORK and EXIT: pid, ppid, tid, ptid; of the others: pid, tid */
	uint64_t map[3]; /* address, length, offset */

	if (record->type == PERF_RECORD_SAMPLE) {
		take_sample(f, record, time_ns);
		return;
	}
	if (record->size < sizeof(*record) + sizeof(ids))
		return;
	memcpy(ids, body, sizeof(ids));
	switch (record->type) {
	case PERF_RECORD_FORK:
		csink_attach_images_fork(&f->images, ids[0], ids[1], ids[2], time_ns);
		csink_attach_pythons_fork(&f->pythons, ids[0], ids[1]);
		if (ids[0] == ids[1])
			break;
		note_source(f, record, ids[0]);
		csink_attach_clock_add_new(&f->clock, ids[0], ids[1]);
		break;
	case PERF_RECORD_EXIT:
		csink_attach_images_exit(&f->images, ids[0], ids[2], time_ns);
		note_taken_away(f, ids[0], ids[2], time_ns);
		break;
	case PERF_RECORD_COMM:
		if (ids[0] == f->leave_out)
			break;
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC) {
			csink_attach_pythons_exec(&f->pythons, ids[0]);
			csink_attach_images_exec(&f->images, ids[0], body + 8, time_ns, f->counters.at_exec);
			note_source(f, record, ids[0]);
			csink_attach_clock_add_new(&f->clock, ids[0], f->leave_out); /* else it is known */
		} else
			csink_attach_images_comm(&f->images, ids[0], ids[1], body + 8, time_ns);
		break;
	case PERF_RECORD_MMAP2:
		memcpy(map, body + 8, sizeof(map));
		csink_attach_images_map(&f->images, ids[0], map[0], map[1], map[2], body + 64, time_ns);
		break;
	case PERF_RECORD_THROTTLE:
		take_throttle(f, record);
		break;
	}
}

void csink_attach_follow_begin(struct csink_attach_follow *follow)
{
	follow->images.on_object = csink_attach_pythons_object;
	follow->images.arg = &follow->pythons;
}

static uint64_t settled_ns(const struct csink_attach_follow *follow)
{
	return csink_monotonic_ns() - (follow->pythons.readers ? CSINK_READERS_LATE_NS : SETTLE_NS);
}

bool csink_attach_follow_step(struct csink_attach_follow *follow, struct csink_attach_step *step)
{
	if (!step->before_ns)
		step->before_ns = settled_ns(follow);
	return csink_rings_drain_some(&follow->counters.rings, step->before_ns, step->bytes, take_record, follow);
}

void csink_attach_follow_drain(struct csink_attach_follow *follow, bool all)
{
	if (all && follow->pythons.readers)
		csink_attach_readers_stop(follow->pythons.readers);
	csink_rings_drain(&follow->counters.rings, all ? UINT64_MAX : settled_ns(follow), take_record, follow);
	if (!all)
		csink_attach_clock_poll(&follow->clock);
}

/* ---- the end ---- */

static void make_head(const struct csink_attach_follow *f, struct csink_rec_header *head)
{
	memset(head, 0, sizeof(*head));
	head->engine = CSINK_ENGINE_OUTSIDE;
	if (f->counters.in_run && f->counters.lacks_read)
		snprintf(head->engine_reason, sizeof(head->engine_reason),
			 "before Linux 6.13 a sample weighs its period, and all are scaled to the process's CPU time");
	if (f->counters.stacks == CSINK_ATTACH_COPY)
		head->unwind = f->walk_by == CSINK_WALK_BY_LIBUNWIND ? CSINK_UNWIND_LIBUNWIND : CSINK_UNWIND_DWARF;
	else
		head->unwind = f->counters.stacks == CSINK_ATTACH_FP ? CSINK_UNWIND_FP : CSINK_UNWIND_NONE;
	if (f->counters.stacks == CSINK_ATTACH_COPY)
		snprintf(head->unwind_reason, sizeof(head->unwind_reason),
			 "over the %u KiB of stack that the kernel copies", (f->counters.stack_bytes + 1023) / 1024);
	for (uint32_t i = 0; i < f->counters.nr_events; i++) {
		const struct csink_attach_event *event = &f->counters.events[i];
		struct csink_rec_event *to = &head->events[CSINK_MAX(event->column, 0)];

		if (event->column < 0)
			continue;
		*to = event->spec.rec;
		if (f->counters.lacks_read)
			to->flags |= CSINK_EVENT_BY_PERIOD;
		if (event->samples)
			to->flags |= CSINK_EVENT_LEADER;
		to->period = event->attr.freq ? 0 : event->attr.sample_period;
		head->nr_events++;
	}
}

/* What no process can be named for stands in the first recording that is written. */
static void add_losses(struct csink_attach_follow *f)
{
	struct csink_attach_image *first = f->images.nr ? f->images.at[0] : NULL;
	uint64_t nr_lost = f->counters.rings.nr_lost;

	for (uint32_t i = 0; i < f->images.nr && first && !first->nr_rows; i++)
		first = f->images.at[i];
	if (!first)
		return;
	first->losses[CSINK_LOSS_RING] += nr_lost - f->added_lost;
	first->losses[CSINK_LOSS_THROTTLED] += f->nr_throttled - f->added_throttled;
	f->added_lost = nr_lost;
	f->added_throttled = f->nr_throttled;
}

static void note_losses(struct csink_attach_follow *f)
{
	unsigned long long nr_untabled = f->nr_by_code + f->nr_guessed;
	char guessed[128] = "";

	if (f->nr_guessed)
		snprintf(guessed, sizeof(guessed),
			 ", in %llu of them also guessed by words that look like return addresses",
			 (unsigned long long)f->nr_guessed);
	if (f->nr_deep)
		csink_outside_note(
			f->outside,
			"%llu stacks are deeper than the %u KiB of them that the kernel copies: their outermost "
			"functions are missing (%s--unwind=fp has no such limit)",
			(unsigned long long)f->nr_deep, (f->counters.stack_bytes + 1023) / 1024,
			f->counters.in_run || f->counters.stack_bytes == CSINK_ATTACH_MAX_STACK_BYTES
				? ""
				: "--stack-bytes=64K copies more; ");
	if (f->nr_helped)
		csink_outside_note(f->outside,
				   "%llu stacks were walked by libunwind, beyond unwind rules that countersink's own "
				   "walker does not follow (--unwind=dwarf ends them there)",
				   (unsigned long long)f->nr_helped);
	if (nr_untabled)
		csink_outside_note(
			f->outside,
			"%llu stacks lead through code without unwind tables; callers there were found by its "
			"instructions%s",
			nr_untabled, guessed);
	if (f->nr_throttled)
		csink_outside_note(f->outside,
				   "the kernel stopped events %llu times, for they overflow more often than it allows "
				   "(kernel.perf_event_max_sample_rate), and counts nothing until its next tick: their "
				   "counts are too small",
				   (unsigned long long)f->nr_throttled);
	if (f->images.no_memory)
		csink_outside_note(f->outside, "memory ran out: some samples are missing");
}

/* Threads that read frames add functions to the codes meanwhile, unless they have ended. */
int csink_attach_follow_write(struct csink_attach_follow *follow, const char *directory)
{
	struct csink_attach_codes *codes = follow->pythons.readers ? &follow->pythons.codes : NULL;
	struct csink_rec_header head;
	int err;

	add_losses(follow);
	make_head(follow, &head);
	if (!follow->counters.in_run) {
		follow->outside->nr_attached_events = head.nr_events;
		memcpy(follow->outside->attached_events, head.events, sizeof(head.events));
	}
	if (codes)
		pthread_mutex_lock(&codes->lock);
	err = csink_attach_images_save(&follow->images, directory, &head, codes);
	if (codes)
		pthread_mutex_unlock(&codes->lock);
	return err;
}

/* Take what was counted before out of the rows (sign -1), or put it back. */
static void add_base(struct csink_attach_images *images, const struct csink_attach_base *base, uint64_t sign)
{
	for (uint32_t i = 0; i < base->nr_rows; i++) {
		images->rows[i].nr_samples += sign * base->rows[i].nr_samples;
		for (uint32_t e = 0; e < CSINK_MAX_EVENTS; e++)
			images->rows[i].weights[e] += sign * base->rows[i].weights[e];
	}
}

int csink_attach_follow_since(struct csink_attach_follow *follow, const char *directory,
			      const struct csink_attach_base *base, struct csink_attach_base *now)
{
	struct csink_attach_images *images = &follow->images;
	int err;

	*now = (struct csink_attach_base){.rows = calloc(images->nr_rows + 1UL, sizeof(*now->rows)),
					  .nr_rows = images->nr_rows};
	if (!now->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < now->nr_rows; i++) {
		now->rows[i].nr_samples = images->rows[i].nr_samples;
		memcpy(now->rows[i].weights, images->rows[i].weights, sizeof(now->rows[i].weights));
	}
	add_base(images, base, UINT64_MAX);
	err = csink_attach_follow_write(follow, directory);
	add_base(images, base, 1);
	if (err) {
		free(now->rows);
		now->rows = NULL;
	}
	return err;
}

int csink_attach_follow_save(struct csink_attach_follow *follow, const char *directory)
{
	note_losses(follow);
	csink_attach_pythons_note(&follow->pythons, &follow->counters, follow->outside);
	if (follow->pythons.frames != CSINK_ATTACH_FRAMES_NATIVE)
		csink_attach_interpreters_note(&follow->images, follow->counters.in_run, follow->outside);
	if (!follow->counters.in_run) {
		follow->outside->attached_processes = (uint32_t)follow->images.nr_processes;
		follow->outside->attached_threads = (uint32_t)follow->images.nr_threads;
	}
	return csink_attach_follow_write(follow, directory);
}

void csink_attach_follow_free(struct csink_attach_follow *follow)
{
	if (!csink_attach_pythons_free(&follow->pythons))
		return;
	csink_attach_images_free(&follow->images);
	csink_cpu_samples_free(&follow->cpus);
	csink_attach_counters_free(&follow->counters);
	csink_attach_clock_free(&follow->clock);
	free(follow->last);
	csink_table_free(&follow->last_index);
	memset(follow, 0, sizeof(*follow));
}
