/* Code recognised by its bytes; see code.h. Any thread; async-signal-safe. */
#include "preload/agent/unwind/code.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "preload/agent/unwind/kept_pages.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/aligned_code.h"
#include "preload/core/calls_off.h"
#include "preload/core/safe_load.h"

/* Code without tables is some assembly's, and short. */
#define MAX_CALLED_BYTES 16384

/* Reads across the bounds of variables, which AddressSanitizer would report. */
__attribute__((no_sanitize_address)) static void copy_bytes(uint8_t *bytes, uintptr_t pc, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		bytes[i] = ((const volatile uint8_t *)pc)[i];
}

/* Code that ran may be unreadable by now, or never have been code. Another thread may be unmapping it: what a
 * just-in-time compiler makes comes and goes. */
static bool take_code(uintptr_t pc, uint8_t *bytes, size_t nr)
{
	if (!csink_calls_are_off(CSINK_CALLS_SCAN))
		return csink_copy_by_call(bytes, (const void *)pc, nr);
	if (!csink_readable(pc, nr))
		return false;
	copy_bytes(bytes, pc, nr);
	return true;
}

static bool code_is(uintptr_t pc, const void *bytes, size_t nr)
{
	uint8_t code[16];

	return take_code(pc, code, nr) && !memcmp(code, bytes, nr);
}

#if defined(__x86_64__)
enum { NEAR_BEFORE = 16 }; /* bytes that are read before an address */

/* The thread is running code in this page, so that it stays mapped: if the page is known, it is read in place. A copy
 * by process_vm_readv(2), which does not obey protection keys, does not make it known. */
void csink_code_read_near(uintptr_t pc, struct csink_code_near *near)
{
	uintptr_t start = pc - NEAR_BEFORE, page = start >> 12;
	uint64_t asked = CSINK_KEPT_NONE;

	near->start = start;
	if ((start + sizeof(near->bytes) - 1) >> 12 == page) {
		if (csink_kept_has(page)) {
			copy_bytes(near->bytes, start, sizeof(near->bytes));
			return;
		}
		asked = csink_kept_ask(page);
	}
	if (!take_code(start, near->bytes, sizeof(near->bytes)))
		near->start = UINTPTR_MAX;
	else if (asked != CSINK_KEPT_NONE && csink_readable(start, 1))
		csink_kept_put(page, asked);
}

static bool take_near(const struct csink_code_near *near, uintptr_t pc, uint8_t *bytes, size_t nr)
{
	uintptr_t at = pc - near->start;

	if (at + nr > sizeof(near->bytes) || at > sizeof(near->bytes))
		return take_code(pc, bytes, nr);
	memcpy(bytes, near->bytes + at, nr);
	return true;
}

bool csink_code_is_sigreturn(uintptr_t pc)
{
	static const uint8_t by_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15, %rax; syscall */
	static const uint8_t by_eax[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};             /* mov $15, %eax; syscall */

	enum { BEFORE = 7 };
	uint8_t around[BEFORE + sizeof(by_rax)];
	bool has_syscall = !take_code(pc - BEFORE, around, sizeof(around));

	/* Most code has none near, and is read at once. */
	for (size_t i = 0; i + 1 < sizeof(around) && !has_syscall; i++)
		has_syscall = !memcmp(around + i, by_rax + BEFORE, 2);
	if (!has_syscall)
		return false;
	return code_is(pc, by_rax, sizeof(by_rax)) || code_is(pc - BEFORE, by_rax, sizeof(by_rax)) ||
	       code_is(pc, by_eax, sizeof(by_eax)) || code_is(pc - 5, by_eax, sizeof(by_eax));
}

bool csink_code_is_start_context(uintptr_t pc)
{
	return code_is(pc, "\x48\x89\xdc", 3); /* mov %rbx, %rsp */
}

