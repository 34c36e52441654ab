/*
 * The frame-pointer walker. Right for code that keeps frame pointers; on other code the chain is whatever the register
 * happened to hold, so every link must look like one: aligned, above the last, on the thread's stack if that
 * is known.
 */
#include "preload/agent/unwind/jit_objects.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/safe_load.h"

/* On a stack of unknown bounds (coroutines, sigaltstack) a single frame is not believed to be larger than this. */
#define MAX_FRAME_BYTES (1UL << 20)

#if defined(__x86_64__)
#define FRAME_ALIGN 8
#define CONTEXT_SP(uc) ((uintptr_t)(uc)->uc_mcontext.gregs[REG_RSP])
#define CONTEXT_FP(uc) ((uintptr_t)(uc)->uc_mcontext.gregs[REG_RBP])
#define STRIP_PAC(addr) (addr)
#elif defined(__aarch64__)
#define FRAME_ALIGN 16
#define CONTEXT_SP(uc) ((uintptr_t)(uc)->uc_mcontext.sp)
#define CONTEXT_FP(uc) ((uintptr_t)(uc)->uc_mcontext.regs[29])
/* A signed return address carries its signature above the 48 bits of a user address. */
#define STRIP_PAC(addr) ((addr)&0xffffffffffffULL)
#endif

static bool frame_plausible(const struct csink_walk *walk, bool bounded, uintptr_t floor, uintptr_t fp)
{
	if (fp % FRAME_ALIGN || fp < floor)
		return false;
	return bounded ? walk->stack->high - 16 >= fp : fp - floor <= MAX_FRAME_BYTES;
}

void csink_walk_fp(struct csink_walk *walk, const ucontext_t *uc)
{
	uintptr_t floor = CONTEXT_SP(uc), fp = CONTEXT_FP(uc);
	bool bounded = floor >= walk->stack->low && floor < walk->stack->high;
	struct csink_loader loader;

	csink_loader_init(&loader, walk->stack, floor);
	csink_jit_meet(); /* this walker does not know which code has no object */
	walk->nr_frames = 0;
	for (;;) {
		uint64_t caller, caller_fp;

		if (!fp) { /* the ABI's mark of the outermost frame */
			walk->end = CSINK_WALK_COMPLETE;
			return;
		}
		walk->end = CSINK_WALK_BAD_STACK;
		if (!frame_plausible(walk, bounded, floor, fp) || !csink_load_word(&loader, fp, &caller_fp) ||
		    !csink_load_word(&loader, fp + 8, &caller))
			return;
		caller = STRIP_PAC(caller);
		if (!caller) {
			walk->end = CSINK_WALK_COMPLETE;
			return;
		}
		if (walk->nr_frames == walk->max_frames) {
			walk->end = CSINK_WALK_DEPTH;
			return;
		}
		walk->frames[walk->nr_frames++] = caller;
		floor = fp + 16;
		fp = caller_fp;
	}
}
