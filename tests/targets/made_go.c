/*
 * A program that is laid out as Go's are: with the mark of Go, a table of its functions (of the form since Go 1.20),
 *and code that goes from a goroutine's stack to the thread's, as the runtime of Go up to 1.20 does ("old") or
 *since 1.21 ("new"). Uses half a second of CPU time in each of two places:
 *
 *	made_go old|new [moved]
 *
 * moved: the goroutine's stack is moved before, as the runtime does while the thread is on its own stack.
 *
 *	runtime.goexit > main.work > main.middle > runtime.systemstack > main.inner > made_go_spin
 *	runtime.goexit > main.work > main.grower > runtime.morestack > runtime.newstack > made_go_spin
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
struct goroutine {
	uint64_t low, high, others[4];
	struct thread *thread;
	struct {
		uint64_t sp, pc, others[4], bp;
	} saved;
};

struct thread {
	struct goroutine *own;
	uint64_t others[23];
	struct goroutine *running;
};

_Static_assert(offsetof(struct goroutine, thread) == 0x30 && offsetof(struct goroutine, saved) == 0x38 &&
		       offsetof(struct goroutine, saved.bp) == 0x68 && offsetof(struct thread, running) == 0xc0,
	       "as the code has it");

void made_go_spin(void);
void made_go_run(void *high);

extern __thread struct goroutine *made_go_current;
extern struct goroutine made_go_own;
extern uint64_t made_go_thread_sp;
extern int made_go_is_new;
__thread struct goroutine *made_go_current __attribute__((tls_model("local-exec")));
struct goroutine made_go_own;
uint64_t made_go_thread_sp;
int made_go_is_new;

static char stacks[2][1 << 16] __attribute__((aligned(16)));
static struct goroutine other;
static int is_to_move;

/* Frame pointers that are saved in the stack lead to where it is then. Nothing is left where it was. */
static void move_stack(void)
{
	uint64_t by = (uint64_t)(stacks[1] - stacks[0]), *saved;

	memcpy(stacks[1], stacks[0], sizeof(stacks[0]));
	other.saved.sp += by;
	other.saved.bp += by;
	for (saved = (uint64_t *)(uintptr_t)other.saved.bp; *saved; saved = (uint64_t *)(uintptr_t)*saved)
		*saved += by;
	memset(stacks[0], 0xff, sizeof(stacks[0]));
	is_to_move = 0;
}

void made_go_spin(void)
{
	static volatile uint64_t sum;
	clock_t end = clock() + CLOCKS_PER_SEC / 2;

	if (is_to_move)
		move_stack();
	while (clock() < end)
		for (int i = 0; i < 1000000; i++)
			sum += (uint64_t)i;
}

/* clang-format off */
#define CURRENT "%fs:made_go_current@tpoff"
#define ENTER "	push %rbp\n	mov %rsp, %rbp\n	sub $32, %rsp\n"
#define LEAVE "	add $32, %rsp\n	pop %rbp\n	ret\n"

/* Save what systemstack does, and go to the thread's stack; call what %rdi has the address of; go back. */
#define SYSTEMSTACK(before, behind)                                                                                    \
	before "	mov " CURRENT ", %rax\n	mov 0x30(%rax), %rbx\n	mov (%rbx), %rdx\n"                             \
	       "	mov %rsp, 0x38(%rax)\n	mov %rbp, 0x68(%rax)\n	mov %rdx, " CURRENT "\n"                       \
	       "	mov 0x38(%rdx), %rsp\n	mov %rdi, %rdx\n	mov (%rdi), %rdi\n	call *%rdi\n"                              \
	       "	mov " CURRENT ", %rax\n	mov 0x30(%rax), %rbx\n	mov 0xc0(%rbx), %rax\n"                         \
	       "	mov %rax, " CURRENT "\n	mov 0x38(%rax), %rsp\n" behind

/* What was called has no frame yet: its registers are saved, and taken back behind newstack. */
#define MORESTACK(before)                                                                                              \
	"	mov " CURRENT ", %rsi\n	mov 0x30(%rsi), %rbx\n	mov (%rsp), %rax\n	mov %rax, 0x40(%rsi)\n"              \
	"	lea 8(%rsp), %rax\n	mov %rax, 0x38(%rsi)\n	mov %rbp, 0x68(%rsi)\n	mov (%rbx), %rbx\n"                        \
	"	mov %rbx, " CURRENT "\n	mov 0x38(%rbx), %rsp\n" before "	call runtime.newstack\n"                      \
	"	mov " CURRENT ", %rax\n	mov 0x30(%rax), %rbx\n	mov 0xc0(%rbx), %rbx\n	mov %rbx, " CURRENT "\n"       \
	"	mov 0x38(%rbx), %rsp\n	mov 0x68(%rbx), %rbp\n	jmp *0x40(%rbx)\n"

