/*
 * The objects that attached processes have mapped: what is needed of their files to unwind from outside and to know
 * them again. One for each file, shared by all processes.
 */
#ifndef CSINK_OBJECTS_H
#define CSINK_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/core/cfi/cfi.h"

struct csink_go_table;
struct csink_object_code;
struct csink_attach_python;

struct csink_attach_object {
	char *path;                         /* where it can be opened from here; what reports say */
	int held_fd;                        /* of its file, which may be removed or replaced; -1: none */
	bool is_used;                       /* held_fd, in recordings: it is closed with the launcher */
	uint64_t dev, ino, mtime_ns, bytes; /* of the file, in our root; 0: not known */
	bool is_vdso;
	bool is_opened;
	bool is_other; /* a file, and no ELF file */
	bool is_32;    /* for 32-bit mode */
	uint8_t build_id[20], build_id_len;
	uint64_t dynamic;                   /* the object's own address of its dynamic section; 0: none */
	struct csink_attach_python *python; /* the CPython that it is; NULL: none */
	const char *unread; /* of another interpreter, why its frames are not read, a constant; see interpreters.h */
	struct {
		uint64_t vaddr, offset, filesz;
	} code[8]; /* executable segments */
	uint32_t nr_code;
	/* Its unwind tables, copied; none where table.hdr is NULL. */
	struct csink_cfi_table table;
	uintptr_t table_bias; /* where the copy is, less where the object has it: what pc means in there */
	void *copy;
	char *memory; /* all of it, where it has no file and is not ours; NULL otherwise */
	/* Stubs of the linker, which push nothing, and have no entry where .eh_frame has no index. */
	uint64_t stubs_start, stubs_end;
	uint64_t entry;                         /* where the kernel starts it, an own address */
	struct csink_object_code *instructions; /* see object_code.h; NULL: they cannot be read */
	struct csink_go_table *go; /* Go's own table, with its copy, by the object's own addresses; NULL: none */
};

struct csink_attach_objects {
	struct csink_attach_object **at;
	uint32_t nr, cap;
	uint64_t copied; /* bytes of unwind tables, of all objects */
	uint32_t nr_held;
};

/**
 * The object of a path ("[vdso]": the kernel's own), read when it is first asked for. What is no ELF file, or cannot be
 * opened, is an object all the same, of which nothing is known.
 * A file that has replaced another one at a path of our root is an object of its own; of one that is gone, the latest
 * is meant, or the program that the process runs.
 * @root  of the process that has it, "" for ours: "/proc/self/fd/7"
 * Returns NULL without memory.
 */
struct csink_attach_object *csink_attach_objects_get(struct csink_attach_objects *objects, int32_t pid,
						     const char *root, const char *path);

/** Where its file can be opened at the end: its path, or where another file is there now, or none, one below a handle
 * of it (launcher/base/roots.h). Writes at most size bytes. */
void csink_attach_object_place(struct csink_attach_object *object, char *place, size_t size);

/**
 * The kernel's own object of a process: that of 32-bit mode, which we do not have, is copied from the process.
 * @start  where it is mapped. As csink_attach_objects_get.
 */
struct csink_attach_object *csink_attach_objects_get_vdso(struct csink_attach_objects *objects, int32_t pid,
							  uint64_t start, uint64_t bytes);

/** Run-time address less the object's own, where its file's part at @offset is mapped at @start; 0 if it is not known.
 */
uint64_t csink_attach_object_bias(const struct csink_attach_object *object, uint64_t start, uint64_t offset);

void csink_attach_objects_free(struct csink_attach_objects *objects);

#endif
