/* One recording's rows become samples: frames are looked up in the modules of their time and become locations. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/grow.h"
#include "launcher/profile/collect_impl.h"
#include "launcher/profile/epochs.h"

#define CACHE_SLOTS 8192
#define NOT_SHOWN UINT32_MAX /* in place of a location */

/* Where a recording's frames were found. */
struct reading {
	struct collector *c;
	struct image *image;
	const struct csink_recorded *rec;
	struct csink_epochs epochs;
	uint32_t *modules;   /* by the recording's index: ours + 1; 0 not looked up yet */
	uint32_t anon;       /* our module of code in no object, + 1 */
	uint32_t *locations; /* by the recording's node; 0 not looked up yet */
	uint32_t *labels;    /* by the recording's thread, + 1 for none: label set + 1; 0 not made yet */
	int types[CSINK_MAX_EVENTS];
	struct cached {
		uint64_t frame;
		uint32_t location;
	} * cache;
	int err;
};

/* ---- modules ---- */

static csink_str_t hex_id(struct csink_profile *p, const uint8_t *id, uint32_t len)
{
	char text[2 * 20 + 1] = "";
	uint32_t i;

	for (i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", id[i]);
	return csink_profile_str(p, text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static uint32_t add_module(struct collector *c, const struct module *module, const struct csink_profile_mapping *m)
{
	if (CSINK_GROW(c->modules, c->nr_modules, c->cap_modules))
		return 0;
	c->modules[c->nr_modules] = *module;
	c->modules[c->nr_modules].mapping = csink_profile_mapping_add(c->p, m);
	return c->modules[c->nr_modules].mapping ? ++c->nr_modules : 0;
}

/* Returns the index + 1 of our module for the recording's; 0 without memory. */
static uint32_t find_module(struct collector *c, const struct csink_rec_module *from, int32_t pid)
{
	struct csink_profile_mapping mapping = {.start = from->start, .limit = from->end, .offset = from->file_offset};
	struct module module = {.bias = from->bias, .is_vdso = from->is_vdso, .build_id_len = from->build_id_len};
	struct module *known;
	uint32_t i;

	module.path = csink_profile_str(c->p, from->is_vdso ? "[vdso]" : from->path);
	memcpy(module.build_id, from->build_id, from->build_id_len);
	for (i = 0; i < c->nr_modules; i++) {
		known = &c->modules[i];
		if (known->path == module.path && !known->anon_pid && known->build_id_len == module.build_id_len &&
		    !memcmp(known->build_id, module.build_id, sizeof(module.build_id))) {
			known->pid = pid; /* the latest: the likeliest to be there still */
			return i + 1;
		}
	}
	module.pid = pid;
	module.is_library = !strncmp(base_name(csink_profile_text(c->p, module.path)), "libcountersink.so", 17);
	mapping.file = module.path;
	mapping.build_id = hex_id(c->p, module.build_id, module.build_id_len);
	return add_module(c, &module, &mapping);
}

/* Code in no object: made at run time, or of an object that was never sighted. It is this process's alone. */
static uint32_t anon_module(struct reading *r)
{
	struct csink_profile_mapping mapping = {.limit = INT64_MAX, .file = csink_profile_str(r->c->p, "[anon]")};
	struct module module = {.path = mapping.file, .anon_pid = r->image->pid ? r->image->pid : -1};

	if (!r->anon)
		r->anon = add_module(r->c, &module, &mapping);
	return r->anon;
}

/* ---- locations ---- */

static struct location_slot *find_slot(const struct collector *c, uint32_t mapping, uint64_t address)
{
	uint64_t hash = (address ^ (uint64_t)mapping << 48) * 0x9e3779b97f4a7c15ULL;
	uint32_t at = hash >> 32 & c->slot_mask;

	while (c->slots[at].location && (c->slots[at].address != address || c->slots[at].mapping != mapping))
		at = (at + 1) & c->slot_mask;
	return &c->slots[at];
}

static int grow_slots(struct collector *c)
{
	uint64_t i, nr = c->slots ? ((uint64_t)c->slot_mask + 1) * 2 : 4096;
	struct location_slot *old = c->slots;

	if (old && c->nr_slots < c->slot_mask / 2)
		return 0;
	c->slots = nr <= UINT32_MAX ? calloc(nr, sizeof(*c->slots)) : NULL;
	if (!c->slots) {
		c->slots = old;
		return -ENOMEM;
	}
	c->slot_mask = nr - 1;
	for (i = 0; old && i < nr / 2; i++) {
		if (old[i].location)
			*find_slot(c, old[i].mapping, old[i].address) = old[i];
	}
	free(old);
	return 0;
}

/* The location at an address as the module's headers count it; a new one is put on the list to be named. */
static uint32_t module_location(struct collector *c, struct module *module, uint64_t address)
{
	struct location_slot *slot;

	if (grow_slots(c))
		return 0;
	slot = find_slot(c, module->mapping, address + module->bias);
	if (slot->location)
		return slot->location;
	if (CSINK_GROW(module->wants, module->nr_wants, module->cap_wants))
		return 0;
	slot->address = address + module->bias;
	slot->mapping = module->mapping;
	slot->location = csink_profile_location_add(c->p, module->mapping, slot->address, NULL, 0);
	c->nr_slots++;
	module->wants[module->nr_wants++] = (struct csink_want){address, slot->location};
	return slot->location;
}

/* Our module for the recording's: index + 1. 0 without memory. */
static uint32_t module_at(struct reading *r, uint32_t index)
{
	if (!r->modules[index])
		r->modules[index] = find_module(r->c, r->rec->modules[index], r->image->pid);
	return r->modules[index];
}

/*
 * A frame as recorded. Returns its location; 0 with r->err set; or NOT_SHOWN for a caller that is our library: the
 * first frame of a thread, an interposed call. The program's own stacks are without them.
 */
static uint32_t frame_location(struct reading *r, uint64_t frame, uint64_t time_ns)
{
	struct cached *cached = &r->cache[(frame ^ frame >> 13) % CACHE_SLOTS];
	uint64_t address = frame & ~CSINK_FRAME_EXACT;
	uint32_t index, ours, location;
	bool is_sole;

	if (cached->frame == frame && cached->location)
		return cached->location;
	/* A return address may be that of the next function or line: the call itself is what is meant. */
	if (!(frame & CSINK_FRAME_EXACT))
		address--;
	index = csink_epochs_find(&r->epochs, address, time_ns, &is_sole);
	ours = index == CSINK_NO_MODULE ? anon_module(r) : module_at(r, index);
	if (index != CSINK_NO_MODULE)
		address -= r->rec->modules[index]->bias;
	if (ours && !(frame & CSINK_FRAME_EXACT) && r->c->modules[ours - 1].is_library)
		location = NOT_SHOWN;
	else
		location = ours ? module_location(r->c, &r->c->modules[ours - 1], address) : 0;
	if (!location)
		r->err = -ENOMEM;
	else if (is_sole)
		*cached = (struct cached){frame, location};
	return location;
}

/* ---- stacks ---- */

/* The location of a caller, as frame_location() has it. */
static inline uint32_t node_location(struct reading *r, uint32_t index)
{
	const struct csink_recorded_node *node = &r->rec->nodes[index];

	if (!r->locations[index])
		r->locations[index] = node->pc & ~CSINK_FRAME_EXACT
					      ? frame_location(r, node->pc, r->rec->nodes[node->root].pc)
					      : NOT_SHOWN;
	return r->locations[index];
}

/* The callers of a row, innermost first. Returns how many; room is for CSINK_MAX_DEPTH. */
static uint32_t callers_of(struct reading *r, const struct csink_recorded_row *row, uint32_t *callers)
{
	const struct csink_recorded_node *nodes = r->rec->nodes;
	uint32_t nr = 0, at = row->node, location;

	for (; at != CSINK_RECORDED_NONE && nodes[at].parent != CSINK_RECORDED_NONE && !r->err; at = nodes[at].parent) {
		location = node_location(r, at);
		if (location != NOT_SHOWN)
			callers[nr++] = location;
	}
	return nr;
}

static uint32_t thread_labels(struct reading *r, uint32_t index)
{
	const struct csink_rec_thread *thread = index == CSINK_RECORDED_NONE ? NULL : r->rec->threads[index];
	uint32_t *known = &r->labels[thread ? index : r->rec->nr_threads], nr;
	struct csink_profile_label labels[4];
	struct csink_profile *p = r->c->p;

	if (*known)
		return *known - 1;
	nr = csink_collect_process_labels(r->c, r->image->pid, r->image->comm, labels);
	if (thread)
		labels[nr++] =
			(struct csink_profile_label){.key = csink_profile_str(p, CSINK_LABEL_TID), .num = thread->tid};
	if (thread && *thread->name)
		labels[nr++] = (struct csink_profile_label){.key = csink_profile_str(p, CSINK_LABEL_THREAD),
							    .str = csink_profile_str(p, thread->name)};
	*known = csink_profile_labels_add(p, labels, nr) + 1;
	return *known - 1;
}

/* A number that a recording claims, as a value of a profile. */
static int64_t claimed(uint64_t value)
{
	return (int64_t)CSINK_MIN(value, (uint64_t)INT64_MAX);
}

/*
 * The kernel's task-clock event goes on while the hypervisor runs somebody else; a thread's CPU clock, and with it all
 * accounting, does not. Where they differ, the clock is right.
 */
static int64_t without_stolen(const struct reading *r, uint32_t index, uint32_t event, uint64_t weight)
{
	const struct csink_rec_thread *thread = index == CSINK_RECORDED_NONE ? NULL : r->rec->threads[index];

	if (!thread || !(r->rec->header.events[event].flags & CSINK_EVENT_CPU_NS) || !thread->cpu_ns ||
	    thread->totals[event] <= thread->cpu_ns)
		return claimed(weight);
	return claimed((uint64_t)((unsigned __int128)weight * thread->cpu_ns / thread->totals[event]));
}

static uint64_t *weights_of(const struct reading *r, const struct csink_recorded_row *row)
{
	return r->rec->weights + (size_t)(row - r->rec->rows) * r->rec->header.nr_events;
}

static void row_values(const struct reading *r, const struct csink_recorded_row *from, int64_t *values)
{
	const uint64_t *weights = weights_of(r, from);
	uint32_t i;

	memset(values, 0, (CSINK_MAX_EVENTS + 1) * sizeof(*values));
	values[0] = claimed(from->nr_samples);
	for (i = 0; i < r->rec->header.nr_events; i++) {
		if (r->types[i] >= 0)
			values[r->types[i] + 1] =
				csink_add(values[r->types[i] + 1], without_stolen(r, from->thread, i, weights[i]));
	}
	if (r->c->cpu_event >= 0)
		r->image->covered_cpu_ns = csink_add(r->image->covered_cpu_ns, values[r->c->cpu_event + 1]);
}

/* A thread's remainder that no sample shows: it keeps the thread's labels, and what the thread was started for. */
static void add_remainder(struct reading *r, uint32_t labels, const uint32_t *callers, const int64_t *values)
{
	const struct csink_profile_range *set = &r->c->p->label_sets[labels];
	struct csink_profile_label copy[8];

	memcpy(copy, r->c->p->labels + set->first, set->nr * sizeof(*copy));
	csink_collect_pseudo(r->c, "not sampled", "[not sampled]", callers, copy, set->nr, values);
}

/* What the program did not want to be profiled: time alone. */
static void add_paused(struct reading *r, uint32_t labels, const int64_t *values)
{
	const struct csink_profile_range *set = &r->c->p->label_sets[labels];
	struct csink_profile_label copy[8];
	int64_t time[CSINK_MAX_EVENTS + 1];

	memcpy(time, values, sizeof(time));
	time[0] = 0;
	memcpy(copy, r->c->p->labels + set->first, set->nr * sizeof(*copy));
	csink_collect_pseudo(r->c, "paused", "[paused by the program]", NULL, copy, set->nr, time);
}

static void add_stack(struct reading *r, const struct csink_recorded_row *from, uint32_t labels, const int64_t *values)
{
	uint32_t stack[CSINK_MAX_DEPTH + 2], nr = callers_of(r, from, stack + 1);
	uint64_t time_ns = r->image->start_ns;

	if (from->node != CSINK_RECORDED_NONE)
		time_ns = r->rec->nodes[r->rec->nodes[from->node].root].pc;
	stack[nr + 1] = 0;
	if (from->phase == CSINK_PHASE_OFF) {
		add_paused(r, labels, values);
		return;
	}
	if (!from->leaf) {
		add_remainder(r, labels, stack + 1, values);
		return;
	}
	stack[0] = frame_location(r, from->leaf | CSINK_FRAME_EXACT, time_ns);
	if (!r->err)
		csink_profile_sample_add(r->c->p, csink_profile_stack_add(r->c->p, stack, nr + 1), labels, values);
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

	return row->phase ? phase_labels(r, base, row->phase) : base;
}

static void add_row(struct reading *r, const struct csink_recorded_row *from)
{
	int64_t values[CSINK_MAX_EVENTS + 1];
	uint32_t i, any = 0;

	row_values(r, from, values);
	for (i = 0; i < CSINK_MAX_EVENTS + 1; i++)
		any |= values[i] != 0;
	if (any) /* a timeline may have taken all of it */
		add_stack(r, from, row_labels(r, from), values);
}

/* ---- the timeline ---- */

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
	weight = without_stolen(r, row->thread, event, weight);
	values[r->types[event] + 1] = weight;
	if (!(r->rec->header.events[event].flags & CSINK_EVENT_OFF_CPU) && row->nr_samples) {
		row->nr_samples--;
		values[0] = 1;
	}
	if (r->types[event] == r->c->cpu_event)
		r->image->covered_cpu_ns = csink_add(r->image->covered_cpu_ns, weight);
	thread = row_labels(r, row); /* may move the sets */
	set = &r->c->p->label_sets[thread];
	memcpy(labels, r->c->p->labels + set->first, set->nr * sizeof(*labels));
	labels[set->nr] = (struct csink_profile_label){.key = csink_profile_str(r->c->p, CSINK_LABEL_TIME),
						       .num = r->rec->header.start_realtime_ns + time_ns -
							      r->rec->header.start_monotonic_ns,
						       .num_unit = csink_profile_str(r->c->p, "nanoseconds")};
	add_stack(r, row, csink_profile_labels_add(r->c->p, labels, set->nr + 1), values);
}

static void add_timeline(struct reading *r, const struct csink_rec_timeline *chunk)
{
	uint64_t time_ns = chunk->base_ns;

	for (uint32_t i = 0; i < chunk->nr && !r->err; i++) {
		time_ns += chunk->moments[i].delta_us * 1000ULL;
		add_moment(r, &chunk->moments[i], time_ns);
	}
}

/* ---- the rest of a recording ---- */

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
	int64_t values[CSINK_MAX_EVENTS + 1] = {header->losses[CSINK_LOSS_RECORDING_FULL]}, any = 0;
	struct csink_profile_label labels[2];
	uint32_t i;

	for (i = 0; i < header->nr_events; i++) {
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

/* Where the kernel lists the processes, they are named from that list, once each; before the end there is none yet. */
static void take_spawn(struct reading *r, const struct csink_rec_spawn *spawn)
{
	struct collector *c = r->c;

	if (!spawn->head.aux) /* withdrawn */
		return;
	if (!c->is_early && (!c->outside || !c->outside->processes))
		csink_collect_unprofiled(c, base_name(spawn->path), spawn->head.aux);
	else if (!CSINK_GROW(c->spawned, c->nr_spawned, c->cap_spawned))
		c->spawned[c->nr_spawned++] = (struct spawned){
			.pid = spawn->pid,
			.reason = spawn->head.aux,
			.became = spawn->pid == r->image->pid && r->image->is_last,
			.name = csink_profile_str(c->p, base_name(spawn->path)),
		};
}

static void take_texts(struct reading *r)
{
	const struct csink_rec_note *note;
	uint32_t i;

	for (i = 0; i < r->rec->nr_notes; i++) {
		note = r->rec->notes[i];
		csink_collect_tally(r->c, note->head.aux ? CSINK_FACT_WARNING : CSINK_FACT_NOTE, "%s", note->text);
	}
	for (i = 0; i < r->rec->nr_spawns; i++)
		take_spawn(r, r->rec->spawns[i]);
	if (r->rec->is_cut)
		csink_collect_tally(r->c, CSINK_FACT_WARNING,
				    "a recording was cut short: the end of what its process did is "
				    "missing");
	if (r->rec->nr_damaged)
		csink_collect_tally(r->c, CSINK_FACT_WARNING, "a recording is damaged: parts of it could not be read");
}

/* A rate that nobody could bear, and what became of it. */
static void take_rate(struct reading *r, const struct csink_rec_event *event, const struct csink_rec_rate *rate)
{
	const char *what = event->period ? "period raised" : "frequency lowered";

	if (!rate->asked)
		return;
	if (rate->throttled)
		csink_collect_tally(r->c, CSINK_FACT_WARNING,
				    "%s: %s from %" PRIu64 " to %" PRIu64 ": the kernel allows no more samples "
				    "(kernel.perf_event_max_sample_rate), and counts nothing between them",
				    event->name, what, rate->asked, rate->now);
	else
		csink_collect_tally(r->c, CSINK_FACT_WARNING,
				    "%s: %s from %" PRIu64 " to %" PRIu64 ": samples took more than %d %% of the time",
				    event->name, what, rate->asked, rate->now, CSINK_MAX_SHARE);
}

static void take_header(struct reading *r)
{
	static const char *const engines[] = {"none", "sigtrap", "signal", "timer", "from outside"};
	static const char *const unwinds[] = {"none: leaf functions only", "frame pointers", "libunwind", "dwarf"};
	const struct csink_rec_header *header = &r->rec->header;
	uint32_t i;

	csink_collect_tally(r->c, CSINK_FACT_ENGINE, "%s%s%s", engines[header->engine],
			    *header->engine_reason ? ": " : "", header->engine_reason);
	csink_collect_tally(r->c, CSINK_FACT_UNWIND, "%s%s%s", unwinds[header->unwind],
			    *header->unwind_reason ? ": " : "", header->unwind_reason);
	for (i = 0; i < header->nr_events; i++) {
		if (header->events[i].flags & CSINK_EVENT_REFUSED)
			csink_collect_tally(r->c, CSINK_FACT_REFUSED, "%s", header->events[i].name);
		/* A clock goes on in the kernel; only its samples cannot be taken there. */
		if (header->events[i].flags & CSINK_EVENT_USER_ONLY && header->events[i].flags & CSINK_EVENT_CPU_NS)
			csink_collect_tally(
				r->c, CSINK_FACT_NOTE,
				"time in the kernel is given to what runs after it: %s takes no samples there (%s)",
				header->events[i].name,
				header->events[i].flags & CSINK_EVENT_USER_ASKED ? "as asked" : "perf_event_paranoid");
		else if (header->events[i].flags & CSINK_EVENT_USER_ONLY &&
			 !(header->events[i].flags & CSINK_EVENT_USER_ASKED))
			csink_collect_tally(r->c, CSINK_FACT_USER_ONLY, "%s", header->events[i].name);
		take_rate(r, &header->events[i], &header->rates[i]);
		if (header->events[i].flags & CSINK_EVENT_SCALED)
			csink_collect_tally(r->c, CSINK_FACT_SCALED, "%s", header->events[i].name);
	}
	for (i = 0; i < CSINK_NR_LOSSES; i++)
		r->c->losses[i] += header->losses[i];
	r->image->nr_threads += r->rec->nr_threads;
}

static int prepare(struct reading *r)
{
	int err = csink_epochs_build(&r->epochs, r->rec);

	if (err == -E2BIG) {
		csink_collect_tally(r->c, CSINK_FACT_WARNING,
				    "a recording has modules that lie over each other without end: "
				    "its addresses are not named");
		err = 0; /* an empty index finds nothing */
	}
	r->modules = calloc(r->rec->nr_modules + 1, sizeof(*r->modules));
	r->locations = calloc(r->rec->nr_nodes + 1, sizeof(*r->locations));
	r->labels = calloc(r->rec->nr_threads + 1, sizeof(*r->labels));
	r->cache = calloc(CACHE_SLOTS, sizeof(*r->cache));
	if (err || !r->modules || !r->locations || !r->labels || !r->cache)
		return -ENOMEM;
	return 0;
}

/* The program itself comes first: readers of pprof files take the first mapping for it. */
static void take_program(struct reading *r)
{
	uint32_t i;

	for (i = 0; i < r->rec->nr_modules; i++) {
		if (!strcmp(r->rec->modules[i]->path, r->rec->header.exe)) {
			r->modules[i] = find_module(r->c, r->rec->modules[i], r->image->pid);
			return;
		}
	}
}

int csink_collect_recording(struct collector *c, struct image *image, const struct csink_recorded *rec)
{
	struct reading r = {.c = c, .image = image, .rec = rec};
	uint32_t i;

	r.err = prepare(&r);
	map_types(&r);
	if (!r.err && !c->nr_modules)
		take_program(&r);
	csink_profile_expect(c->p, rec->nr_rows);
	for (i = 0; i < rec->nr_timelines && !r.err && !csink_profile_error(c->p); i++)
		add_timeline(&r, rec->timelines[i]);
	for (i = 0; i < rec->nr_rows && !r.err && !csink_profile_error(c->p); i++)
		add_row(&r, &rec->rows[i]);
	if (!r.err) {
		add_unstored(&r);
		take_texts(&r);
		take_header(&r);
	}
	csink_epochs_release(&r.epochs);
	free(r.modules);
	free(r.locations);
	free(r.labels);
	free(r.cache);
	return r.err ? r.err : csink_profile_error(c->p);
}
