/*
 * Spins where a stack cannot be walked to its end, or is easily walked wrong, each way for some CPU time.
 *
 *   walk_ends MS WAY...
 *
 *   code   in code made at run time that has no frame, called with a frame pointer that is none
 *   frame  while the frame pointer, by which the function's frame is found, points to where no memory is
 *   rules  in a function whose rules hold an operation that does not exist
 *   sum    in a function whose rules add registers, which only an evaluation can follow
 *   large  in a function with an array of 24 KiB
 *   own    in assembly that assembly has called, whose own frame is found by a register that no callee need preserve
 *   kernel in assembly without tables that has aligned its stack and goes on for 24 KiB, as OpenBLAS has it, called by
 *          a pointer, by a function that has a frame pointer
 *   stale  in code made at run time that has a frame, on top of which a former call's two words lie
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__x86_64__)
void spin_in(void (*code)(uint64_t rounds), uint64_t rounds);
void spin_frame(uint64_t rounds);
void spin_rules(uint64_t rounds);
void spin_sum(uint64_t rounds);
void spin_own(uint64_t rounds);
void spin_kernel(uint64_t rounds);

__asm__(".text\n"
	".type spin_in, @function\nspin_in: .cfi_startproc\n"
	"	push %rbp\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset rbp, 0\n"
	"	mov %rdi, %rax\n	mov %rsi, %rdi\n	mov $1, %ebp\n	call *%rax\n"
	"	pop %rbp\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore rbp\n	ret\n"
	"	.cfi_endproc\n.size spin_in, .-spin_in\n"

	".type spin_frame, @function\nspin_frame: .cfi_startproc\n"
	"	push %rbp\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset rbp, 0\n"
	"	mov %rsp, %rbp\n	.cfi_def_cfa_register rbp\n"
	"	mov %rbp, %rdx\n	mov $0x10000, %ebp\n"
	"1:	dec %rdi\n	jnz 1b\n"
	"	mov %rdx, %rbp\n	pop %rbp\n	.cfi_def_cfa rsp, 8\n	ret\n"
	"	.cfi_endproc\n.size spin_frame, .-spin_frame\n"

	".type spin_rules, @function\nspin_rules: .cfi_startproc\n"
	"	.cfi_escape 0x0f, 2, 0x77, 8\n" /* DW_CFA_def_cfa_expression: rsp + 8 */
	"	nop\n"
	"	.cfi_escape 0x0f, 1, 0xe0\n" /* DW_OP_lo_user: not assigned */
	"1:	dec %rdi\n	jnz 1b\n"
	"	.cfi_def_cfa rsp, 8\n	ret\n"
	"	.cfi_endproc\n.size spin_rules, .-spin_rules\n"

	".type spin_sum, @function\nspin_sum: .cfi_startproc\n"
	"	.cfi_escape 0x0f, 8, 0x77, 4, 0x77, 4, 0x22, 0x77, 0, 0x1c\n" /* CFA: rsp + 4 + rsp + 4 - rsp */
	"1:	dec %rdi\n	jnz 1b\n	ret\n"
	"	.cfi_endproc\n.size spin_sum, .-spin_sum\n"

	/* As AES-GCM of OpenSSL has it. */
	".type spin_own_part, @function\nspin_own_part: .cfi_startproc\n"
	"1:	dec %rdi\n	jnz 1b\n	ret\n"
	"	.cfi_endproc\n.size spin_own_part, .-spin_own_part\n"
	".type spin_own, @function\nspin_own: .cfi_startproc\n"
	"	lea (%rsp), %rax\n	.cfi_def_cfa_register rax\n"
	"	push %rbx\n	.cfi_offset rbx, -16\n	sub $0x100, %rsp\n	and $-128, %rsp\n"
	"	call spin_own_part\n"
	"	mov -8(%rax), %rbx\n	.cfi_restore rbx\n	lea (%rax), %rsp\n	.cfi_def_cfa_register "
	"rsp\n	ret\n"
	"	.cfi_endproc\n.size spin_own, .-spin_own\n"

	/* Of another function like it, with another frame, before: it is not to be taken for this one. */
	".type spin_other, @function\nspin_other:\n"
	"	sub $0x40, %rsp\n	mov %rbx, (%rsp)\n	mov %rsp, %rbx\n"
	"	sub $0x2080, %rsp\n	and $-4096, %rsp\n"
	"	mov %rbx, %rsp\n	mov (%rsp), %rbx\n	add $0x40, %rsp\n	ret\n"
	".size spin_other, .-spin_other\n"
	".type spin_kernel, @function\nspin_kernel:\n"
	"	sub $0x60, %rsp\n	mov %rbx, (%rsp)\n	mov %rbp, 8(%rsp)\n	mov %r12, 0x10(%rsp)\n"
	"	mov %rsp, %rbx\n	sub $0x2080, %rsp\n	and $-4096, %rsp\n"
	"	mov %rdi, (%rsp)\n	mov %rdi, 0x1000(%rsp)\n	mov %rdi, 0x2000(%rsp)\n"
	"	xor %ebp, %ebp\n	mov %rdi, %r12\n	shr %r12\n"
	"1:	dec %rdi\n	cmp %r12, %rdi\n	jae 1b\n	.skip 24576, 0x90\n2:	dec "
	"%rdi\n	jns 2b\n"
	"	mov %rbx, %rsp\n	mov (%rsp), %rbx\n	mov 8(%rsp), %rbp\n	mov 0x10(%rsp), %r12\n	add "
	"$0x60, %rsp\n	ret\n"
	".size spin_kernel, .-spin_kernel\n");