/* jmp *slot(%rip), perhaps after endbr64, perhaps with a bnd prefix: where the distance to the slot is, or 0. */
static size_t stub_jump(const uint8_t *code)
{
	size_t at = memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 0 : 4;

	at += code[at] == 0xf2;
	return code[at] == 0xff && code[at + 1] == 0x25 ? at + 2 : 0;
}

static bool is_stub_jump(const uint8_t *code)
{
	return stub_jump(code) > 0;
}

/* Stubs: jmp *slot(%rip); push $index; jmp to the first one. */
int csink_code_pushed(const struct csink_code_near *near, uintptr_t pc)
{
	uint8_t around[11 + 8], *code = around + 11;

	if (near->start == UINTPTR_MAX && !csink_readable(pc, 1))
		return 0;
	if (!take_near(near, pc - 11, around, sizeof(around)))
		return -1;
	if (is_stub_jump(code) || (code[0] == 0x68 && code[5] == 0xe9 && is_stub_jump(code - 6)))
		return 0;
	return code[0] == 0xe9 && code[-5] == 0x68 && is_stub_jump(code - 11) ? 8 : -1;
}

bool csink_code_has_word(uintptr_t pc)
{
	enum { AT_MOST = 24 }; /* from there to the end of _init */
	uint8_t before[AT_MOST], *code = before + AT_MOST - 4;

	if (!take_code(pc - AT_MOST, before, AT_MOST))
		return false;
	for (int back = 0; back <= AT_MOST - 4; back++) {
		if (!memcmp(code - back, "\x48\x83\xec\x08", 4)) /* sub $8, %rsp */
			return true;
		if (!memcmp(code - back, "\x48\x83\xc4\x08", 4)) /* add $8, %rsp */
			return false;
	}
	return false;
}

static bool read_code(const void *unused, uint64_t at, void *to, size_t bytes)
{
	(void)unused;
	return take_code(at, to, bytes);
}

/* The nearest alignment before pc, in @room, with what comes before it. NULL: there is none. */
static const uint8_t *find_alignment(uintptr_t pc, uint8_t room[CSINK_ALIGNED_ROOM])
{
	/* The one that was found last, and how many bytes behind it are known to have no other one; an address from
	 * which there was none, and so there is none from the 4 KiB before it. */
	static _Atomic uint64_t last;
	static _Atomic uintptr_t barren;
	uint64_t known = atomic_load_explicit(&last, memory_order_relaxed), at = known >> 16;
	const uint8_t *code = room + CSINK_ALIGNED_PROLOGUE;

	if (pc - at <= (uint16_t)known &&
	    take_code(at - CSINK_ALIGNED_PROLOGUE, room, CSINK_ALIGNED_PROLOGUE + CSINK_ALIGNED_BYTES) &&
	    csink_aligned_is(code))
		return code;
	if (atomic_load_explicit(&barren, memory_order_relaxed) - pc < 4096)
		return NULL;
	code = csink_aligned_find(read_code, NULL, pc, room, &at);
	if (code)
		atomic_store_explicit(&last, at << 16 | (pc - at), memory_order_relaxed);
	else
		atomic_store_explicit(&barren, pc, memory_order_relaxed);
	return code;
}

uintptr_t csink_code_aligned(uintptr_t pc, const mcontext_t *context, uintptr_t *saved_fp)
{
	uint64_t sp = (uint64_t)context->gregs[REG_RSP];
	uint8_t room[CSINK_ALIGNED_ROOM];
	const uint8_t *code;

	if (sp % CSINK_ALIGNED_SP || csink_calls_are_off(CSINK_CALLS_SCAN) || !(code = find_alignment(pc, room)))
		return 0;
	return csink_aligned_return(
		code, sp, (uint64_t)context->gregs[csink_aligned_keeps_r15(code) ? REG_R15 : REG_RBX], saved_fp);
}

/* mov %rbp, %rsp; pop %rbp; and perhaps a comparison of %rcx, or %r8: V8's code goes on with the number of arguments.
 */
