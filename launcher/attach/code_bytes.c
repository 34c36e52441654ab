/* What the bytes of code show: see code_bytes.h. Runs in the launcher's main thread. */
#include "launcher/attach/code_bytes.h"

#include <string.h>

#include "include/internal/base.h"
#include "launcher/attach/object_code.h"
#include "launcher/attach/x86_decode.h"

#define MAX_BEFORE 2048 /* bytes before an address in which its function may begin */
#define MAX_STARTS 32

enum { SI = 6 }; /* the machine's number of the register */

/* ---- where functions begin ---- */

/* How many bytes of an instruction that does nothing, as linkers and compilers fill with. */
static size_t filling(const uint8_t *code, size_t bytes, bool is_32)
{
	struct csink_x86_insn insn;

	if (!csink_x86_decode(code, bytes, !is_32, &insn) || insn.is_vector)
		return 0;
	/* lea of esi to itself, of 32-bit code */
	if (is_32 && insn.map == CSINK_X86_ONE_BYTE && insn.opcode == 0x8d && insn.reg == SI && insn.mod != 3 &&
	    insn.base == SI && !insn.disp)
		return insn.bytes;
	return (insn.map == CSINK_X86_ONE_BYTE && (insn.opcode == 0x90 || insn.opcode == 0xcc)) ||
			       (insn.map == CSINK_X86_0F && insn.opcode == 0x1f)
		       ? insn.bytes
		       : 0;
}

/* Whether code begins as functions do: by saving a register that they preserve, or making room. */
static bool is_prologue(const uint8_t *code, size_t bytes, bool is_aligned, bool is_32)
{
	static const char saved_64[] = "\x53\x55", saved_32[] = "\x53\x55\x56\x57";

	if (bytes < 4)
		return false;
	if (!memcmp(code, "\xf3\x0f\x1e", 3) && code[3] >= 0xfa && code[3] <= 0xfb) /* endbr */
		return true;
	if (is_32 && !memcmp(code, "\x8d\x4c\x24\x04", 4)) /* lea 4(%esp), %ecx: the stack is aligned next */
		return true;
	if (is_32)
		return (code[0] && strchr(saved_32, code[0])) ||
		       (is_aligned && (code[0] == 0x83 || code[0] == 0x81) && code[1] == 0xec);
	return (code[0] && strchr(saved_64, code[0])) || (code[0] == 0x41 && code[1] >= 0x54 && code[1] <= 0x57) ||
	       (code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) && code[2] == 0xec);
}

bool csink_code_begins_function(const struct csink_attach_object *object, uint64_t pc)
{
	uint8_t code[48];
	size_t bytes = csink_object_code_read(object, pc, code, sizeof(code)), at = 0, more;

	while (at < bytes && (more = filling(code + at, bytes - at, object->is_32)))
		at += more;
	if (at && (pc + at) % 16)
		return false;
	return is_prologue(code + at, bytes - at, (pc + at) % 16 == 0, object->is_32);
}

enum ending { GOES_ON, ENDS, CALLS };

static enum ending ending_of(const struct csink_x86_insn *insn)
{
	uint8_t op = insn->opcode;

	if (insn->is_vector || (insn->map == CSINK_X86_0F && op != 0x0b))
		return GOES_ON;
	if (insn->map == CSINK_X86_0F)
		return ENDS;
	if (insn->map != CSINK_X86_ONE_BYTE)
		return GOES_ON;
	if (op == 0xff)
		return (insn->reg & 7) == 4 ? ENDS : (insn->reg & 7) == 2 ? CALLS : GOES_ON;
	return op == 0xe8 ? CALLS : op == 0xc3 || op == 0xc2 || op == 0xe9 || op == 0xeb || op == 0xf4 ? ENDS : GOES_ON;
}

/* Keep the last ones. */
static void keep(uint64_t *starts, uint32_t *nr, uint32_t max, uint64_t start)
{
	if (*nr == max)
		memmove(starts, starts + 1, (max - 1) * sizeof(*starts));
	else
		++*nr;
	starts[*nr - 1] = start;
}

/* How many bytes of code are before an address, as far as they are looked at. */
static uint64_t bytes_before(const struct csink_attach_object *object, uint64_t pc)
{
	for (uint32_t i = 0; i < object->nr_code; i++)
		if (pc - object->code[i].vaddr < object->code[i].filesz)
			return CSINK_MIN((uint64_t)MAX_BEFORE, pc - object->code[i].vaddr);
	return 0;
}

