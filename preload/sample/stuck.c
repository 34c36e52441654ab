#include "preload/sample/stuck.h"

#include <stddef.h>

#include "preload/sample/process.h"

/* Returning from a signal and making one system call takes half of it; being switched away and back does not. */
#define AT_ONCE_NS 2000
/* A thread that waits in a loop may look like this for a moment. */
#define SAMPLES 1000
/* One that is switched away for a while may be stuck all the same: on a busy machine that happens every millisecond. */
#define SWITCH_COST 50

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

bool csink_stuck_look(struct csink_stuck *stuck, const ucontext_t *uc, uint64_t overflow_ns)
{
	uint64_t sum = sum_registers(uc);
	bool same = stuck->nr && sum == stuck->sum;

	if (same && overflow_ns < stuck->left_ns + AT_ONCE_NS)
		stuck->nr++;
	else
		stuck->nr = same && stuck->nr > SWITCH_COST ? stuck->nr - SWITCH_COST : 1;
	stuck->sum = sum;
	stuck->left_ns = csink_now_ns();
	return stuck->nr >= SAMPLES;
}

bool csink_stuck_unheeded(struct csink_stuck *stuck)
{
	return ++stuck->unheeded % SAMPLES == 0;
}