static bool is_behind_frame(const struct csink_code_near *near, uintptr_t pc)
{
	static const char end[] = "\x48\x8b\xe5\x5d", compare[] = "\x48\x83\xf9", other[] = "\x49\x83\xf8";
	uint8_t before[8], *code = before + sizeof(before);

	return take_near(near, pc - sizeof(before), before, sizeof(before)) &&
	       (!memcmp(code - 4, end, 4) ||
		(!memcmp(code - 8, end, 4) && (!memcmp(code - 4, compare, 3) || !memcmp(code - 4, other, 3))));
}

/* What V8's code begins with, if it may be invalid: mov, testb, jne (or je over a jmp, near or far); push %rbp; mov
 * %rsp, %rbp. */
static bool is_before_frame(const struct csink_code_near *near, uintptr_t pc)
{
	uint8_t code[8 + 15 + 4];

	if (!take_near(near, pc, code, sizeof(code)))
		return false;
	for (const uint8_t *jump = code; jump <= code + 8; jump += 4) {
		size_t bytes = 0;

		if (!memcmp(jump, "\x0f\x85", 2))
			bytes = 6;
		else if (!memcmp(jump, "\x74\x05\xe9", 3))
			bytes = 7;
		else if (!memcmp(jump, "\x74\x0d\x49\xba", 4))
			bytes = 15;

		if (bytes && !memcmp(jump + bytes, "\x55\x48\x89\xe5", 4))
			return true;
	}
	return false;
}

/* V8's code that is not optimized, up to its first call: mov $size, %ebx, or xor; mov $bytecodes, %r12; a call. */
static bool is_before_call(const struct csink_code_near *near)
{
	static const int8_t moves[] = {5, 2, 0, -10}; /* where the second one is, from each of these */

	for (size_t i = 0; i < sizeof(moves); i++) {
		const uint8_t *mov = near->bytes + NEAR_BEFORE + moves[i];

		if (mov[0] == 0x49 && mov[1] == 0xbc && (mov[10] == 0xe8 || mov[10] == 0x41) &&
		    (mov[-5] == 0xbb || (mov[-2] == 0x33 && mov[-1] == 0xdb)))
			return true;
	}
	return false;
}

bool csink_code_is_edge(const struct csink_code_near *near, uintptr_t pc)
{
	static const char begins[][5] = {
		"\xf3\x0f\x1e\xfa", /* endbr64 */
		"\x48\x83\xec\x08", /* sub $8, %rsp */
		"\x55\x48\x89\xe5", /* push %rbp; mov %rsp, %rbp */
	};
	uint8_t code[4];

	if (!take_near(near, pc, code, sizeof(code)))
		return code_is(pc, "\xc3", 1);
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!memcmp(code, begins[i], sizeof(code)))
			return true;
	return code[0] == 0xc3 || code[0] == 0xc2 /* ret */ || is_behind_frame(near, pc) || is_before_frame(near, pc) ||
	       (near->start != UINTPTR_MAX && is_before_call(near));
}

bool csink_code_has_pushed(const struct csink_code_near *near, uintptr_t pc)
{
	uint8_t before;

	return take_near(near, pc - 1, &before, 1) && before == 0x55;
}

bool csink_code_called_first(uintptr_t ra, uint64_t r12)
{
	uint8_t mov[2 + sizeof(r12)] = {0x49, 0xbc};

	memcpy(mov + 2, &r12, sizeof(r12));
	for (uintptr_t call = 5; call <= 7; call += 2) /* of a place, or by a slot */
		if (code_is(ra - call - sizeof(mov), mov, sizeof(mov)))
			return true;
	return false;
}

/* A stub, or a jump alone, as linkers put between code that is far apart. */
static bool is_jump(uintptr_t pc)
{
	static const struct csink_code_near none = {.start = UINTPTR_MAX};

	return csink_code_pushed(&none, pc) == 0 || code_is(pc, "\xe9", 1);
}