uint32_t csink_code_find_starts(const struct csink_attach_object *object, uint64_t pc, uint64_t *starts, uint32_t max)
{
	static uint8_t code[MAX_BEFORE + CSINK_X86_MAX_BYTES];
	uint64_t likely[MAX_STARTS], others[MAX_STARTS], from = pc - bytes_before(object, pc);
	uint32_t nr_likely = 0, nr_others = 0, nr = 0;
	size_t bytes = csink_object_code_read(object, from, code, pc - from + CSINK_X86_MAX_BYTES), more;
	enum ending ending = GOES_ON;
	bool is_filled = false;
	struct csink_x86_insn insn;

	/* Decoding may begin within an instruction; after a few, it agrees with the real ones. */
	for (size_t at = 0; at < bytes && from + at <= pc; at += insn.bytes) {
		bool is_aligned = (from + at) % 16 == 0;

		more = filling(code + at, bytes - at, object->is_32);
		if (!csink_x86_decode(code + at, bytes - at, !object->is_32, &insn))
			insn.bytes = 1;
		if (more && ending != GOES_ON) {
			is_filled = true;
			continue;
		}
		if (ending != GOES_ON && (is_prologue(code + at, bytes - at, is_aligned, object->is_32) ||
					  (ending == ENDS && is_filled && is_aligned)))
			keep(likely, &nr_likely, CSINK_MIN(max, (uint32_t)MAX_STARTS), from + at);
		else if (ending == ENDS)
			keep(others, &nr_others, CSINK_MIN(max, (uint32_t)MAX_STARTS), from + at);
		ending = ending_of(&insn);
		is_filled = false;
	}
	while (nr_likely && nr < max)
		starts[nr++] = likely[--nr_likely];
	while (nr_others && nr < max)
		starts[nr++] = others[--nr_others];
	return nr;
}

/* ---- calls and jumps ---- */

enum csink_code_preceding csink_code_call_before(const struct csink_attach_object *object, uint64_t ra,
						 uint64_t *target)
{
	uint8_t before[7], *code = before + sizeof(before);
	int32_t distance;
	size_t nr = sizeof(before);

	if (ra < sizeof(before) || csink_object_code_read(object, ra - nr, before, nr) != nr)
		return CSINK_CODE_NO_CALL;
	if (code[-5] == 0xe8) {
		memcpy(&distance, code - 4, sizeof(distance));
		*target = ra + (uint64_t)(int64_t)distance;
		if (object->is_32)
			*target &= UINT32_MAX;
		if (distance && csink_object_code_read(object, *target, before, 1) == 1)
			return CSINK_CODE_DIRECT;
	}
	/* ff /2: the whole instruction has to end there. */
	for (size_t bytes = 2; bytes <= 7; bytes++) {
		struct csink_x86_insn insn;

		if (code[-(ptrdiff_t)bytes] == 0xff && (code[1 - (ptrdiff_t)bytes] & 0x38) == 0x10 &&
		    csink_x86_decode(code - bytes, bytes, !object->is_32, &insn) && insn.bytes == bytes)
			return CSINK_CODE_CALL;
	}
	return CSINK_CODE_NO_CALL;
}

bool csink_code_is_first(const struct csink_attach_object *object, uint64_t vaddr)
{
	uint8_t code[7] = {0}, *at = code;

	if (csink_object_code_read(object, vaddr, code, sizeof(code)) != sizeof(code))
		return false;
	if (!memcmp(at, "\xf3\x0f\x1e", 3)) /* endbr */
		at += 4;
	if (*at == 0x48 && at == code)
		at++;
	return at[0] == 0x31 && at[1] == 0xed; /* xor of the frame pointer with itself */
}

bool csink_code_is_jump(const struct csink_attach_object *object, uint64_t vaddr)
{
	uint8_t code[CSINK_X86_MAX_BYTES];
	struct csink_x86_insn insn;

	for (int i = 0; i < 2; i++) {
		size_t bytes = csink_object_code_read(object, vaddr, code, sizeof(code));

		if (!csink_x86_decode(code, bytes, !object->is_32, &insn) || insn.is_vector)
			return false;
		if (insn.map == CSINK_X86_ONE_BYTE &&
		    (insn.opcode == 0xe9 || insn.opcode == 0xeb || (insn.opcode == 0xff && (insn.reg & 7) == 4)))
			return true;
		if (bytes < 4 || (memcmp(code, "\xf3\x0f\x1e\xfa", 4) && memcmp(code, "\xf3\x0f\x1e\xfb", 4)))
			return false;
		vaddr += 4; /* behind endbr */
	}
	return false;
}

bool csink_code_returns_from_signal(const struct csink_attach_object *object, uint64_t vaddr, bool is_interrupted,
				    uint32_t *context)
{
	enum { CALL = 2, MAX = 9 }; /* bytes of the system call; of all */
	static const struct {
		bool is_32;
		uint8_t bytes, pops; /* pops: bytes of the first instruction, which pops a word */
		const char *code;
		uint32_t context;
	} known[] = {
		{false, 9, 0, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 40}, /* mov $15, %rax; syscall */
		{false, 7, 0, "\xb8\x0f\0\0\0\x0f\x05", 40},         /* mov $15, %eax; syscall */
		{true, 7, 0, "\xb8\xad\0\0\0\xcd\x80", 160},         /* mov $173, %eax; int $0x80 */
		{true, 8, 1, "\x58\xb8\x77\0\0\0\xcd\x80", 4},       /* pop %eax; mov $119, %eax; int $0x80 */
	};
	uint8_t code[MAX];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(known); i++) {
		/* How much of it is before the address: none, the pop, all but the call, all. */
		const uint8_t passed[] = {0, known[i].pops, known[i].bytes - CALL, known[i].bytes};

		if (known[i].is_32 != object->is_32)
			continue;
		for (size_t j = 0; j < (is_interrupted ? CSINK_ARRAY_SIZE(passed) : 1); j++) {
			if (csink_object_code_read(object, vaddr - passed[j], code, known[i].bytes) != known[i].bytes ||
			    memcmp(code, known[i].code, known[i].bytes))
				continue;
			*context = known[i].context - (passed[j] && known[i].pops ? 4 : 0);
			return true;
		}
	}
	return false;
}
