/*
 * syscall(2) itself. Programs use it for what libc has no function for, and some of that concerns us: an exec must not
 * find a sample pending, a forked child needs a recording, a seccomp filter may forbid what we do.
 *
 * All other numbers go on to libc with registers and stack as they were, since a child that shares our memory (vfork,
 * or a clone onto another stack) returns from here a second time. Any thread of the program, in its own call; not in
 * our handlers.
 */
#include "preload/agent/interpose/syscalls.h"

#include <linux/perf_event.h>

#include "include/internal/rawcall.h"
#include "preload/agent/interpose/confine.h"
#include "preload/agent/interpose/exec.h"
#include "preload/agent/interpose/memory_calls.h"
#include "preload/agent/interpose/memory_lock.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/image.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/safe_load.h"

#if defined(__x86_64__)
#define PICK(number) "	cmpq $" #number ", %rdi\n	je 2f\n"
__asm__(".text\n"
	".p2align 4\n"
	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	/* execve, execveat, fork, exit_group, seccomp, perf_event_open, mlockall, mmap, mprotect, pkey_mprotect,
	 * munmap, mremap, prctl */
	PICK(59) PICK(322) PICK(57) PICK(231) PICK(317) PICK(298) PICK(151) PICK(9) PICK(10) PICK(329) PICK(11) PICK(25)
		PICK(157) "	cmpq $56, %rdi\n" /* clone: of a copy of the process, on a copy of the stack */
			  "	jne 1f\n"
			  "	testq $0x100, %rsi\n" /* CLONE_VM */
			  "	jnz 3f\n"
			  "	testq %rdx, %rdx\n"
			  "	jz 2f\n"
			  "	jmp 3f\n"
			  "1:	cmpq $435, %rdi\n" /* clone3: the same */
			  "	jne 3f\n"
			  "	testq %rsi, %rsi\n"
			  "	jz 3f\n"
			  "	testq $0x100, (%rsi)\n"
			  "	jnz 3f\n"
			  "	cmpq $0, 40(%rsi)\n"
			  "	jnz 3f\n"
			  "2:	jmp csink_syscall_watched\n"
			  ".globl csink_syscall\n"
			  ".hidden csink_syscall\n"
			  ".type csink_syscall, @function\n"
			  "csink_syscall:\n"
			  "	endbr64\n"
			  "3:	movq %rdi, %rax\n"
			  "	movq %rsi, %rdi\n"
			  "	movq %rdx, %rsi\n"
			  "	movq %rcx, %rdx\n"
			  "	movq %r8, %r10\n"
			  "	movq %r9, %r8\n"
			  "	movq 8(%rsp), %r9\n"
			  "	syscall\n"
			  "	cmpq $-4095, %rax\n"
			  "	jae 4f\n"
			  "	ret\n"
			  "4:	negl %eax\n"
			  "	pushq %rax\n"
			  "	.cfi_adjust_cfa_offset 8\n"
			  "	callq __errno_location@PLT\n"
			  "	popq %rcx\n"
			  "	.cfi_adjust_cfa_offset -8\n"
			  "	movl %ecx, (%rax)\n"
			  "	movq $-1, %rax\n"
			  "	ret\n"
			  "	.cfi_endproc\n"
			  ".size syscall, . - syscall\n");
#elif defined(__aarch64__)
#define PICK(number) "	cmp x0, #" #number "\n	b.eq 2f\n"
__asm__(".text\n"
	".p2align 2\n"
	".globl syscall\n"
	".type syscall, %function\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	/* execve, execveat, exit_group, seccomp, perf_event_open, mlockall, mmap, mprotect, pkey_mprotect, munmap,
	 * mremap, prctl */
	PICK(221) PICK(281) PICK(94) PICK(277) PICK(241) PICK(230) PICK(222) PICK(226) PICK(288) PICK(215) PICK(216)
		PICK(167) "	cmp x0, #220\n" /* clone: of a copy of the process, on a copy of the stack */
			  "	b.ne 1f\n"
			  "	tbnz x1, #8, 3f\n" /* CLONE_VM */
			  "	cbz x2, 2f\n"
			  "	b 3f\n"
			  "1:	cmp x0, #435\n" /* clone3: the same */
			  "	b.ne 3f\n"
			  "	cbz x1, 3f\n"
			  "	ldr x9, [x1]\n"
			  "	tbnz x9, #8, 3f\n"
			  "	ldr x9, [x1, #40]\n"
			  "	cbnz x9, 3f\n"
			  "2:	b csink_syscall_watched\n"
			  ".globl csink_syscall\n"
			  ".hidden csink_syscall\n"
			  ".type csink_syscall, %function\n"
			  "csink_syscall:\n"
			  "	hint #34\n"
			  "3:	mov x8, x0\n"
			  "	mov x0, x1\n"
			  "	mov x1, x2\n"
			  "	mov x2, x3\n"
			  "	mov x3, x4\n"
			  "	mov x4, x5\n"
			  "	mov x5, x6\n"
			  "	svc #0\n"
			  "	cmn x0, #4095\n"
			  "	b.cs 4f\n"
			  "	ret\n"
			  "4:	stp x29, x30, [sp, -32]!\n"
			  "	.cfi_adjust_cfa_offset 32\n"
			  "	.cfi_offset x30, -24\n"
			  "	neg w0, w0\n"
			  "	str w0, [sp, 16]\n"
			  "	bl __errno_location\n"
			  "	ldr w1, [sp, 16]\n"
			  "	str w1, [x0]\n"
			  "	mov x0, #-1\n"
			  "	ldp x29, x30, [sp], 32\n"
			  "	.cfi_adjust_cfa_offset -32\n"
			  "	.cfi_restore x30\n"
			  "	ret\n"
			  "	.cfi_endproc\n"
			  ".size syscall, . - syscall\n");
#endif

static long forked(long result)
{
	if (result == 0)
		csink_image_begin_child();
	return result;
}

/* Two events that raise SIGTRAP at the same moment raise one. */
static void before_perf_open(const struct perf_event_attr *attr)
{
	if (!csink_self || csink_in_vfork_child())
		return;
	csink_self->program_has_events = true;
	if (csink_readable((uintptr_t)attr, sizeof(*attr)) && attr->sigtrap)
		csink_engine_leave_sigtrap(csink_self, "the program has events of its own that raise SIGTRAP");
}

long csink_syscall_watched(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_execve:
	case SYS_execveat:
		return csink_exec_by_number(number, a, b, c, d, e);
	case SYS_exit_group:
		csink_image_end();
		break;
	case SYS_perf_event_open:
		before_perf_open((const struct perf_event_attr *)a);
		break;
	case SYS_mlockall:
		return csink_memory_lock((int)a);
	case SYS_mmap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
	case SYS_munmap:
	case SYS_mremap:
		return csink_memory_call(number, a, b, c, d, e, f);
	case SYS_prctl:
	case SYS_seccomp:
		return csink_confine_call(number, a, b, c, d, e);
#ifdef SYS_fork
	case SYS_fork:
#endif
	case SYS_clone:
	case SYS_clone3:
		return forked(csink_raw_to_libc(csink_rawcall(number, a, b, c, d, e, f)));
	}
	return csink_raw_to_libc(csink_rawcall(number, a, b, c, d, e, f));
}
