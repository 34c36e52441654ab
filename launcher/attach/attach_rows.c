/* Samples added up by thread and stack (images.h), and written as recordings. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/attach/images.h"
#include "launcher/base/hash.h"
#include "launcher/base/roots.h"
#include "launcher/base/search.h"
#include "preload/core/record/recording.h"
#include "preload/core/record/stacks.h"

#define RECORDING_BYTES CSINK_REC_MAX_BYTES

/*
 * Samples of a program with the library, which may have come before the loader called the library, are distinguished
 * by moments until it is known when that was. Of the first, each is a moment of its own: half a second at 1 kHz. Then a
 * moment has a 32nd to a 64th of the samples before it, so that rows stay few: sixteen seconds are 672 moments.
 */
#define SINGLE_MOMENTS 512U
#define MOMENT_SAMPLES (SINGLE_MOMENTS / 32)
#define MOMENT_DOUBLINGS 5

/* ---- chains ---- */

static uint32_t hash_frames(const uint64_t *frames, uint32_t nr, uint16_t flags)
{
	struct csink_hash h = csink_hash_begin();

	csink_hash_word(&h, (uint64_t)nr << 16 | flags);
	for (uint32_t i = 0; i < nr; i++)
		csink_hash_word(&h, frames[i]);
	return (uint32_t)csink_hash_end(&h);
}

static bool same_chain(const struct csink_attach_images *images, uint32_t id, const uint64_t *frames, uint32_t nr,
		       uint16_t flags)
{
	const struct csink_attach_chain *chain = &images->chains[id - 1];

	return chain->nr == nr && chain->flags == flags &&
	       (!nr || !memcmp(images->frames + chain->first, frames, nr * sizeof(*frames)));
}

/* Returns the chain's number + 1; 0 without memory. */
static uint32_t add_chain(struct csink_attach_images *images, const uint64_t *frames, uint32_t nr, uint16_t flags)
{
	if (CSINK_GROW(images->chains, images->nr_chains, images->cap_chains) ||
	    CSINK_GROW_TO(images->frames, images->cap_frames, (uint64_t)images->nr_frames + nr))
		return 0;
	if (nr) /* without callers there may be no room at all yet */
		memcpy(images->frames + images->nr_frames, frames, nr * sizeof(*frames));
	images->chains[images->nr_chains++] = (struct csink_attach_chain){images->nr_frames, nr, flags};
	images->nr_frames += nr;
	return images->nr_chains;
}

/* ---- rows ---- */

static uint32_t hash_row(const struct csink_attach_row *row)
{
	struct csink_hash h = csink_hash_begin();

	csink_hash_word(&h, row->leaf);
	csink_hash_word(&h, (uint64_t)row->image << 32 | row->chain);
	csink_hash_word(&h, (uint64_t)row->thread << 32 | (uint32_t)(row->epoch << 1 | row->is_injected));
	csink_hash_word(&h, (uint64_t)row->is_by_cpu << 32 | row->moment);
	return (uint32_t)csink_hash_end(&h);
}

static bool same_row(const struct csink_attach_row *a, const struct csink_attach_row *b)
{
	return a->leaf == b->leaf && a->chain == b->chain && a->image == b->image && a->thread == b->thread &&
	       a->epoch == b->epoch && a->is_injected == b->is_injected && a->is_by_cpu == b->is_by_cpu &&
	       a->moment == b->moment;
}

/* Returns the row's number + 1; 0 without memory. */
static uint32_t add_row(struct csink_attach_images *images, const struct csink_attach_row *like)
{
	uint32_t id = CSINK_APPEND(images->rows, images->nr_rows, images->cap_rows, *like);

	images->at[like->image]->nr_rows += id != 0;
	images->at[like->image]->nr_own_rows += id && !like->is_by_cpu;
	return id;
}

