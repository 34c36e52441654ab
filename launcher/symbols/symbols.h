/*
 * From addresses to functions, inlined calls and lines. Everything is written straight into a profile: names as
 * strings, functions interned, lines given to locations.
 *
 * The work is done object by object and in batches of sorted addresses: symbol tables are read once from end to end,
 * and of the debug information only the units are opened that hold an address.
 */
#ifndef CSINK_SYMBOLS_H
#define CSINK_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csink_profile;
struct csink_profile_function;

/* One address to name. */
struct csink_want {
	uint64_t address;  /* as the object's own headers count: run-time address less bias. For a caller: inside its
			      call */
	uint32_t location; /* in the profile; added without lines */
};

struct csink_object {
	const char *path;
	const uint8_t *build_id; /* build_id_len bytes; 0: not known, and not checked */
	uint8_t build_id_len;
	bool is_vdso;
	const char *debug_dir; /* separate debug files; NULL: /usr/lib/debug */
	const void *image;     /* of code made at run time, linked, in place of a file; NULL: there is none */
	size_t nr_image;
	int32_t pid; /* a process that had it, as it calls itself, whose root may be another; 0: none */
};

enum csink_symbols_found {
	CSINK_FOUND_NAMES = 1 << 0,
	CSINK_FOUND_FILES = 1 << 1,
	CSINK_FOUND_LINES = 1 << 2,
	CSINK_FOUND_INLINES = 1 << 3,
	/* What was left out, because of what it would have cost: */
	CSINK_LEFT_MANGLED = 1 << 4, /* names (demangle.h) */
	CSINK_LEFT_PACKED = 1 << 5,  /* debug information that unpacks to far more than files do */
	CSINK_LEFT_SYMBOLS = 1 << 6, /* the rest of a symbol table that is all overlaps */
	CSINK_LEFT_CUT = 1 << 7,     /* a file lost its end while it was read */
	CSINK_LEFT_DWARF = 1 << 8,   /* the rest of debug information that takes more than files of its size do */
	CSINK_LEFT = CSINK_LEFT_DWARF | CSINK_LEFT_MANGLED | CSINK_LEFT_PACKED | CSINK_LEFT_SYMBOLS | CSINK_LEFT_CUT,
};

/**
 * Name the addresses of one object. Sorts wants by address.
 * A location that is in no symbol gets a function named after where it begins, "[libx.so+0x1a40]", if the unwind tables
 * know; else no line at all.
 * Returns enum csink_symbols_found, -ESTALE (the file there is another build than the one that ran, and no debug file
 * has the build-id), -ENOEXEC (not an ELF file), -ENOMEM, or what opening gave. Context: thread.
 */
int csink_symbols_resolve(struct csink_profile *p, const struct csink_object *object, struct csink_want *wants,
			  uint32_t nr_wants);

/**
 * Name addresses of code made at run time from /tmp/perf-PID.map (or @path). Sorts wants by address.
 * Only a regular file of at most 1 GiB, of the current user, of root or of the process's user is used.
 * @since_ns   when the process started, ns of CLOCK_REALTIME: the file must have been written later; 0: not known
 * Returns the number of addresses that were named, -EFBIG (the file is larger, or names the same addresses ten million
 * times; those that it reached have their names), -ENOEXEC (no regular file), -ELOOP (a symbolic link), -EPERM (another
 * user's), -ESTALE (older than the process), or -errno of the file. Context: thread.
 */
int csink_perfmap_resolve(struct csink_profile *p, const char *path, uint64_t since_ns, struct csink_want *wants,
			  uint32_t nr_wants);

#endif
