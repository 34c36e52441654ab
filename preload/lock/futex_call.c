/*
 * syscall(2): programs and C++'s libraries wait in futex(2) by it, some in futex_waitv(2). All other numbers, and
 * operations that do not wait, go on with registers and stack as they were, at the cost of a compare: a child that
 * shares memory (vfork, clone) returns from here a second time. Any thread; in handlers, too.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/lock/lock_impl.h"
#include "preload/objects/caller.h"
#include "preload/objects/next.h"

/* The operations that wait, a bit each. */
#define WAITING 0x2a41
_Static_assert(WAITING == (1 << FUTEX_WAIT | 1 << FUTEX_LOCK_PI | 1 << FUTEX_WAIT_BITSET | 1 << FUTEX_WAIT_REQUEUE_PI |
			   1 << 13 /* FUTEX_LOCK_PI2 */),
	       "operations of futex(2)");

_Static_assert(WAITING == 0x2a41 && FUTEX == 32 && FUTEXES == 33, "numbers of the assembly");

long csink_first_syscall(long number, ...) CSINK_HIDDEN;
long (*csink_next_syscall)(long number, ...) CSINK_HIDDEN = csink_first_syscall;
void *csink_find_syscall(void) CSINK_HIDDEN;

void *csink_find_syscall(void)
{
	void *found = csink_next_function("syscall");

	__atomic_store_n((void **)&csink_next_syscall, found, __ATOMIC_RELAXED);
	return found;
}

#if defined(__x86_64__)
_Static_assert(SYS_futex == 202 && FUTEX_CMD_MASK == ~0x180, "numbers of the assembly");
__asm__(".text\n"
	".p2align 4\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpq $202, %rdi\n"
	"	je 2f\n"
	"	cmpq $449, %rdi\n" /* futex_waitv */
	"	je 3f\n"
	"1:	jmp *csink_next_syscall(%rip)\n"
	"2:	movl %edx, %eax\n"
	"	andl $~0x180, %eax\n"
	"	cmpl $13, %eax\n"
	"	ja 1b\n"
	"	movl $0x2a41, %r10d\n"
	"	btl %eax, %r10d\n"
	"	jnc 1b\n"
	"	movl $32, %eax\n"
	"	jmp 4f\n"
	"3:	movl $33, %eax\n"
	"4:	movq %rsi, %rdi\n"
	"	movq %rdx, %rsi\n"
	"	movq %rcx, %rdx\n"
	"	movl %eax, %ecx\n"
	"	jmp csink_slow_entry\n"
	"	.cfi_endproc\n"
	".size syscall, . - syscall\n"
	".type csink_first_syscall, @function\n"
	"csink_first_syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	subq $56, %rsp\n"
	"	.cfi_def_cfa_offset 64\n"
	"	movq %rdi, (%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	movq %rdx, 16(%rsp)\n"
	"	movq %rcx, 24(%rsp)\n"
	"	movq %r8, 32(%rsp)\n"
	"	movq %r9, 40(%rsp)\n"
	"	call csink_find_syscall\n"
	"	movq (%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	movq 16(%rsp), %rdx\n"
	"	movq 24(%rsp), %rcx\n"
	"	movq 32(%rsp), %r8\n"
	"	movq 40(%rsp), %r9\n"
	"	addq $56, %rsp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size csink_first_syscall, . - csink_first_syscall\n");
#elif defined(__aarch64__)
_Static_assert(SYS_futex == 98 && FUTEX_CMD_MASK == ~0x180, "numbers of the assembly");
__asm__(".text\n"
	".p2align 2\n"
	".globl syscall\n"
	".type syscall, %function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	cmp x0, #98\n"
	"	b.eq 2f\n"
	"	cmp x0, #449\n" /* futex_waitv */
	"	b.eq 3f\n"
	"1:	adrp x16, csink_next_syscall\n"
	"	ldr x16, [x16, #:lo12:csink_next_syscall]\n"
	"	br x16\n"
	"2:	bic w9, w2, #0x180\n"
	"	cmp w9, #13\n"
	"	b.hi 1b\n"
	"	mov w10, #0x2a41\n"
	"	lsr w10, w10, w9\n"
	"	tbz w10, #0, 1b\n"
	"	mov w9, #32\n"
	"	b 4f\n"
	"3:	mov w9, #33\n"
	"4:	mov x0, x1\n"
	"	mov x1, x2\n"
	"	mov x2, x3\n"
	"	mov w3, w9\n"
	"	b csink_slow_entry\n"
	"	.cfi_endproc\n"
	".size syscall, . - syscall\n"
	".type csink_first_syscall, %function\n"
	"csink_first_syscall:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	stp x29, x30, [sp, -80]!\n"
	"	.cfi_def_cfa_offset 80\n"
	"	.cfi_offset x29, -80\n"
	"	.cfi_offset x30, -72\n"
	"	stp x0, x1, [sp, 16]\n"
	"	stp x2, x3, [sp, 32]\n"
	"	stp x4, x5, [sp, 48]\n"
	"	str x6, [sp, 64]\n"
	"	bl csink_find_syscall\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, 16]\n"
	"	ldp x2, x3, [sp, 32]\n"
	"	ldp x4, x5, [sp, 48]\n"
	"	ldr x6, [sp, 64]\n"
	"	ldp x29, x30, [sp], 80\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size csink_first_syscall, . - csink_first_syscall\n");
#endif

enum { FUTEX_WAITV_CALL = 449 };

long csink_lock_futexes(uintptr_t words, uintptr_t nr, uintptr_t flags, const struct csink_caller *caller)
{
	return csink_next_syscall(FUTEX_WAITV_CALL, words, nr, flags, caller->more[0], caller->more[1]);
}

uintptr_t csink_lock_first_word(uintptr_t words, uintptr_t nr)
{
	const uint64_t *word = (const uint64_t *)words + 1; /* struct futex_waitv: value, address, flags */

	return words && nr && csink_raw_try_load(word) == -EINVAL ? *word : 0;
}

long csink_lock_futex(uintptr_t word, uintptr_t operation, uintptr_t value, const struct csink_caller *caller)
{
#if defined(__x86_64__)
	uintptr_t last = *(const uintptr_t *)caller->sp; /* the seventh argument, on the stack */
#else
	uintptr_t last = caller->more[2];
#endif

	return csink_next_syscall(SYS_futex, word, operation, value, caller->more[0], caller->more[1], last);
}
