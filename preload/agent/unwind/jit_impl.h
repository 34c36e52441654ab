/* What the jit_*.c files share; no other file includes this. Context of everything here: signal. */
#ifndef CSINK_JIT_IMPL_H
#define CSINK_JIT_IMPL_H

#include "include/internal/base.h"
#include "preload/agent/unwind/jit_objects.h"
#include "preload/core/jit_image.h"

enum {
	CSINK_JIT_LISTS = 8,
	CSINK_JIT_IMAGES = 16384, /* at a time */
	CSINK_JIT_RANGES = 65536, /* likewise */
	CSINK_JIT_WINDOW = 1024,  /* bytes of an image's names that are compared */
};

/* As GDB's manual has them. */
#define CSINK_JIT_DESCRIPTOR "__jit_debug_descriptor"

struct csink_gdb_entry {
	uintptr_t next, prev, file;
	uint64_t bytes;
};

struct csink_gdb_descriptor {
	uint32_t version, action;
	uintptr_t relevant, first;
};

struct csink_jit_list {
	_Atomic uintptr_t at; /* the descriptor; 0: none. Stored by the thread that refreshes the modules. */
	const void *link_map; /* of its object; constant while @at is set */
	/* The descriptor as it was when its list was last read whole. Written by the thread that reads the lists. */
	struct csink_gdb_descriptor last;
};
extern struct csink_jit_list csink_jit_lists[CSINK_JIT_LISTS] CSINK_HIDDEN;

/* A registered image. Written by the thread that looks, before it is published. A slot is used again only when no
 * handler can read it any more. */
struct csink_jit_object {
	uintptr_t entry, file; /* where GDB's entry is, and what it says */
	uint64_t bytes;
	uint64_t base;   /* positions count from here */
	csink_ref_t ref; /* its copy; 0: it has none, since it is of no use */
	uint32_t window; /* offset in the image of the bytes that are compared */
	uint16_t nr_window;
	uint8_t list;     /* index */
	uint8_t nr_tries; /* for its unwind tables, which are not there yet; 0: they are, or there are none */
	uint32_t seen;    /* the look that saw it last; 0: not in use */
	uint32_t next;    /* of those with the same hash, + 1 */
	uint32_t live;    /* its place in the list of objects in use */
	uint64_t gone_ns; /* not in use since */
	uint32_t gone_at; /* number of the publication without it */
	/* Its unwind tables: a block of private memory, which stays with the slot. */
	struct csink_cfi_table table;
	uint8_t *block;
	uint32_t block_bytes;
	bool has_table;
};

/* Sorted by start. */
struct csink_jit_place {
	uint64_t start, end;
	uint32_t object; /* index */
};

/* ---- jit_list.c ---- */

extern struct csink_jit_object *csink_jit_objects CSINK_HIDDEN;

/** The descriptor, without a system call where its object is known to be there. False: it is gone. */
bool csink_jit_descriptor(const struct csink_jit_list *list, struct csink_gdb_descriptor *to);

/** Is the list as it was when it was last read? */
bool csink_jit_is_unchanged(const struct csink_jit_list *list);

/** Are the image's names in the program's memory those of its copy? */
bool csink_jit_is_same_image(const struct csink_jit_object *object, const struct csink_recording *rec);

/** Is the object's entry still in its list, and the image the same? */
bool csink_jit_is_current(const struct csink_jit_object *object, const struct csink_recording *rec);

/** Read all lists. Returns 1: something is new or gone; 0: nothing; -EAGAIN: another thread does, or one just has. */
int csink_jit_look(struct csink_recording *rec, struct csink_writer *writer);

/* ---- jit_ranges.c ---- */

/** Start anew. Returns false without memory. */
bool csink_jit_places_begin(void);

/** Add a range of code. Returns false if there are too many. By the thread that looks. */
bool csink_jit_places_add(const struct csink_jit_range *range, uint32_t object);

/** Remove those of objects that are not in use any more. By the thread that looks. */
void csink_jit_places_sweep(void);

/** Let handlers see what was added and removed. Returns false if some still read what they saw before. By the thread
 * that looks. */
bool csink_jit_places_publish(void);

/* ---- jit_tables.c ---- */

/** Copy the unwind tables of an object's code. @image is its copy. Sets has_table, or nr_tries. By the thread that
 * looks. */
void csink_jit_tables_take(struct csink_jit_object *object, const struct csink_jit_image *image);

/* ---- jit_symbol.c ---- */

/* Are there files with large tables that have not been searched yet? Stored by the thread that searches, read by
 * housekeeping. */
extern _Atomic uint32_t csink_jit_files_due CSINK_HIDDEN;

/**
 * Look for the descriptor in the symbol tables of files; csink_jit_met says so if it is in none.
 * @all  also in large ones; else they are due.
 */
void csink_jit_search_files(const struct csink_recording *rec, bool all);

/** Start anew. */
void csink_jit_search_begin(void);

/** Add a list. Returns false if there are too many. */
bool csink_jit_list_add(uintptr_t descriptor, const void *link_map);

#endif
