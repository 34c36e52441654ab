/*
 * The list of processes that an attach follows, from fork to exec to exit, and their samples by thread and stack;
 * images_proc.c reads /proc for it. See images.h. Runs in the attach command's one thread.
 */
#include "launcher/attach/images_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/base/proc.h"
#include "preload/core/preload_entry.h"

#define NO_IMAGE UINT32_MAX

/* Make room for one more. False: no memory, which is remembered. */
static bool room(struct csink_attach_images *images, void *array, uint32_t nr, uint32_t *cap, size_t size)
{
	if (!csink_grow_room(array, cap, (uint64_t)nr + 1, size))
		return true;
	images->no_memory = true;
	return false;
}

/* ---- the owner of a TID ---- */

/* The place of a number; made where there is none. Valid until the next one is made. */
static struct csink_attach_living *living_get(struct csink_attach_images *images, int32_t tid)
{
	uint32_t number = CSINK_TABLE_INTERN(images->living_index, csink_hash_number((uint32_t)tid),
					     images->living[id - 1].tid == tid,
					     CSINK_APPEND(images->living, images->nr_living, images->cap_living,
							  (struct csink_attach_living){.tid = tid, .image = NO_IMAGE}));

	images->no_memory |= !number;
	return number ? &images->living[number - 1] : NULL;
}

static struct csink_slot *latest_slot(const struct csink_attach_images *images, int32_t pid)
{
	uint32_t hash = csink_hash_number((uint32_t)pid);
	struct csink_slot *slot;

	CSINK_TABLE_PROBE(images->latest_index, hash, slot, images->at[id - 1]->pid == pid);
	return slot;
}

/* The latest: an exec or a new owner of the PID comes later. */
static struct csink_attach_image *image_of(const struct csink_attach_images *images, int32_t pid, uint32_t *number)
{
	uint32_t id = images->nr ? latest_slot(images, pid)->id : 0;

	if (!id)
		return NULL;
	*number = id - 1;
	return images->at[*number];
}

/* ---- images and threads ---- */

struct csink_attach_image *csink_attach_image_new(struct csink_attach_images *images, int32_t pid, uint64_t time_ns,
						  uint32_t *number)
{
	struct csink_attach_image *image = NULL;

	if (!csink_table_room(&images->latest_index) &&
	    room(images, &images->at, images->nr, &images->cap, sizeof(*images->at)))
		image = calloc(1, sizeof(*image));
	if (!image) {
		images->no_memory = true;
		return NULL;
	}
	image->pid = pid;
	image->state = CSINK_REC_LIVE;
	image->start_ns = image->end_ns = time_ns;
	*number = images->nr;
	images->at[images->nr++] = image;
	csink_table_set(&images->latest_index, latest_slot(images, pid), csink_hash_number((uint32_t)pid), images->nr);
	return image;
}

struct csink_attach_living *csink_attach_thread_new(struct csink_attach_images *images, uint32_t number, int32_t tid,
						    const char *name, uint64_t time_ns)
{
	struct csink_attach_image *image = images->at[number];
	struct csink_attach_living *living = living_get(images, tid);

	if (!living || !room(images, &image->threads, image->nr_threads, &image->cap_threads, sizeof(*image->threads)))
		return NULL;
	image->threads[image->nr_threads] = (struct csink_attach_thread){.tid = tid, .start_ns = time_ns};
	snprintf(image->threads[image->nr_threads].name, sizeof(image->threads[0].name), "%.15s", name);
	living->image = number;
	living->thread = image->nr_threads++;
	living->owner = ++images->nr_owners;
	living->source = 0;
	image->nr_living++;
	images->nr_threads++;
	return living;
}

bool csink_attach_is_object(const char *path)
{
	return !strcmp(path, "[vdso]") || (path[0] == '/' && path[1] != '/' && strncmp(path, "/memfd:", 7) &&
					   strncmp(path, "/dev/", 5) && strncmp(path, "/SYSV", 5));
}

/*
 * At exec the other threads end, and the remaining thread takes the main thread's TID, before the record of the exec;
 * its counters continue. If the owner of this TID has ended, returns the owner of that remaining thread, whose old TID
 * has no owner any more; 0: no thread is left.
 */
static uint32_t take_over(struct csink_attach_images *images, uint32_t number)
{
	struct csink_attach_image *image = images->at[number];
	struct csink_attach_living *living, *left = NULL;
	uint32_t nr_left = 0;

	for (uint32_t i = 0; i < image->nr_threads; i++) {
		living = living_get(images, image->threads[i].tid);
		if (!living || living->image != number || living->thread != i)
			continue;
		left = living;
		nr_left++;
	}
	if (nr_left != 1)
		return 0;
	left->image = NO_IMAGE;
	image->nr_living--;
	return left->owner;
}

