/*
 * What the program has blocked, of the signals that are ours.
 *
 * The kernel is never asked to block them: each call of the program stores what the program wants. But a mask also
 * changes without a call: by siglongjmp, swapcontext, a handler's sa_mask and a handler's return. An anchor shows such
 * a change: a signal that no program uses. A program that blocks all signals blocks the anchor, too, and one that
 * restores a mask restores it. While the anchor is in the kernel's mask as it was at the program's last call, the
 * stored bits are valid; else the whole mask was replaced, and our signals are blocked if the anchor is.
 *
 * Each thread writes its own bits; any thread may read them. Async-signal-safe.
 */
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/calls_off.h"

#define ANCHOR SIGSTKFLT

/* A vfork child that has set its mask since its start, so that the kernel has all of it. The child shares this
 * variable.
 */
static _Atomic pid_t masked_child;

static int8_t anchor_of(uint64_t kernel)
{
	return (int8_t)(kernel >> (ANCHOR - 1) & 1);
}

bool csink_masks_are_kernels(void)
{
	pid_t pid = atomic_load_explicit(&masked_child, memory_order_relaxed);

	return CSINK_UNLIKELY(pid) && !csink_calls_are_off(CSINK_CALLS_SELF) && pid == (pid_t)csink_rawcall(SYS_getpid);
}

uint64_t csink_masks_blocked(const struct csink_thread *thread, uint64_t kernel)
{
	const struct csink_hidden *hidden = &thread->hidden;

	if (hidden->anchor == CSINK_ANCHOR_ANY || hidden->anchor == anchor_of(kernel))
		return hidden->blocked;
	return anchor_of(kernel) ? hidden->signals : 0;
}

uint64_t csink_masks_own_blocked(void)
{
	struct csink_thread *thread = csink_self;
	uint64_t kernel = 0;

	if (!thread || !thread->hidden.signals || csink_masks_are_kernels())
		return 0;
	csink_raw_mask(SIG_BLOCK, 0, &kernel);
	return csink_masks_blocked(thread, kernel);
}

void csink_masks_hide(struct csink_thread *thread, uint64_t signals, uint64_t blocked)
{
	struct csink_hidden *hidden = &thread->hidden;
	uint64_t more = signals & ~hidden->signals, kernel = 0;

	csink_raw_mask(SIG_BLOCK, 0, &kernel);
	hidden->blocked = csink_masks_blocked(thread, kernel) | (more & (kernel | blocked));
	hidden->anchor = anchor_of(kernel);
	hidden->signals |= signals;
	/*
	 * They may have come blocked from a parent, or by the attributes that the thread was made with, and some be
	 * pending: these arrive now, and are kept.
	 */
	atomic_signal_fence(memory_order_seq_cst);
	csink_raw_mask(SIG_UNBLOCK, signals & ~hidden->queued, NULL);
}

void csink_masks_set_blocked(struct csink_thread *thread, uint64_t blocked, uint64_t kernel)
{
	struct csink_hidden *hidden = &thread->hidden;

	if (blocked == hidden->blocked && anchor_of(kernel) == hidden->anchor)
		return;
	if (csink_in_vfork_child()) {
		/* No counter of ours is here: the child's mask can say it all. */
		atomic_store_explicit(&masked_child, (pid_t)csink_rawcall(SYS_getpid), memory_order_relaxed);
		csink_raw_mask(SIG_UNBLOCK, hidden->signals, NULL);
		csink_raw_mask(SIG_BLOCK, blocked, NULL);
		return;
	}
	hidden->blocked = blocked;
	hidden->anchor = anchor_of(kernel);
}

void csink_masks_reveal(struct csink_thread *thread)
{
	uint64_t kernel = 0, blocked;

	if (!thread->hidden.signals)
		return;
	csink_raw_mask(SIG_BLOCK, 0, &kernel);
	blocked = csink_masks_blocked(thread, kernel);
	if (blocked)
		csink_raw_mask(SIG_BLOCK, blocked, NULL);
	memset(&thread->hidden, 0, sizeof(thread->hidden));
}