/* The row of a sample; added where there is none. NULL: no memory. */
static struct csink_attach_row *row_get(struct csink_attach_images *images, struct csink_attach_row like,
					const uint64_t *frames, uint32_t nr_frames, uint16_t flags)
{
	uint32_t chain, row = 0;

	chain = CSINK_TABLE_INTERN(images->chain_index, hash_frames(frames, nr_frames, flags),
				   same_chain(images, id, frames, nr_frames, flags),
				   add_chain(images, frames, nr_frames, flags));
	like.chain = chain - 1;
	if (chain)
		row = CSINK_TABLE_INTERN(images->row_index, hash_row(&like), same_row(&images->rows[id - 1], &like),
					 add_row(images, &like));
	images->no_memory |= !row;
	return row ? &images->rows[row - 1] : NULL;
}

/* The moment of a sample of a program with the library, from its number on; 0: the library has long begun. */
static uint32_t moment_of(uint32_t number)
{
	uint32_t doublings = 0;

	if (number < SINGLE_MOMENTS)
		return number + 1;
	while (number >> doublings >= 2 * SINGLE_MOMENTS)
		doublings++;
	if (doublings >= MOMENT_DOUBLINGS)
		return 0;
	return 1 + SINGLE_MOMENTS + doublings * SINGLE_MOMENTS / MOMENT_SAMPLES +
	       ((number >> doublings) - SINGLE_MOMENTS) / MOMENT_SAMPLES;
}

void csink_attach_images_add(struct csink_attach_images *images, const struct csink_attach_living *thread,
			     const struct csink_attach_stack *stack, const uint64_t *weights, uint64_t time_ns)
{
	struct csink_attach_image *image = images->at[thread->image];
	struct csink_attach_row like = {.image = thread->image,
					.thread = thread->thread,
					.epoch = image->epoch,
					.is_injected = image->is_injected,
					.is_by_cpu = stack->is_by_cpu,
					.leaf = stack->leaf,
					.first_ns = time_ns};
	struct csink_attach_row *row;

	if (image->is_injected && (like.moment = moment_of(image->nr_in_moments)))
		image->nr_in_moments++;
	row = row_get(images, like, stack->frames, stack->nr_frames, stack->flags);
	image->end_ns = CSINK_MAX(image->end_ns, time_ns);
	if (!row) {
		image->losses[CSINK_LOSS_RECORDING_FULL]++;
		return;
	}
	row->nr_samples++;
	row->last_ns = CSINK_MAX(row->last_ns, time_ns);
	image->nr_own_samples += !stack->is_by_cpu;
	image->threads[thread->thread].nr_samples++;
	for (uint32_t i = 0; i < CSINK_MAX_EVENTS; i++) {
		row->weights[i] += weights[i];
		image->threads[thread->thread].totals[i] += weights[i];
	}
}

void csink_attach_images_remove(struct csink_attach_images *images,
				bool (*is_removed)(void *arg, const struct csink_attach_row *row), void *arg)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < images->nr_rows; i++) {
		const struct csink_attach_row *row = &images->rows[i];

		if (is_removed(arg, row)) {
			images->at[row->image]->nr_rows--;
			images->at[row->image]->nr_own_rows -= !row->is_by_cpu;
		} else {
			images->rows[kept++] = *row;
		}
	}
	images->nr_rows = kept; /* nothing is added any more */
}

/* When the library began to sample an image; UINT64_MAX: never, or not known. */
static uint64_t start_of(const struct csink_attach_image *image, const struct csink_attach_starts *starts)
{
	uint32_t first = CSINK_LOWER(starts->nr, i,
				     starts->at[i].pid < image->pid || (starts->at[i].pid == image->pid &&
									starts->at[i].start_ns < image->start_ns));
	const struct csink_collect_start *start = &starts->at[first];

	return first < starts->nr && start->pid == image->pid && start->start_ns <= image->end_ns ? start->start_ns
												  : UINT64_MAX;
}

