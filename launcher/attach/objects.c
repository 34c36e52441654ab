/*
 * Opening the files of mapped objects, each once, for their build-ids and unwind tables: see objects.h. Runs in the
 * attach command's one thread.
 */
#include "launcher/attach/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/attach/eh_index.h"
#include "launcher/attach/go_object.h"
#include "launcher/attach/interpreters.h"
#include "launcher/attach/object_code.h"
#include "launcher/attach/object_file.h"
#include "launcher/attach/remote.h"
#include "launcher/base/regular.h"
#include "preload/core/cfi/cfi_read.h"

#define MAX_NOTES 65536
#define MAX_VDSO 65536
#define MAX_TABLES (256U << 20)
#define MAX_COPIED (1ULL << 30) /* of all objects: files may say that they have more than they have */

static void find_build_id(struct csink_attach_object *object, const struct csink_object_file *file,
			  const ElfW(Phdr) * phdr)
{
	uint64_t size = CSINK_MIN(phdr->p_filesz, (uint64_t)MAX_NOTES), align = phdr->p_align == 8 ? 8 : 4, at = 0;
	CSINK_AUTO_FREE char *notes = malloc(size + 1);

	while (notes && !object->build_id_len && at + sizeof(ElfW(Nhdr)) <= size &&
	       (at || csink_object_file_read(file, notes, size, phdr->p_offset))) {
		const ElfW(Nhdr) *note = (const void *)(notes + at);
		uint64_t desc = at + sizeof(*note) + CSINK_ALIGN_UP((uint64_t)note->n_namesz, align);

		if (desc > size || note->n_descsz > size - desc)
			break;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    note->n_descsz <= sizeof(object->build_id)) {
			memcpy(object->build_id, notes + desc, note->n_descsz);
			object->build_id_len = (uint8_t)note->n_descsz;
		}
		at = desc + CSINK_ALIGN_UP((uint64_t)note->n_descsz, align);
	}
}

/* Where .eh_frame begins, as .eh_frame_hdr says: the object's own address. 0: it does not say, or has no index. */
static uint64_t eh_frame_of(const struct csink_object_file *file, const ElfW(Phdr) * hdr)
{
	uint8_t head[12];
	struct csink_reader r = {head + 4, head + sizeof(head), false};
	uint64_t at;

	if (!csink_object_file_read(file, head, sizeof(head), hdr->p_offset) || head[0] != 1 ||
	    head[3] != (CSINK_PE_DATAREL | CSINK_PE_SDATA4))
		return 0;
	at = csink_read_encoded(&r, head[1], 0);
	if (r.failed)
		return 0;
	/* A relative one counts from where it stood in our copy. */
	return (head[1] & CSINK_PE_RELATION) == CSINK_PE_PCREL ? at - (uint64_t)(uintptr_t)(head + 4) + hdr->p_vaddr + 4
							       : 0;
}

/* From an address to the end of its segment, into the copy. */
static bool copy_rest(struct csink_attach_object *object, const struct csink_object_file *file,
		      const ElfW(Phdr) * segment, uint64_t vaddr)
{
	uint64_t before = vaddr - segment->p_vaddr;

	return csink_object_file_read(file, (void *)(uintptr_t)(object->table_bias + vaddr), segment->p_filesz - before,
				      segment->p_offset + before);
}

/* Copy .eh_frame_hdr and .eh_frame, which mostly lie in one segment, with much before them. */
static void take_tables(struct csink_attach_objects *objects, struct csink_attach_object *object,
			const struct csink_object_file *file, const ElfW(Phdr) * hdr)
{
	uint64_t frame = eh_frame_of(file, hdr), from = CSINK_MIN(frame, hdr->p_vaddr), to;
	const ElfW(Phdr) *of_hdr = csink_object_file_segment(file, hdr->p_vaddr);
	const ElfW(Phdr) *of_frame = csink_object_file_segment(file, frame);

	if (!frame || !of_hdr || !of_frame)
		return;
	to = CSINK_MAX(of_hdr->p_vaddr + of_hdr->p_filesz, of_frame->p_vaddr + of_frame->p_filesz);
	if (to - from > MAX_TABLES || to - from > MAX_COPIED - objects->copied)
		return;
	objects->copied += to - from;
	object->copy = calloc(1, to - from);
	object->table_bias = (uintptr_t)object->copy - from;
	if (!object->copy || !copy_rest(object, file, of_frame, frame) ||
	    !copy_rest(object, file, of_hdr, hdr->p_vaddr))
		return;
	object->table.low = (const uint8_t *)(object->table_bias + frame);
	object->table.high = (const uint8_t *)(object->table_bias + of_frame->p_vaddr + of_frame->p_filesz);
	object->table.hdr = (const uint8_t *)(object->table_bias + hdr->p_vaddr);
	object->table.hdr_end = (const uint8_t *)(object->table_bias + of_hdr->p_vaddr + of_hdr->p_filesz);
}