/* ---- records of the kernel ---- */

/*
 * Is the number of a process that has ended another one's by now? An exec that changes credentials ends the events as
 * an end does: its process goes on, and a control group's events have its samples. Where no process has the number
 * when this is asked, it is taken for another one's: by the records its process has ended.
 */
static bool is_anothers(struct csink_attach_image *image, uint64_t time_ns)
{
	if (image->state != CSINK_REC_EXITED || image->goes_on || csink_attach_is_near(image->end_ns, time_ns))
		return false;
	image->goes_on = csink_proc_was_there(image->pid, image->end_ns);
	image->first_has_ended &= !image->goes_on;
	return !image->goes_on;
}

/* The latest image of the process that has the number then. */
static struct csink_attach_image *image_then(const struct csink_attach_images *images, int32_t pid, uint64_t time_ns,
					     uint32_t *number)
{
	struct csink_attach_image *image = image_of(images, pid, number);

	return image && !is_anothers(image, time_ns) ? image : NULL;
}

struct csink_attach_living *csink_attach_images_thread(struct csink_attach_images *images, int32_t pid, int32_t tid,
						       uint64_t time_ns)
{
	struct csink_attach_living *living = living_get(images, tid);
	struct csink_attach_image *image;
	uint32_t number, owner;

	if (!living)
		return NULL;
	image = living->image == NO_IMAGE ? NULL : images->at[living->image];
	if (image && image->pid == pid && !is_anothers(image, time_ns))
		return living;
	image = image_then(images, pid, time_ns, &number);
	if (!image && csink_attach_images_take(images, pid, time_ns)) {
		image = image_of(images, pid, &number);
		image->lacks_start = true;
		living = living_get(images, tid);
		if (!living || living->image == number)
			return living;
	}
	if (!image) { /* it has ended, or /proc cannot be read */
		image = csink_attach_image_new(images, pid, time_ns, &number);
		if (!image)
			return NULL;
		image->lacks_start = true;
		images->nr_processes++;
	}
	owner = tid == pid ? take_over(images, number) : 0;
	living = csink_attach_thread_new(images, number, tid, image->comm, time_ns);
	if (living && owner) {
		living->owner = owner;
		images->nr_threads--; /* the same one */
	}
	return living;
}

const struct csink_attach_living *csink_attach_images_known(struct csink_attach_images *images, int32_t pid,
							    int32_t tid)
{
	const struct csink_slot *slot;
	const struct csink_attach_living *living;

	if (!images->nr_living)
		return NULL;
	CSINK_TABLE_PROBE(images->living_index, csink_hash_number((uint32_t)tid), slot,
			  images->living[id - 1].tid == tid);
	living = slot->id ? &images->living[slot->id - 1] : NULL;
	return living && living->image != NO_IMAGE && images->at[living->image]->pid == pid ? living : NULL;
}

static bool copy_mappings(struct csink_attach_images *images, struct csink_attach_image *to,
			  const struct csink_attach_image *from)
{
	for (uint32_t i = 0; i < from->nr_mappings; i++) {
		if (from->mappings[i].unload_ns)
			continue;
		if (!room(images, &to->mappings, to->nr_mappings, &to->cap_mappings, sizeof(*to->mappings)))
			return false;
		to->mappings[to->nr_mappings++] = from->mappings[i];
	}
	return true;
}

void csink_attach_images_fork(struct csink_attach_images *images, int32_t pid, int32_t ppid, int32_t tid,
			      uint64_t time_ns)
{
	struct csink_attach_image *image, *parent;
	uint32_t number, parent_number;

	if (pid == ppid) {
		image = image_then(images, pid, time_ns, &number);
		/* Taken from /proc a moment before its record came. */
		if (image && !(living_get(images, tid) && living_get(images, tid)->image == number))
			csink_attach_thread_new(images, number, tid, image->comm, time_ns);
		return;
	}
	image = image_of(images, pid, &number);
	if (image && image->state == CSINK_REC_LIVE && image->start_ns <= time_ns && image->nr_living)
		return;
	parent = image_then(images, ppid, time_ns, &parent_number);
	image = csink_attach_image_new(images, pid, time_ns, &number);
	if (!image)
		return;
	images->nr_processes++;
	image->ppid = ppid;
	if (parent) {
		memcpy(image->comm, parent->comm, sizeof(image->comm));
		memcpy(image->exe, parent->exe, sizeof(image->exe));
		memcpy(image->cmdline, parent->cmdline, sizeof(image->cmdline));
		memcpy(image->rank_values, parent->rank_values, sizeof(image->rank_values));
		memcpy(image->root, parent->root, sizeof(image->root));
		image->is_injected = parent->is_injected;
		copy_mappings(images, image, parent);
	}
	csink_attach_thread_new(images, number, tid, image->comm, time_ns);
}

