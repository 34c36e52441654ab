/*
 * Detects threads that their own samples keep from running: see stuck.h. Runs in the handler of the thread concerned.
 */
#include "preload/agent/sampler/stuck.h"

#include <stddef.h>

#include "preload/agent/sampler/process.h"

/* Returning from a signal and making one system call takes half of it; being switched away and back does not. */
#define AT_ONCE_NS 2000
/* A thread that waits in a loop may look like this for a moment. */
#define SAMPLES 1000
/* One that is switched away for a while may be stuck all the same: on a busy machine that happens every millisecond. */
#define SWITCH_COST 50

/* Of so many samples one is looked at, and those that follow it as long as they leave the program no time. */
#define STRIDE 32
/* So many looks make a window; it takes so many of them that say the same. */
#define LOOKS 32
#define LOOKS_CROWDED 28
/* Once a tick at most; a frequency comes to its period by some of them, or the machine stood still. */
#define THROTTLED 4

static uint64_t sum_registers(const ucontext_t *uc)
{
#if defined(__x86_64__)
	const greg_t *regs = uc->uc_mcontext.gregs;
	size_t nr = REG_RIP; /* the general ones come first */
#elif defined(__aarch64__)
	const unsigned long long *regs = uc->uc_mcontext.regs;
	size_t nr = sizeof(uc->uc_mcontext.regs) / sizeof(uc->uc_mcontext.regs[0]);
#else
#error "unsupported architecture"
#endif
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum = sum * 0x9e3779b97f4a7c15ULL + (uint64_t)regs[i];
	return sum;
}

bool csink_stuck_same_place(struct csink_stuck *stuck, const ucontext_t *uc, uint64_t overflow_ns)
{
	uint64_t sum = sum_registers(uc);
	bool same = stuck->nr && sum == stuck->sum;

	if (same && overflow_ns < stuck->left_ns + AT_ONCE_NS)
		stuck->nr++;
	else
		stuck->nr = same && stuck->nr > SWITCH_COST ? stuck->nr - SWITCH_COST : 1;
	stuck->sum = sum;
	stuck->left_ns = csink_now_ns();
	if (stuck->nr < SAMPLES)
		return false;
	stuck->nr = 0;
	return true;
}

/* Ends a look at a pair of samples, and perhaps a window of them. */
static bool judge(struct csink_stuck *stuck, bool is_crowded)
{
	bool is_stuck;

	stuck->nr_crowded += is_crowded;
	if (++stuck->nr_looks < LOOKS)
		return false;
	is_stuck = stuck->nr_crowded >= LOOKS_CROWDED;
	stuck->nr_looks = stuck->nr_crowded = 0;
	return is_stuck;
}

bool csink_stuck_no_time(struct csink_stuck *stuck, uint64_t overflow_ns)
{
	bool is_stuck = false, is_crowded = true;

	if (stuck->is_looking) {
		/* An event that the last handler itself made overflow left the program no time at all. */
		uint64_t whole = overflow_ns - stuck->overflow_ns;
		uint64_t program = overflow_ns > stuck->end_ns ? overflow_ns - stuck->end_ns : 0;

		is_crowded = program * 100 <= whole * (100 - CSINK_MAX_SHARE) || overflow_ns <= stuck->end_ns;
		is_stuck = judge(stuck, is_crowded);
	}
	stuck->is_looking = is_crowded && !is_stuck;
	stuck->left_out = stuck->is_looking ? 0 : STRIDE;
	if (stuck->is_looking) {
		stuck->overflow_ns = overflow_ns;
		stuck->end_ns = csink_now_ns();
	}
	return is_stuck;
}

bool csink_stuck_spurious(struct csink_stuck *stuck)
{
	return ++stuck->nr_spurious % SAMPLES == 0;
}

bool csink_stuck_throttled(struct csink_stuck *stuck, uint64_t times)
{
	stuck->nr_throttled += (uint32_t)times;
	if (stuck->nr_throttled < THROTTLED)
		return false;
	stuck->nr_throttled = 0;
	return true;
}