static void take_elf(struct csink_attach_objects *objects, struct csink_attach_object *object,
		     struct csink_object_file *file)
{
	const ElfW(Phdr) *tables = NULL;

	if (!csink_object_file_begin(file))
		return;
	object->is_other = false;
	object->is_32 = file->is_32;
	object->entry = file->head.e_entry;
	for (uint32_t i = 0; i < file->nr_phdr; i++) {
		const ElfW(Phdr) *phdr = &file->phdr[i];

		if (phdr->p_type == PT_GNU_EH_FRAME)
			tables = phdr;
		if (phdr->p_type == PT_DYNAMIC && !file->is_32)
			object->dynamic = phdr->p_vaddr;
		if (phdr->p_type == PT_NOTE && !object->build_id_len)
			find_build_id(object, file, phdr);
		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) ||
		    object->nr_code == CSINK_ARRAY_SIZE(object->code))
			continue;
		object->code[object->nr_code].vaddr = phdr->p_vaddr;
		object->code[object->nr_code].offset = phdr->p_offset;
		object->code[object->nr_code++].filesz = phdr->p_filesz;
	}
	if (file->is_32) {
		if (file->head.e_machine == EM_386)
			objects->copied += csink_eh_index_make_32(object, file, tables, MAX_COPIED - objects->copied);
		return;
	}
	if (tables)
		take_tables(objects, object, file, tables);
	if (!object->copy)
		objects->copied += csink_eh_index_make(object, file, MAX_COPIED - objects->copied);
	objects->copied += csink_go_object_make(object, file, MAX_COPIED - objects->copied);
	if (object->dynamic && file->fd >= 0)
		csink_attach_interpreter_find(object, file);
}

/* ---- which file it is ---- */

/* Handles of files are kept for names at the end, where the limit of descriptors leaves room. */
#define MAX_HELD 128
#define SHARE_OF_DESCRIPTORS 8

static void identify(struct csink_attach_object *object, const struct stat *st)
{
	object->dev = st->st_dev;
	object->ino = st->st_ino;
	object->mtime_ns = (uint64_t)st->st_mtim.tv_sec * CSINK_NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;
	object->bytes = (uint64_t)st->st_size;
}

/* Has a path this file still? */
static bool is_at(const struct csink_attach_object *object, const struct stat *st)
{
	struct csink_attach_object now;

	identify(&now, st);
	return object->dev == now.dev && object->ino == now.ino && object->mtime_ns == now.mtime_ns &&
	       object->bytes == now.bytes;
}

static void hold(struct csink_attach_objects *objects, struct csink_attach_object *object, int fd)
{
	struct rlimit limit;

	if (object->is_other || !object->ino || objects->nr_held >= MAX_HELD || getrlimit(RLIMIT_NOFILE, &limit) ||
	    objects->nr_held >= limit.rlim_cur / SHARE_OF_DESCRIPTORS) {
		close(fd);
		return;
	}
	object->held_fd = fd;
	objects->nr_held++;
}

/* The program that a process runs, if its file was at that path and is gone. */
static int open_removed(int32_t pid, const char *path)
{
	char link[64], now[PATH_MAX + 16];
	size_t len = strlen(path);
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, now, sizeof(now) - 1);
	now[CSINK_MAX(n, 0)] = 0;
	if (strncmp(now, path, len) || strcmp(now + len, " (deleted)"))
		return -ENOENT;
	return csink_regular_open(link, 0, CSINK_REGULAR_ANY);
}

void csink_attach_object_place(struct csink_attach_object *object, char *place, size_t size)
{
	struct stat st;

	object->is_used |= object->held_fd >= 0 && (stat(object->path, &st) || !is_at(object, &st));
	if (object->is_used)
		snprintf(place, size, "/proc/self/fd/%d%s", object->held_fd, object->path);
	else
		snprintf(place, size, "%s", object->path);
}