/* Two events that a thread has inherited report the same exec, one after the other. */
static bool is_reported_again(const struct csink_attach_image *image, const char *comm, uint64_t time_ns)
{
	return image->is_exec && !image->has_mapped && csink_attach_is_near(image->start_ns, time_ns) &&
	       !strncmp(image->comm, comm, sizeof(image->comm) - 1);
}

/* The image that its process has had until its exec. */
static void replace_image(struct csink_attach_image *former, uint64_t time_ns)
{
	former->state = CSINK_REC_EXECED;
	former->end_ns = time_ns;
	for (uint32_t i = 0; i < former->nr_threads; i++) {
		if (!former->threads[i].end_ns)
			former->threads[i].end_ns = time_ns;
	}
}

/*
 * The kernel starts events that wait for an exec a moment before it writes the record of it. Samples that came so short
 * a time before the record, none of them in user space, are of the new program.
 */
static bool is_sampled_before_record(const struct csink_attach_image *image, uint64_t time_ns)
{
	return image->lacks_start && !image->has_run && image->state == CSINK_REC_LIVE &&
	       csink_attach_is_near(image->start_ns, time_ns);
}

static void begin_at_record(struct csink_attach_images *images, struct csink_attach_image *image, const char *comm,
			    uint64_t time_ns)
{
	const struct csink_attach_living *living = csink_attach_images_thread(images, image->pid, image->pid, time_ns);

	image->start_ns = CSINK_MIN(image->start_ns, time_ns);
	image->is_exec = true;
	image->lacks_start = image->has_mapped = image->is_injected = false;
	image->nr_mappings = image->last_mapping = 0; /* their records follow */
	csink_attach_copy_comm(image->comm, comm);
	if (!image->ppid)
		csink_attach_image_read_place(image);
	csink_attach_image_read_names(image); /* during the exec they were not all there */
	if (living)
		csink_attach_copy_comm(image->threads[living->thread].name, comm);
}

void csink_attach_images_exec(struct csink_attach_images *images, int32_t pid, const char *comm, uint64_t time_ns,
			      bool at_exec)
{
	struct csink_attach_living *living = NULL, before = {.image = NO_IMAGE};
	struct csink_attach_image *image, *former;
	uint32_t number;

	former = image_then(images, pid, time_ns, &number);
	if (former && is_reported_again(former, comm, time_ns))
		return;
	if (former && at_exec && is_sampled_before_record(former, time_ns)) {
		begin_at_record(images, former, comm, time_ns);
		return;
	}
	if (former)
		living = csink_attach_images_thread(images, pid, pid, time_ns);
	if (former && !living)
		return;
	if (former) {
		before = *living; /* its counters continue */
		replace_image(former, time_ns);
		images->nr_threads--; /* the same one */
	}
	image = csink_attach_image_new(images, pid, time_ns, &number);
	if (!image)
		return;
	image->is_exec = true;
	if (former) {
		image->ppid = former->ppid;
		memcpy(image->root, former->root, sizeof(image->root));
	} else { /* of what counts from its exec on, this is the first record */
		csink_attach_image_read_place(image);
		images->nr_processes++;
	}
	csink_attach_copy_comm(image->comm, comm);
	csink_attach_image_read_names(image);
	living = csink_attach_thread_new(images, number, pid, comm, time_ns);
	if (living && former) {
		living->owner = before.owner;
		living->source = before.source;
	}
}

void csink_attach_images_comm(struct csink_attach_images *images, int32_t pid, int32_t tid, const char *comm,
			      uint64_t time_ns)
{
	struct csink_attach_living *living = csink_attach_images_thread(images, pid, tid, time_ns);

	if (!living)
		return;
	csink_attach_copy_comm(images->at[living->image]->threads[living->thread].name, comm);
	if (tid == pid)
		csink_attach_copy_comm(images->at[living->image]->comm, comm);
}

void csink_attach_images_exit(struct csink_attach_images *images, int32_t pid, int32_t tid, uint64_t time_ns)
{
	struct csink_attach_living *living = living_get(images, tid);
	struct csink_attach_image *image;
	uint32_t number;

	/* The end of the process, be it with a thread that has had no sample since its events ended; others may go on.
	 */
	image = tid == pid ? image_of(images, pid, &number) : NULL;
	if (image)
		image->first_has_ended = true;
	if (image && image->nr_living <= (living && living->image == number))
		image->goes_on = false;
	if (!living || living->image == NO_IMAGE || images->at[living->image]->pid != pid)
		return;
	image = images->at[living->image];
	image->threads[living->thread].end_ns = time_ns;
	living->image = NO_IMAGE;
	image->end_ns = time_ns;
	if (!image->nr_living || --image->nr_living)
		return;
	image->state = CSINK_REC_EXITED;
	if (image->first_has_ended)
		image->goes_on = false;
}