/* Where a stub leads to, 0 if it is none. */
static uintptr_t stub_target(uintptr_t stub)
{
	uint8_t code[11], slot[8];
	uintptr_t target = 0;
	int32_t distance;
	size_t at;

	if (!take_code(stub, code, sizeof(code)) || !(at = stub_jump(code)))
		return 0;
	memcpy(&distance, code + at, sizeof(distance));
	if (take_code(stub + at + 4 + (uintptr_t)(intptr_t)distance, slot, sizeof(slot)))
		memcpy(&target, slot, sizeof(target));
	return target;
}

/* By a call of this code, directly or by way of a stub. */
static bool leads_near(uintptr_t target, uintptr_t pc)
{
	return pc - target < MAX_CALLED_BYTES || pc - stub_target(target) < MAX_CALLED_BYTES;
}

enum csink_code_call csink_code_call(uintptr_t ra, uintptr_t pc)
{
	uint8_t before[7], *code = before + sizeof(before);
	uintptr_t target;
	int32_t distance;

	if (ra < 4096 || !take_code(ra - sizeof(before), before, sizeof(before)))
		return CSINK_NO_CALL;
	memcpy(&distance, code - 4, sizeof(distance));
	target = ra + (uintptr_t)(intptr_t)distance;
	if (code[-5] == 0xe8)
		return leads_near(target, pc) ? CSINK_CALL_NEARBY : is_jump(target) ? CSINK_CALL : CSINK_CALL_ELSEWHERE;
	/* ff /2: through a register, or memory at one; plus 1 or 4 bytes of displacement, and with one more for SIB. */
	for (int bytes = 2; bytes <= 7; bytes++)
		if (bytes != 5 && code[-bytes] == 0xff && (code[1 - bytes] & 0x38) == 0x10)
			return CSINK_CALL;
	return CSINK_NO_CALL;
}
#elif defined(__aarch64__)
void csink_code_read_near(uintptr_t pc, struct csink_code_near *near)
{
	(void)pc;
	near->start = UINTPTR_MAX; /* not read ahead: each question reads for itself */
}

bool csink_code_is_sigreturn(uintptr_t pc)
{
	static const uint32_t code[] = {0xd2801168, 0xd4000001}; /* mov x8, #139; svc #0 */

	return code_is(pc, code, sizeof(code)) || code_is(pc - 4, code, sizeof(code));
}

bool csink_code_is_start_context(uintptr_t pc)
{
	if (code_is(pc, "\x1f\x20\x03\xd5", 4)) /* nop */
		pc += 4;
	return code_is(pc, "\xe0\x03\x13\xaa", 4) && code_is(pc + 7, "\xb5", 1); /* mov x0, x19; cbnz x0 */
}

/* Stubs: adrp x16; ldr x17; add x16; br x17. None pushes. */
int csink_code_pushed(const struct csink_code_near *near, uintptr_t pc)
{
	(void)near;
	if (!csink_readable(pc, 1))
		return 0;
	for (int i = 0; i < 4; i++)
		if (code_is(pc + 4 * (uintptr_t)i, "\x20\x02\x1f\xd6", 4))
			return 0;
	return -1;
}

enum csink_code_call csink_code_call(uintptr_t ra, uintptr_t pc)
{
	uintptr_t target;
	uint32_t code;

	if (ra < 4096 || ra % 4 || !take_code(ra - 4, (uint8_t *)&code, sizeof(code)))
		return CSINK_NO_CALL;
	target = ra - 4 + (uintptr_t)((int64_t)((uint64_t)code << 38) >> 36); /* 26 bits of distance, in words */
	if (code >> 26 == 0x25)                                               /* bl */
		return pc - target < MAX_CALLED_BYTES ? CSINK_CALL_NEARBY : CSINK_CALL;
	return (code & 0xfffffc1f) == 0xd63f0000 ? CSINK_CALL : CSINK_NO_CALL; /* blr */
}
#endif
