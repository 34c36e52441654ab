/*
 * Walking a stack from inside the signal handler. One interface, several walkers; everything declared here is
 * handler-safe (Context: signal) unless it says init.
 *
 * A walk starts at an interrupted context and gives the callers of the interrupted instruction, innermost first (the
 * leaf itself is not stored). A caller is a return address, or an exact address marked CSINK_FRAME_EXACT where a
 * signal frame was crossed.
 */
#ifndef CSINK_UNWIND_H
#define CSINK_UNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "include/internal/recording_format.h"
#include "preload/core/safe_load.h"

/* Why a walk ended. */
enum csink_walk_end {
	CSINK_WALK_COMPLETE,  /* reached the outermost frame: its CFI marks the return address as undefined, or
				 main's/start_thread's */
	CSINK_WALK_DEPTH,     /* the limit */
	CSINK_WALK_NO_CFI,    /* an address that no table covers, and no fallback helped */
	CSINK_WALK_BAD_STACK, /* unreadable memory, or a frame that does not lie above the last */
	CSINK_WALK_RULES,     /* a table covers it, but its rules cannot be followed */
	CSINK_WALK_NR_ENDS
};

/* What a function may keep below its stack pointer; a signal handler's frame starts under it. */
#if defined(__x86_64__)
#define CSINK_RED_ZONE_BYTES 128
#else
#define CSINK_RED_ZONE_BYTES 0
#endif

/* What one frame of the last walk was found by: rows' low half (cfi_row.h), and where its CFA is. */
struct csink_walk_trail {
	uint64_t fp;       /* the frame pointer in that frame */
	uint32_t row;      /* its kind not a plain one: found otherwise */
	uint32_t cfa_down; /* bytes from the stack's high end down to it */
};

/*
 * What a thread's walker knows of its last walk, so that the next one need not look for what did not change
 * (walk_memo.h). All zero: nothing.
 */
struct csink_walk_memo {
	uint64_t mix;   /* of the rows that it was walked by */
	uintptr_t high; /* end of the stack */
	uint32_t first,
		nr; /* where its frames lie in their room, and its trail in the trail's; nr 0: it cannot be used */
	uint32_t
		fp_until; /* frames before this one (counted from the room's first) need the frame pointer they found */
	bool crowded;     /* the walk that is on its way found no room before the frames that it could have joined */
	uint32_t rest;    /* walks to do without: the last ones had little in common */
	uint64_t nr_kept; /* different walks so far */
	struct csink_walk_trail trail[CSINK_MAX_DEPTH];
};

struct csink_walk {
	const struct csink_stack_bounds *stack;
	uint64_t *frames; /* room for max_frames; with a memo, for CSINK_MAX_DEPTH, and moved to where the walk lies in
			     it */
	uint32_t max_frames;
	struct csink_walk_memo
		*memo;           /* of walks into this buffer, with no other writer; or NULL. Of the dwarf walker */
	uint32_t nr_frames;      /* out */
	enum csink_walk_end end; /* out */
	uint64_t same;           /* out, with a memo: equal for walks of equal frames; 0: not known */
	bool keep_cfas;          /* csink_walk_cfas() will be called afterwards */
};

/* The interrupted program counter of a context. */
static inline uint64_t csink_context_pc(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return uc->uc_mcontext.pc;
#else
#error "unsupported architecture"
#endif
}

/* And the stack pointer. */
static inline uint64_t csink_context_sp(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
#else
	return uc->uc_mcontext.sp;
#endif
}

/* And the frame pointer. */
static inline uint64_t csink_context_fp(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return (uint64_t)uc->uc_mcontext.gregs[REG_RBP];
#else
	return uc->uc_mcontext.regs[29];
#endif
}

/** The method of a name ("none", "fp", "dwarf"), -EINVAL if there is none; "auto" is CSINK_NR_UNWINDS. Context: any. */
int csink_unwind_parse(const char *name);

/** The walker of a method, NULL for "none". Each needs its own init first. Context: any. */
void (*csink_unwind_walker(enum csink_unwind unwind))(struct csink_walk *walk, const ucontext_t *uc);

/** Walk by frame pointers, with sanity limits. Context: signal. */
void csink_walk_fp(struct csink_walk *walk, const ucontext_t *uc);

/** Map the row cache. Returns 0 or -errno. Context: init. */
int csink_walk_dwarf_init(void);

/**
 * Walk by our own rows of .eh_frame, by frame pointers where no table covers the code. csink_walk_dwarf_init must have
 * returned 0. Where rules cannot be followed, the walk ends, and walk->end has the reason. Context: signal.
 */
void csink_walk_dwarf(struct csink_walk *walk, const ucontext_t *uc);

/**
 * Write where the native frames of a finished walk with keep_cfas lie: cfas[i] is the lowest address of the frame of
 * frames[i], which is the upper end of the frame that it called; UINTPTR_MAX if not known.
 * @fps  receives the frame pointer in each frame. Only those of frames whose callers were not found by plain rows, and
 *       of frames that they called, are sure to be right.
 * @cfas, @fps, @scratch  arrays of walk->max_frames elements.
 * Context: signal.
 */
void csink_walk_cfas(const struct csink_walk *walk, const ucontext_t *uc, uintptr_t *cfas, uintptr_t *fps,
		     uint64_t *scratch);

/* What walks met that was not in plain tables; since the start, in all threads. */
struct csink_walk_dwarf_counts {
	uint64_t untabled_steps; /* frames of code without tables, walked by frame pointer */
	uint64_t complex_steps;  /* frames whose rules need more than a row */
};
void csink_walk_dwarf_counts(struct csink_walk_dwarf_counts *out);

#endif