/* dec %rdi; jnz .-3; ret */
static const unsigned char made[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};

static const unsigned char made_stale[] = {
	0x55,                    /* push %rbp */
	0x48, 0x89, 0xe5,        /* mov %rsp, %rbp */
	0xe8, 11,   0,    0,  0, /* call the end: it leaves this frame's pointer and an address to return to */
	0x48, 0x83, 0xec, 16,    /* sub $16, %rsp */
	0x48, 0xff, 0xcf,        /* dec %rdi */
	0x75, 0xfb,              /* jnz .-3 */
	0xc9, 0xc3,              /* leave; ret */
	0x55, 0x5d, 0xc3,        /* push %rbp; pop %rbp; ret */
};

static void *make(const unsigned char *code, size_t bytes)
{
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		exit(1);
	return memcpy(map, code, bytes);
}

static void spin_code(uint64_t rounds)
{
	static void *map;

	map = map ? map : make(made, sizeof(made));
	spin_in((void (*)(uint64_t))(uintptr_t)map, rounds);
}

static void spin_stale(uint64_t rounds)
{
	static void *map;

	map = map ? map : make(made_stale, sizeof(made_stale));
	((void (*)(uint64_t))(uintptr_t)map)(rounds);
	__asm__ volatile("" ::: "memory"); /* no call in place of a return */
}

/* What is left of it lies where spin_kernel() leaves its frame unwritten. */
__attribute__((noinline)) static uint64_t leaves(uint64_t depth)
{
	volatile uint64_t here[4] = {depth, (uint64_t)(uintptr_t)__builtin_return_address(0)};

	return depth ? leaves(depth - 1) + here[0] : here[1];
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void spin_aligned(uint64_t rounds)
{
	static void (*volatile kernel)(uint64_t rounds) = spin_kernel;

	leaves(20);
	kernel(rounds);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void spin_large(uint64_t rounds)
{
	volatile char array[24576];

	array[0] = 1;
	while (rounds--)
		array[rounds % sizeof(array)]++;
}

/* What was never written to has no memory yet, and the kernel's copy of a stack ends there: so it is written to from
 * its upper end on. */
__attribute__((noinline)) static int touch_stack(int kib)
{
	volatile char array[1024];

	array[0] = 0;
	return kib ? touch_stack(kib - 1) + array[0] : 0;
}

static const struct way {
	const char *name;
	void (*spin)(uint64_t rounds);
} ways[] = {{"code", spin_code},   {"frame", spin_frame}, {"rules", spin_rules},    {"sum", spin_sum},
	    {"large", spin_large}, {"own", spin_own},     {"kernel", spin_aligned}, {"stale", spin_stale}};

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 100;

	touch_stack(48);
	for (int i = 2; i < argc; i++) {
		const struct way *way = ways;
		clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

		while (strcmp(way->name, argv[i]))
			if (++way == ways + sizeof(ways) / sizeof(*ways))
				return 2;
		while (clock() < end)
			way->spin(1000000);
	}
	puts("done");
	return 0;
}
#else
int main(void)
{
	fputs("walk_ends: written for x86-64\n", stderr);
	return 2;
}
#endif
