/*
 * csink_call_on_stack(), in assembly: see call_on_stack.h. Runs in signal handlers; uses no memory but the two stacks.
 */
#include "preload/agent/sampler/call_on_stack.h"

/* The frame is described by its frame pointer, so that debuggers and our own walker pass through it. */
#if defined(__x86_64__)
__asm__(".text\n"
	".p2align 4\n"
	".globl csink_call_on_stack\n"
	".hidden csink_call_on_stack\n"
	".type csink_call_on_stack, @function\n"
	"csink_call_on_stack:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	movq %r8, %rsp\n"
	"	movq %rdi, %rax\n"
	"	movl %esi, %edi\n"
	"	movq %rdx, %rsi\n"
	"	movq %rcx, %rdx\n"
	"	callq *%rax\n"
	"	movq %rbp, %rsp\n"
	"	popq %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size csink_call_on_stack, . - csink_call_on_stack\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".p2align 2\n"
	".globl csink_call_on_stack\n"
	".hidden csink_call_on_stack\n"
	".type csink_call_on_stack, %function\n"
	"csink_call_on_stack:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, -16]!\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset x29, -16\n"
	"	.cfi_offset x30, -8\n"
	"	mov x29, sp\n"
	"	.cfi_def_cfa_register x29\n"
	"	mov sp, x4\n"
	"	mov x5, x0\n"
	"	mov w0, w1\n"
	"	mov x1, x2\n"
	"	mov x2, x3\n"
	"	blr x5\n"
	"	mov sp, x29\n"
	"	ldp x29, x30, [sp], 16\n"
	"	.cfi_def_cfa sp, 0\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size csink_call_on_stack, . - csink_call_on_stack\n");
#else
#error "unsupported architecture"
#endif