void csink_attach_images_settle(struct csink_attach_images *images, const struct csink_attach_starts *starts)
{
	for (uint32_t i = 0; i < images->nr_rows && starts->nr; i++) {
		struct csink_attach_row *row = &images->rows[i];
		uint64_t start_ns = row->moment ? start_of(images->at[row->image], starts) : UINT64_MAX;

		if (start_ns != UINT64_MAX && row->last_ns < start_ns)
			row->is_injected = false;
	}
}

/* ---- recordings ---- */

struct saving {
	const struct csink_attach_images *images;
	const struct csink_attach_image *image;
	uint32_t number;
	struct csink_recording rec;
	struct csink_writer writer;
	csink_ref_t *threads;
	const struct csink_attach_codes *from_codes; /* NULL: none */
	csink_ref_t *codes;                          /* by id; 0: not written yet */
	csink_ref_t *chains;                         /* of the present epoch; 0: not written yet */
	uint32_t epoch;
	uint64_t epoch_ns; /* when its first sample was */
	struct csink_stack_memo memo;
};

static int save_modules(struct saving *s)
{
	for (uint32_t i = 0; i < s->image->nr_mappings; i++) {
		const struct csink_attach_mapping *mapping = &s->image->mappings[i];
		struct csink_rec_module *module;
		char path[CSINK_ROOT_BYTES + PATH_MAX];
		size_t path_len;
		uint32_t bytes;

		csink_attach_object_place(mapping->object, path, sizeof(path));
		path_len = strlen(path);
		bytes = (uint32_t)(sizeof(*module) + path_len + 1);
		module = csink_recording_reserve(&s->rec, &s->writer, bytes);
		if (!module)
			return -ENOSPC;
		module->bias = mapping->bias;
		module->start = mapping->start;
		module->end = mapping->end;
		module->file_offset = mapping->offset;
		module->load_ns = mapping->load_ns;
		module->unload_ns = mapping->unload_ns;
		module->is_vdso = mapping->object->is_vdso && !mapping->object->memory; /* ours */
		module->build_id_len = mapping->object->build_id_len;
		memcpy(module->build_id, mapping->object->build_id, sizeof(module->build_id));
		module->path_len = (uint16_t)path_len;
		memcpy(module->path, path, path_len + 1);
		csink_recording_commit(module, bytes, CSINK_ENTRY_MODULE, 0);
	}
	return 0;
}

static int save_threads(struct saving *s)
{
	for (uint32_t i = 0; i < s->image->nr_threads; i++) {
		const struct csink_attach_thread *from = &s->image->threads[i];
		struct csink_rec_thread *thread = csink_recording_reserve(&s->rec, &s->writer, sizeof(*thread));

		if (!thread)
			return -ENOSPC;
		thread->tid = from->tid;
		thread->flags =
			(from->tid == s->image->pid ? CSINK_THREAD_MAIN : 0) | (from->end_ns ? CSINK_THREAD_ENDED : 0);
		thread->engine = CSINK_ENGINE_OUTSIDE;
		memcpy(thread->name, from->name, sizeof(thread->name));
		thread->nr_samples = from->nr_samples;
		memcpy(thread->totals, from->totals, sizeof(thread->totals));
		csink_recording_commit(thread, sizeof(*thread), CSINK_ENTRY_THREAD, 0);
		s->threads[i] = csink_recording_ref(&s->rec, thread);
	}
	return 0;
}

static csink_ref_t save_code(struct saving *s, uint32_t id)
{
	const struct csink_attach_code *from = &s->from_codes->at[id - 1];
	uint32_t bytes = (uint32_t)sizeof(struct csink_rec_code) + from->nr_names + from->nr_table;
	struct csink_rec_code *code = csink_recording_reserve(&s->rec, &s->writer, bytes);

	if (!code)
		return 0;
	code->first_line = from->first_line;
	code->nr_names = from->nr_names;
	code->nr_table = from->nr_table;
	code->lacks_table = from->lacks_table;
	memcpy(code->text, from->text, (size_t)from->nr_names + from->nr_table);
	csink_recording_commit(code, bytes, CSINK_ENTRY_CODE, from->kind);
	return csink_recording_ref(&s->rec, code);
}