void csink_attach_images_note_going_on(struct csink_attach_images *images, int32_t pid)
{
	uint32_t number;
	struct csink_attach_image *image = image_of(images, pid, &number);

	if (!image)
		return;
	image->goes_on = true;
	image->first_has_ended = false;
}

void csink_attach_images_note_source(struct csink_attach_images *images, int32_t pid, uint32_t source)
{
	uint32_t number;
	struct csink_attach_image *image = source ? image_of(images, pid, &number) : NULL;

	if (image && (!image->source || source < image->source))
		image->source = source;
}

uint32_t csink_attach_images_source_of(const struct csink_attach_images *images, int32_t pid)
{
	uint32_t number;
	const struct csink_attach_image *image = image_of(images, pid, &number);

	return image && image->state == CSINK_REC_LIVE ? image->source : 0;
}

bool csink_attach_images_has_ended(const struct csink_attach_images *images, int32_t pid)
{
	uint32_t number;
	const struct csink_attach_image *image = image_of(images, pid, &number);

	return image && image->state == CSINK_REC_EXITED;
}

bool csink_attach_images_has_program(const struct csink_attach_images *images, int32_t pid, uint64_t since_ns)
{
	uint32_t number;
	const struct csink_attach_image *image = image_of(images, pid, &number);

	return image && image->is_exec && image->start_ns >= since_ns && image->nr_mappings;
}

void csink_attach_images_map(struct csink_attach_images *images, int32_t pid, uint64_t start, uint64_t bytes,
			     uint64_t offset, const char *path, uint64_t time_ns)
{
	struct csink_attach_mapping mapping = {
		.start = start, .end = start + bytes, .offset = offset, .load_ns = time_ns};
	struct csink_attach_image *image;
	uint32_t number;

	image = image_of(images, pid, &number);
	if (!image)
		return;
	image->has_mapped = true;
	image->is_injected |= !strcmp(csink_base_name(path), CSINK_LIBRARY);
	if (!strcmp(path, "[vdso]"))
		mapping.object = csink_attach_objects_get_vdso(&images->objects, pid, start, bytes);
	else if (csink_attach_is_object(path))
		mapping.object = csink_attach_objects_get(&images->objects, pid, image->root, path);
	for (uint32_t i = 0; i < image->nr_mappings; i++) {
		struct csink_attach_mapping *old = &image->mappings[i];

		if (old->unload_ns || old->end <= start || old->start >= mapping.end)
			continue;
		if (old->start == start && old->end == mapping.end && old->object == mapping.object)
			return; /* known from /proc and from a record */
		old->unload_ns = time_ns;
		image->epoch++;
	}
	/* Code in a file that is no object was made at run time: its names are in a map, if anywhere. */
	if (!mapping.object || mapping.object->is_other)
		return;
	mapping.bias = csink_attach_object_bias(mapping.object, start, offset);
	if (images->on_object)
		images->on_object(images->arg, pid, mapping.object, mapping.bias);
	if (room(images, &image->mappings, image->nr_mappings, &image->cap_mappings, sizeof(*image->mappings)))
		image->mappings[image->nr_mappings++] = mapping;
}

const struct csink_attach_mapping *csink_attach_image_find(struct csink_attach_image *image, uint64_t pc)
{
	for (uint32_t k = 0; k < image->nr_mappings; k++) {
		uint32_t i = (image->last_mapping + k) % image->nr_mappings;
		const struct csink_attach_mapping *mapping = &image->mappings[i];

		if (pc < mapping->start || pc >= mapping->end || mapping->unload_ns)
			continue;
		image->last_mapping = i;
		return mapping;
	}
	return NULL;
}

void csink_attach_images_free(struct csink_attach_images *images)
{
	for (uint32_t i = 0; i < images->nr; i++) {
		free(images->at[i]->mappings);
		free(images->at[i]->threads);
		free(images->at[i]);
	}
	csink_attach_objects_free(&images->objects);
	free(images->at);
	free(images->living);
	csink_table_free(&images->living_index);
	csink_table_free(&images->latest_index);
	free(images->rows);
	csink_table_free(&images->row_index);
	free(images->chains);
	csink_table_free(&images->chain_index);
	free(images->frames);
	memset(images, 0, sizeof(*images));
}
