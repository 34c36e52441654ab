/*
 * Which objects are mapped where: a snapshot that the handler reads without the loader's lock.
 *
 * Written by the thread that refreshes (one at a time, others give up at once), read by handlers of any thread. A
 * refresh walks the loader's link-map list itself, with loads that survive a list that changes under it: never through
 * dl_iterate_phdr, whose lock the interrupted code may hold. Each module is also an entry of the recording, with the
 * times between which it was seen.
 */
#ifndef CSINK_MODULES_H
#define CSINK_MODULES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/core/record/recording.h"

struct csink_module {
	uint64_t bias;       /* l_addr */
	uint64_t start, end; /* executable addresses */
	const ElfW(Phdr) * phdr;
	uint32_t nr_phdr;
	/* Bytes from eh_frame to both ends of the readable segment that it is in. */
	uint32_t tables_before, tables_behind;
	uint32_t go_bytes; /* see go_table */
	uint64_t eh_frame; /* where its PT_GNU_EH_FRAME is: distinguishes objects that were at one address; 0: none */
	const void *link_map;
	const void *dynamic;
	csink_ref_t entry;  /* its csink_rec_module */
	uint32_t name_hash; /* of the loader's own name for it */
	/* Of a program or library by Go: where its table is (go_bytes of it may be read; 0: it has none), and
	 * what functions' addresses in it are relative to. See go_frames.h. */
	uint64_t go_table, go_text;
};

/** An object is being unloaded, by this thread or another: it may be gone before the list of objects shows it. Context:
 * signal.
 */
bool csink_modules_unloading(void);

/**
 * Called for each object that is seen to come, and to go, by the thread that refreshes. Another thread may be unloading
 * it: what is in it is read by csink_module_copy().
 */
typedef void (*csink_modules_callback)(const struct csink_module *module, bool is_there, struct csink_recording *rec,
				       struct csink_writer *writer);

/** Call @callback from now on; NULL: none. Context: init. */
void csink_modules_set_callback(csink_modules_callback callback);

/**
 * Take memory for the objects of most programs: before anything else does, so that it lies in a page that is touched
 * anyway. Without it, the first refresh takes it. Context: init.
 */
void csink_modules_reserve(void);

/**
 * Take the first snapshot for a new recording. Context: init.
 * @writer  the entries go there.
 */
void csink_modules_init(struct csink_recording *rec, struct csink_writer *writer);

/**
 * Look for loaded and unloaded objects. Gives up (and changes nothing) when another thread is refreshing, when the
 * loader is in the middle of a change, or when the lists cannot be read.
 * Returns 1 if something changed, 0 if not, -EAGAIN if it gave up, -ENOSPC if there is no room for more. Context:
 * signal (some syscalls: not for every sample).
 */
int csink_modules_refresh(struct csink_recording *rec, struct csink_writer *writer, uint64_t now_ns);

/** The same at the end of an image; if the calling thread is the only one, without a syscall. Context: thread. */
int csink_modules_refresh_last(struct csink_recording *rec, struct csink_writer *writer, uint64_t now_ns);

/** Copy out the module that covers an address. Context: signal. */
bool csink_modules_find(uint64_t pc, struct csink_module *out);

/* The object that a thread was in last; all zero at first. */
struct csink_module_memo {
	uint64_t start, end, eh_frame;
};

/**
 * Is the object that the loader has at @pc the one that the snapshot has there? Also true where the loader has none
 * (code made at run time), where it cannot be asked, and where a refresh would change nothing. A few ns; no lock.
 * Context: signal.
 */
bool csink_modules_current(uint64_t pc, struct csink_module_memo *memo);

/**
 * As csink_modules_refresh, for an object that is not current. If it is not current afterwards, either (it has no
 * headers any more, or runs code in its data), the loader's object is until the snapshot changes. Context: as refresh.
 */
void csink_modules_refresh_at(uint64_t pc, struct csink_module_memo *memo, struct csink_recording *rec,
			      struct csink_writer *writer, uint64_t now_ns);

/** Grows whenever an object was seen to be gone: addresses from before may mean another one now. Context: signal. */
uint32_t csink_modules_unloads(void);

/** Since when no object has left its place (CLOCK_MONOTONIC); 0: none ever did. Between an unload that is being noted
 * and this there may be an instant. Context: signal. */
uint64_t csink_modules_epoch_ns(void);

/** Grows with every change of the snapshot: caches keyed by address compare it. Context: signal. */
uint32_t csink_modules_generation(void);

/**
 * Code that is in no object has come, or other tables have: rows that say that there are none are made again. @gone:
 * all rows are, since tables have gone. Context: signal.
 */
void csink_modules_code_changed(bool gone);

/** Copy out the module with that number, by address; false: there are fewer. Context: signal. */
bool csink_modules_at(uint32_t index, struct csink_module *out);

/* modules_scan.c: one object from the process's memory. Context: signal. */

/* What a scan found; name and build id are copied out, since the loader may free its own. */
struct csink_module_info {
	struct csink_module module;
	uint64_t file_offset;
	uint8_t build_id[20];
	uint8_t build_id_len;
	uint8_t is_vdso, is_program, is_go;
	char path[512]; /* before csink_module_describe: the loader's name, "" for the program */
};

/** Copy from an object that a scan is at; false where nothing is any more. Context: signal. */
bool csink_module_copy(void *to, const void *from, size_t bytes);

/**
 * Copy memory that another thread may unmap or protect meanwhile; false where it cannot be read. One system call. After
 * csink_modules_init(). Context: signal.
 */
bool csink_copy_by_call(void *to, const void *from, size_t bytes);

/** The program's own file; where there is no /proc, as exec was given it, if that was a whole path; else "". */
void csink_module_program(char *path, size_t size);

/**
 * Fill path, segments and build id of an object that a scan found. False if it has no executable segment, or is by Go
 * and not loaded yet.
 * @program  what csink_module_program wrote, or "": it has not been called.
 */
bool csink_module_describe(struct csink_module_info *info, const char *program);

/**
 * Walk the loader's lists (all namespaces). Calls @each for every object, with its link map, bias, dynamic section and
 * the loader's name; false from it stops. One scan at a time.
 * @quiet  nothing can change the lists meanwhile (this is the only thread, or the loader waits for us): no syscalls.
 * Returns 0, or -EAGAIN when the lists are being changed or cannot be read.
 */
int csink_module_scan(bool quiet, bool (*each)(struct csink_module_info *info, void *data), void *data);

#endif