/* A frame as the recording has it: with a reference for the id of its function. */
static uint64_t recorded_frame(struct saving *s, uint64_t frame)
{
	uint32_t id = (uint32_t)(frame >> 32 & ((CSINK_FRAME_CODE >> 32) - 1));

	if (!(frame & CSINK_FRAME_CODE) || !id || id > s->from_codes->nr)
		return frame;
	if (!s->codes[id])
		s->codes[id] = save_code(s, id);
	return (frame & ~((CSINK_FRAME_CODE - 1) & ~(uint64_t)UINT32_MAX)) | (uint64_t)s->codes[id] << 32;
}

static csink_ref_t save_chain(struct saving *s, const struct csink_attach_row *row)
{
	uint64_t frames[CSINK_MAX_DEPTH];
	const struct csink_attach_chain *from = &s->images->chains[row->chain];
	struct csink_sample sample = {.nr_frames = from->nr,
				      .chain_flags = from->flags,
				      .epoch_ns = s->epoch_ns,
				      .frames = frames,
				      .memo = &s->memo};

	for (uint32_t i = 0; i < from->nr; i++)
		frames[i] = recorded_frame(s, s->images->frames[from->first + i]);
	return csink_stacks_node(&s->rec, &s->writer, &sample);
}

static int save_row(struct saving *s, const struct csink_attach_row *from)
{
	uint32_t bytes = (uint32_t)(sizeof(struct csink_rec_row) + s->rec.header->nr_events * sizeof(uint64_t));
	struct csink_rec_row *row;

	if (from->epoch != s->epoch) {
		memset(s->chains, 0, s->images->nr_chains * sizeof(*s->chains));
		s->epoch = from->epoch;
		s->epoch_ns = from->first_ns;
	}
	if (!s->chains[from->chain])
		s->chains[from->chain] = save_chain(s, from);
	row = s->chains[from->chain] ? csink_recording_reserve(&s->rec, &s->writer, bytes) : NULL;
	if (!row)
		return -ENOSPC;
	row->thread = s->threads[from->thread];
	row->node = s->chains[from->chain];
	row->leaf = from->leaf;
	row->nr_samples = from->nr_samples;
	memcpy(row->weights, from->weights, s->rec.header->nr_events * sizeof(uint64_t));
	csink_recording_commit(row, bytes, CSINK_ENTRY_ROW, from->is_injected ? CSINK_PHASE_INJECTED : 0);
	return 0;
}

/* CPU time that samples have, but for those that the library may have taken as well. */
static uint64_t sampled_ns(const struct csink_rec_header *head, const struct csink_attach_row *const *rows,
			   uint64_t nr_rows)
{
	uint64_t sum = 0;
	uint32_t event = 0;

	while (event < head->nr_events && !(head->events[event].flags & CSINK_EVENT_CPU_NS))
		event++;
	for (uint64_t i = 0; i < nr_rows && event < head->nr_events; i++)
		sum += rows[i]->is_injected ? 0 : rows[i]->weights[event];
	return sum;
}