static void read_object(struct csink_attach_objects *objects, struct csink_attach_object *object, int32_t pid,
			bool is_ours)
{
	struct stat st;
	struct csink_object_file file = {.fd = -1};

	if (object->is_vdso) {
		file.memory = (const char *)getauxval(AT_SYSINFO_EHDR);
		if (file.memory)
			take_elf(objects, object, &file);
		return;
	}
	/* A device could do anything when it is opened. */
	file.fd = csink_regular_open(object->path, 0, CSINK_REGULAR_ANY);
	if (file.fd == -ENOENT && is_ours)
		file.fd = open_removed(pid, object->path);
	object->is_other = file.fd >= 0 || file.fd == -ENOEXEC;
	object->is_opened = object->is_other;
	if (!object->is_opened)
		csink_attach_interpreter_guess(object);
	if (file.fd < 0)
		return;
	if (is_ours && !fstat(file.fd, &st))
		identify(object, &st);
	take_elf(objects, object, &file);
	if (object->nr_code && !fstat(file.fd, &st))
		object->instructions = csink_object_code_new(&st, NULL, 0);
	hold(objects, object, file.fd);
}

/* The objects[] entry of a path, of this file if @st is not NULL, or a new one, not read yet, for which *is_new is set.
 * Takes the path. */
static struct csink_attach_object *get(struct csink_attach_objects *objects, char *path, const struct stat *st,
				       bool *is_new)
{
	struct csink_attach_object *object;

	*is_new = false;
	for (uint32_t i = objects->nr; i-- > 0;) { /* the latest first */
		object = objects->at[i];
		if (strcmp(object->path, path) || (st && object->ino && !is_at(object, st)))
			continue;
		free(path);
		return object;
	}
	object = CSINK_GROW(objects->at, objects->nr, objects->cap) ? NULL : calloc(1, sizeof(*object));
	if (!object) {
		free(path);
		return NULL;
	}
	object->path = path;
	object->held_fd = -1;
	objects->at[objects->nr++] = object;
	*is_new = true;
	return object;
}

struct csink_attach_object *csink_attach_objects_get(struct csink_attach_objects *objects, int32_t pid,
						     const char *root, const char *path)
{
	struct csink_attach_object *object;
	bool is_vdso = !strcmp(path, "[vdso]"), is_new;
	struct stat st;
	char *whole;

	if (asprintf(&whole, "%s%s", is_vdso ? "" : root, path) < 0)
		return NULL;
	object = get(objects, whole, !is_vdso && !*root && !stat(whole, &st) ? &st : NULL, &is_new);
	if (!object || !is_new)
		return object;
	object->is_vdso = is_vdso;
	read_object(objects, object, pid, !*root);
	return object;
}

struct csink_attach_object *csink_attach_objects_get_vdso(struct csink_attach_objects *objects, int32_t pid,
							  uint64_t start, uint64_t bytes)
{
	struct csink_attach_object *object;
	struct csink_object_file file = {.fd = -1, .memory_bytes = bytes};
	bool is_new;
	char *path;

	if (start >> 32)
		return csink_attach_objects_get(objects, pid, "", "[vdso]");
	path = strdup("[vdso32]");
	object = path ? get(objects, path, NULL, &is_new) : NULL;
	/* It is the same in all programs of 32-bit mode; the first ones may have ended. */
	if (!object || object->memory || !bytes || bytes > MAX_VDSO)
		return object;
	object->is_vdso = object->is_other = true;
	object->memory = malloc(bytes);
	file.memory = object->memory;
	if (object->memory && !csink_remote_copy(pid, object->memory, start, bytes)) {
		take_elf(objects, object, &file);
		object->instructions = csink_object_code_new(NULL, object->memory, bytes);
	} else {
		free(object->memory);
		object->memory = NULL;
	}
	return object;
}

uint64_t csink_attach_object_bias(const struct csink_attach_object *object, uint64_t start, uint64_t offset)
{
	if (object->is_vdso)
		return start;
	for (uint32_t i = 0; i < object->nr_code; i++) {
		uint64_t page_offset = object->code[i].offset & ~4095ULL;

		if (offset >= page_offset && offset < object->code[i].offset + object->code[i].filesz)
			return start + object->code[i].offset - offset - object->code[i].vaddr;
	}
	return 0;
}

void csink_attach_objects_free(struct csink_attach_objects *objects)
{
	for (uint32_t i = 0; i < objects->nr; i++) {
		if (objects->at[i]->held_fd >= 0 && !objects->at[i]->is_used)
			close(objects->at[i]->held_fd);
		free(objects->at[i]->path);
		free(objects->at[i]->copy);
		free(objects->at[i]->python);
		free(objects->at[i]->go);
		free(objects->at[i]->memory);
		csink_object_code_free(objects->at[i]->instructions);
		free(objects->at[i]);
	}
	free(objects->at);
	memset(objects, 0, sizeof(*objects));
}
