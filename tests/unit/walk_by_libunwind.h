/*
 * libunwind as the judge of our walkers: the installed library, loaded beside the program's own libraries, walks the
 * stack of the thread that a signal interrupted. Memory is read by our checked loads. One thread at a time, in handlers
 * that block all signals; not async-signal-safe otherwise (libunwind calls dl_iterate_phdr).
 */
#ifndef CSINK_TESTS_WALK_LIBUNWIND_H
#define CSINK_TESTS_WALK_LIBUNWIND_H

#include "include/internal/base.h"
#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/safe_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#define UNW_STRING(name) #name
#define UNW_NAME(symbol) UNW_STRING(symbol) /* what the header makes of a function's name */

static struct {
	__typeof__(&unw_init_local2) init_local2;
	__typeof__(&unw_step) step;
	__typeof__(&unw_get_reg) get_reg;
	__typeof__(&unw_is_signal_frame) is_signal_frame;
	__typeof__(&unw_get_proc_info_by_ip) get_proc_info_by_ip;
	__typeof__(&unw_flush_cache) flush_cache;
	__typeof__(&unw_set_caching_policy) set_caching_policy;
	__typeof__(&unw_get_accessors) get_accessors;
	unw_addr_space_t *local_space;
	struct csink_loader loader;
	const char *context; /* the registers that the cursor points into */
	uint32_t modules_generation;
	unw_cursor_t cursor;
} libunwind;

static int libunwind_access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	uint64_t word = 0;

	(void)space;
	(void)arg;
	if (write)
		return -UNW_EREADONLYREG;
	if (addr - (uintptr_t)libunwind.context < sizeof(ucontext_t))
		memcpy(&word, (const void *)addr, sizeof(word));
	else if (!csink_load_word(&libunwind.loader, addr, &word))
		return -UNW_EINVAL;
	*value = word;
	return 0;
}

/* A step that gave no frame: was that the outermost one, or did the library run out of information? */
static enum csink_walk_end libunwind_end(int step, uint64_t last_ip)
{
	unw_proc_info_t info;

	if (step < 0)
		return CSINK_WALK_BAD_STACK;
	return libunwind.get_proc_info_by_ip(*libunwind.local_space, last_ip, &info, &libunwind.cursor) < 0
		       ? CSINK_WALK_NO_CFI
		       : CSINK_WALK_COMPLETE;
}

static void libunwind_steps(struct csink_walk *walk, uint64_t ip)
{
	unw_word_t sp = 0, last_sp = 0;
	bool exact = true; /* ip is an instruction's own address, not one to return to */

	libunwind.get_reg(&libunwind.cursor, UNW_REG_SP, &last_sp);
	for (;;) {
		int step = libunwind.step(&libunwind.cursor);
		unw_word_t caller = 0;
		bool interrupted;

		if (step > 0)
			libunwind.get_reg(&libunwind.cursor, UNW_REG_IP, &caller);
		if (step <= 0 || !caller) {
			walk->end = libunwind_end(step, exact ? ip : ip - 1);
			return;
		}
		libunwind.get_reg(&libunwind.cursor, UNW_REG_SP, &sp);
		/* True of the frame that a signal interrupted, after the step over the trampoline's frame. */
		interrupted = libunwind.is_signal_frame(&libunwind.cursor) > 0;
		if (sp <= last_sp && !interrupted) { /* only a signal may have come from another stack */
			walk->end = CSINK_WALK_BAD_STACK;
			return;
		}
		if (walk->nr_frames == walk->max_frames) {
			walk->end = CSINK_WALK_DEPTH;
			return;
		}
		if (interrupted && walk->nr_frames) /* nothing called the trampoline */
			walk->frames[walk->nr_frames - 1] |= CSINK_FRAME_EXACT;
		exact = interrupted;
		walk->frames[walk->nr_frames++] = caller | (exact ? CSINK_FRAME_EXACT : 0);
		ip = caller;
		last_sp = sp;
	}
}

/** Walk by libunwind, as csink_walk_dwarf does by our rows; libunwind_init must have returned 0. */
static void libunwind_walk(struct csink_walk *walk, const ucontext_t *uc)
{
	int saved = errno;
	uint32_t generation = csink_modules_generation();

	walk->nr_frames = 0;
	walk->end = CSINK_WALK_NO_CFI;
	csink_loader_init(&libunwind.loader, walk->stack, csink_context_sp(uc) - CSINK_RED_ZONE_BYTES);
	libunwind.context = (const char *)uc;
	if (generation != libunwind.modules_generation) { /* its cache has addresses, not what is mapped there */
		libunwind.flush_cache(*libunwind.local_space, 0, 0);
		libunwind.modules_generation = generation;
	}
	if (!libunwind.init_local2(&libunwind.cursor, (ucontext_t *)(uintptr_t)uc, UNW_INIT_SIGNAL_FRAME))
		libunwind_steps(walk, csink_context_pc(uc));
	errno = saved;
}

/**
 * Let libunwind keep the rules that it has read, as it does by default, or read them anew at every frame. It keeps them
 * by address alone, and so takes for the first instruction of a landing pad the rules of the instruction before, if it
 * has met that address as one to return to. Either way it forgets what it had.
 */
__attribute__((unused)) static void libunwind_use_cache(bool use)
{
	libunwind.set_caching_policy(*libunwind.local_space, use ? UNW_CACHE_GLOBAL : UNW_CACHE_NONE);
}

/* A first walk, from here: the library sets up its tables. */
__attribute__((noinline)) static bool libunwind_warm_up(void)
{
	static const struct csink_stack_bounds unknown;
	uint64_t frames[8];
	struct csink_walk walk = {.stack = &unknown, .frames = frames, .max_frames = CSINK_ARRAY_SIZE(frames)};
	ucontext_t uc;

	if (getcontext(&uc))
		return false;
	libunwind_walk(&walk, &uc);
	return walk.nr_frames > 0;
}

/**
 * Load libunwind. @reason: why not; at least 160 bytes. Returns 0, -ENOENT (not installed) or -ELIBBAD.
 * RTLD_LOCAL: its _Unwind_ functions must not take the place of libgcc's.
 */
static int libunwind_init(char *reason)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	const struct {
		void *slot;
		const char *name;
	} wanted[] = {
		{&libunwind.init_local2, UNW_NAME(unw_init_local2)},
		{&libunwind.step, UNW_NAME(unw_step)},
		{&libunwind.get_reg, UNW_NAME(unw_get_reg)},
		{&libunwind.is_signal_frame, UNW_NAME(unw_is_signal_frame)},
		{&libunwind.get_proc_info_by_ip, UNW_NAME(unw_get_proc_info_by_ip)},
		{&libunwind.flush_cache, UNW_NAME(unw_flush_cache)},
		{&libunwind.set_caching_policy, UNW_NAME(unw_set_caching_policy)},
		{&libunwind.get_accessors, UNW_NAME(unw_get_accessors)},
		{&libunwind.local_space, UNW_NAME(unw_local_addr_space)},
	};

	if (!library) {
		snprintf(reason, 160, "libunwind is not installed: %.100s", dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(wanted); i++) {
		void *found = dlsym(library, wanted[i].name);

		if (!found) {
			snprintf(reason, 160, "libunwind has no %s", wanted[i].name);
			return -ELIBBAD;
		}
		memcpy(wanted[i].slot, &found, sizeof(found));
	}
	libunwind.get_accessors(*libunwind.local_space)->access_mem = libunwind_access_mem;
	if (!libunwind_warm_up()) {
		snprintf(reason, 160, "libunwind cannot walk this process");
		return -ELIBBAD;
	}
	return 0;
}

#endif