static void save_head(const struct saving *s, const struct csink_rec_header *head)
{
	struct csink_rec_header *to = s->rec.header;
	struct timespec real, mono;
	uint32_t more = 0; /* what is to be known of the CPU time */

	to->nr_events = head->nr_events;
	memcpy(to->events, head->events, sizeof(to->events));
	more |= s->image->nr_own_rows ? 0 : CSINK_EVENT_BY_CPU;
	more |= s->image->is_left_out ? CSINK_EVENT_NOT_FOLLOWED : 0;
	for (uint32_t i = 0; i < to->nr_events; i++)
		to->events[i].flags |= to->events[i].flags & CSINK_EVENT_CPU_NS ? more : 0;
	to->engine = head->engine;
	to->unwind = head->unwind;
	memcpy(to->engine_reason, head->engine_reason, sizeof(to->engine_reason));
	memcpy(to->unwind_reason, head->unwind_reason, sizeof(to->unwind_reason));
	to->state = s->image->state;
	to->pid = s->image->pid;
	to->ppid = s->image->ppid;
	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	to->start_monotonic_ns = s->image->start_ns;
	to->end_monotonic_ns = s->image->end_ns;
	to->start_realtime_ns = ((uint64_t)real.tv_sec * CSINK_NS_PER_S + (uint64_t)real.tv_nsec) -
				((uint64_t)mono.tv_sec * CSINK_NS_PER_S + (uint64_t)mono.tv_nsec) + s->image->start_ns;
	memcpy(to->losses, s->image->losses, sizeof(to->losses));
	memcpy(to->comm, s->image->comm, sizeof(to->comm));
	memcpy(to->exe, s->image->exe, sizeof(to->exe));
	memcpy(to->cmdline, s->image->cmdline, sizeof(to->cmdline));
	memcpy(to->rank_values, s->image->rank_values, sizeof(to->rank_values));
}

/* rows: those of the image, in order of their epochs. */
static int save_image(struct saving *s, const char *directory, const struct csink_rec_header *head,
		      const struct csink_attach_row *const *rows, uint64_t nr_rows)
{
	int err = csink_recording_create(&s->rec, directory, RECORDING_BYTES);

	if (err)
		return err;
	s->writer = (struct csink_writer){0, 0};
	s->threads = calloc(s->image->nr_threads + 1, sizeof(*s->threads));
	s->epoch = UINT32_MAX;
	csink_stacks_reset();
	csink_stack_memo_reset(&s->memo);
	save_head(s, head);
	s->rec.header->cpu_end_ns = sampled_ns(head, rows, nr_rows);
	s->codes = calloc((s->from_codes ? s->from_codes->nr : 0) + 1UL, sizeof(*s->codes));
	err = s->threads && s->codes ? 0 : -ENOMEM;
	if (!err && !s->image->is_left_out)
		err = save_modules(s);
	if (!err)
		err = save_threads(s);
	for (uint64_t i = 0; !err && i < nr_rows; i++)
		err = save_row(s, rows[i]);
	csink_recording_close(&s->rec);
	free(s->threads);
	free(s->codes);
	return err;
}

static int by_image(const void *a, const void *b)
{
	const struct csink_attach_row *x = *(const struct csink_attach_row *const *)a,
				      *y = *(const struct csink_attach_row *const *)b;

	return CSINK_COMPARE(x->image, y->image)
		       ?: CSINK_COMPARE(x->epoch, y->epoch) ?: CSINK_COMPARE(x->first_ns, y->first_ns);
}

int csink_attach_images_save(const struct csink_attach_images *images, const char *directory,
			     const struct csink_rec_header *head, const struct csink_attach_codes *codes)
{
	CSINK_AUTO_FREE const struct csink_attach_row **rows = malloc((images->nr_rows + 1) * sizeof(*rows));
	struct saving s = {
		.images = images, .from_codes = codes, .chains = malloc((images->nr_chains + 1) * sizeof(*s.chains))};
	uint32_t first = 0;
	int err = rows && s.chains ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < images->nr_rows; i++)
		rows[i] = &images->rows[i];
	if (!err)
		qsort(rows, images->nr_rows, sizeof(*rows), by_image);
	while (!err && first < images->nr_rows) {
		s.number = rows[first]->image;
		s.image = images->at[s.number];
		err = save_image(&s, directory, head, rows + first, s.image->nr_rows);
		first += (uint32_t)s.image->nr_rows;
	}
	free(s.chains);
	return err;
}