__asm__(".text\n"
	".p2align 4\n"
	"made_go_text:\n"
	"runtime.goexit:\n	nop\n	mov made_go_thread_sp(%rip), %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n	ret\n"
	"main.work:\n" ENTER "	call main.middle\n	call main.grower\n" LEAVE
	"main.middle:\n" ENTER "	lea made_go_inner(%rip), %rdi\n	cmpl $0, made_go_is_new(%rip)\n	jne 1f\n"
	"	call made_go.old_systemstack\n	jmp 2f\n"
	"1:	call made_go.new_systemstack\n2:\n" LEAVE
	"main.grower:\n	cmpl $0, made_go_is_new(%rip)\n	jne 1f\n	call made_go.old_morestack\n	ret\n"
	"1:	call made_go.new_morestack\n	ret\n"
	"made_go.old_systemstack:\n" SYSTEMSTACK("", "	movq $0, 0x38(%rax)\n	ret\n")
	"made_go.new_systemstack:\n"
	SYSTEMSTACK("	push %rbp\n	mov %rsp, %rbp\n", "	mov 0x68(%rax), %rbp\n	movq $0, 0x38(%rax)\n	pop %rbp\n	ret\n")
	"made_go.old_morestack:\n" MORESTACK("")
	"made_go.new_morestack:\n" MORESTACK("	mov 0x68(%rbx), %rbp\n")
	"main.inner:\n" ENTER "	call made_go_spin\n" LEAVE
	"runtime.newstack:\n" ENTER "	call made_go_spin\n" LEAVE
	"made_go_etext:\n"
	"made_go_run:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, made_go_thread_sp(%rip)\n	lea -512(%rsp), %rax\n	and $-16, %rax\n"
	"	mov %rax, made_go_own+0x38(%rip)\n	mov %rdi, %rsp\n	xor %ebp, %ebp\n"
	"	lea runtime.goexit+1(%rip), %rax\n	push %rax\n	jmp main.work\n"
	".section .data.rel.ro, \"aw\"\n	.p2align 3\n"
	"made_go_inner:	.quad main.inner\n"
	".section .note.go.buildid, \"a\", @note\n	.p2align 2\n	.long 4, 4, 4\n	.ascii \"Go\\0\\0made\"\n");

/* The table. A function: its name, where it is, its values of the stack pointer, and what the compiler says of it. */
#define ENTRY(label) "	.long " label " - made_go_text, made_go." label ".info - made_go_ftab\n"
#define INFO(label, name, sp, flag)                                                                                    \
	"made_go." label ".info:\n	.long " label " - made_go_text, " name " - made_go_names, 0, 0\n"              \
	"	.long " sp " - made_go_values, 0, made_go_sp0 - made_go_values, 0, 0, 1\n	.byte 0, " flag ", 0, 0\n"
#define NAME(label, name) label ":	.asciz \"" name "\"\n"
#define VALUES(label, value) label ":	.byte 2 * (" value " + 1)\n	.uleb128 0x4000\n	.byte 0\n"

__asm__(".section .gopclntab, \"aw\", @progbits\n"
	"	.p2align 5\n"
	"made_go_table:	.long 0xfffffff1\n	.byte 0, 0, 1, 8\n"
	"	.quad 10, 0, made_go_text, made_go_names - made_go_table, made_go_units - made_go_table\n"
	"	.quad made_go_units - made_go_table, made_go_values - made_go_table, made_go_ftab - made_go_table\n"
	"made_go_names:	.byte 0\n"
	NAME("made_go_n1", "runtime.goexit") NAME("made_go_n2", "main.work") NAME("made_go_n3", "main.middle")
	NAME("made_go_n4", "main.grower") NAME("made_go_n5", "runtime.systemstack")
	NAME("made_go_n6", "runtime.morestack") NAME("made_go_n7", "main.inner") NAME("made_go_n8", "runtime.newstack")
	"made_go_units:	.byte 0\n"
	"made_go_values:	.byte 0\n" VALUES("made_go_sp0", "0") VALUES("made_go_sp8", "8")
	VALUES("made_go_sp40", "40")
	"	.p2align 2\n"
	"made_go_ftab:\n"
	ENTRY("runtime.goexit") ENTRY("main.work") ENTRY("main.middle") ENTRY("main.grower")
	ENTRY("made_go.old_systemstack") ENTRY("made_go.new_systemstack") ENTRY("made_go.old_morestack")
	ENTRY("made_go.new_morestack") ENTRY("main.inner") ENTRY("runtime.newstack")
	"	.long made_go_etext - made_go_text\n"
	INFO("runtime.goexit", "made_go_n1", "made_go_sp0", "1") INFO("main.work", "made_go_n2", "made_go_sp40", "0")
	INFO("main.middle", "made_go_n3", "made_go_sp40", "0") INFO("main.grower", "made_go_n4", "made_go_sp0", "0")
	INFO("made_go.old_systemstack", "made_go_n5", "made_go_sp0", "2")
	INFO("made_go.new_systemstack", "made_go_n5", "made_go_sp8", "2")
	INFO("made_go.old_morestack", "made_go_n6", "made_go_sp0", "2")
	INFO("made_go.new_morestack", "made_go_n6", "made_go_sp0", "2")
	INFO("main.inner", "made_go_n7", "made_go_sp40", "0") INFO("runtime.newstack", "made_go_n8", "made_go_sp40", "0")
	".text\n");

/* clang-format on */

int main(int argc, char **argv)
{
	static struct thread thread = {.own = &made_go_own, .running = &other};

	other.thread = made_go_own.thread = &thread;
	other.low = (uint64_t)(uintptr_t)stacks[0];
	other.high = other.low + sizeof(stacks[0]);
	made_go_current = &other;
	made_go_is_new = argc > 1 && !strcmp(argv[1], "new");
	is_to_move = argc > 2 && !strcmp(argv[2], "moved");
	made_go_run(stacks[0] + sizeof(stacks[0]));
	puts("done");
	return 0;
}
#else
int main(void)
{
	puts("done");
	return 0;
}
#endif
