/*
 * Code that just-in-time compilers register with debuggers: GDB's JIT interface. An object that defines
 * __jit_debug_descriptor keeps a list there; each of its entries has an ELF image in memory, with the symbols of some
 * code that was made at run time, and often its unwind tables.
 *
 * The list belongs to the compiler's threads, which change it at any time and whose lock cannot be taken. So all of it
 * is read by calls that fail where nothing is, an image is copied into the recording as soon as its entry is met, and
 * it counts only if the entry is still in the list afterwards. Nothing is written to the program's memory.
 *
 * A frame in such code is stored as the image's reference and a position (CSINK_ENTRY_IMAGE), never as an address: what
 * comes to the same addresses later has another image. Before a sample's frame is stored, the entry is compared with
 * what was copied. Where that cannot be done, the frame stays an address, and has no name.
 *
 *   jit_list.c    the lists: what is registered, and what is not any more
 *   jit_ranges.c  the snapshot of code by address; frames that lie in it
 *   jit_tables.c  unwind tables
 *   jit_symbol.c  the descriptor of an object that does not export it
 */
#ifndef CSINK_JIT_OBJECTS_H
#define CSINK_JIT_OBJECTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/internal/base.h"
#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/cfi/cfi.h"
#include "preload/core/elf_symbol.h"
#include "preload/core/record/recording.h"

/* Lists that are known. Stored by the thread that refreshes the modules. */
extern _Atomic uint32_t csink_jit_nr_lists CSINK_HIDDEN;

/* Code that is in no object, and in no image that is known: */
enum csink_jit_met {
	CSINK_JIT_NOTHING,
	CSINK_JIT_MET,     /* a walk met some; taken back by the thread that looks */
	CSINK_JIT_NO_LIST, /* a walk met some, and no object has a list */
};
extern _Atomic uint32_t csink_jit_met CSINK_HIDDEN;

/** Start in a process or a forked child: nothing is known. Context: init. */
void csink_jit_begin(void);

/** An object was loaded. Context: signal; the object stays during the call. */
void csink_jit_load(const struct csink_module *module, const struct csink_elf_view *view);

/** An object was unloaded. Context: signal. */
void csink_jit_unload(const struct csink_module *module);

/** Called for a frame in code of no object. Context: signal. */
static inline void csink_jit_meet(void)
{
	if (CSINK_UNLIKELY(!atomic_load_explicit(&csink_jit_met, memory_order_relaxed)))
		atomic_store_explicit(&csink_jit_met, CSINK_JIT_MET, memory_order_relaxed);
}

/** Is there a list? Context: signal. */
static inline bool csink_jit_is_on(void)
{
	return atomic_load_explicit(&csink_jit_nr_lists, memory_order_relaxed) != 0;
}

/** Has code of no object run, and is it not known whether an object has a list? Context: signal. */
static inline bool csink_jit_wants_list(void)
{
	return !csink_jit_is_on() && atomic_load_explicit(&csink_jit_met, memory_order_relaxed) == CSINK_JIT_MET;
}

/** Is there anything for the next two functions to do? Context: signal. */
static inline bool csink_jit_may_name(void)
{
	return csink_jit_is_on() || csink_jit_wants_list();
}

/**
 * Look at the lists if this walk came through code that they may be about, and they have changed. Returns true if
 * something is known now that was not: then the stack is to be walked again. Context: signal; makes system calls if
 * there are images.
 */
bool csink_jit_check(const struct csink_walk *walk, uint64_t leaf, struct csink_recording *rec,
		     struct csink_writer *writer);

/**
 * Put images' references in the place of frames in their code, and one before the first frame if the leaf is in such
 * code. walk->frames is @room afterwards if something was put there.
 * @room  for CSINK_MAX_DEPTH frames; may be walk->frames.
 * Context: as check.
 */
void csink_jit_name(struct csink_walk *walk, uint64_t leaf, const struct csink_recording *rec, uint64_t *room);

/** What is to be done now and then: look at the lists, and for lists. Context: as check. */
void csink_jit_poll(struct csink_recording *rec, struct csink_writer *writer);

/** The unwind tables of registered code at an address; as csink_cfi_locate(). Context: signal. */
bool csink_jit_locate(uintptr_t pc, struct csink_cfi_table *table);

#endif
