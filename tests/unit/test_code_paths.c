/* What 32-bit code without unwind tables does to the stack, where it calls functions that take what they were given. */
#include <string.h>

#include "launcher/attach/code_paths.h"
#include "launcher/attach/object_code.h"
#include "tests/unit/tap.h"

#if defined(__x86_64__)
enum { VADDR = 0x1000, NR_CALLS = 100, CALLEE = 0x2000, BYTES = 0x4000 };

/* The place of the return address from the stack pointer, at the start of a function with many calls of one of so many
 * instructions. */
static int32_t return_address_after(uint32_t nr_instructions)
{
	static const uint8_t take_back[] = {0x83, 0xc4, 0xfc}, end[] = {0xc2, 4, 0}; /* add $-4, %esp; ret $4 */
	static uint8_t code[BYTES];
	struct csink_attach_object object = {.is_32 = true, .nr_code = 1, .path = "made"};
	struct csink_code_rules rules;
	uint8_t *at = code;

	memset(code, 0x90, sizeof(code)); /* nop */
	for (int i = 0; i < NR_CALLS; i++) {
		int32_t distance = (int32_t)(CALLEE - (at + 5 - code));

		*at = 0xe8;
		memcpy(at + 1, &distance, sizeof(distance));
		memcpy(at + 5, take_back, sizeof(take_back));
		at += 5 + sizeof(take_back);
	}
	*at = 0xc3; /* ret */
	memcpy(code + CALLEE + nr_instructions - 1, end, sizeof(end));
	object.code[0].vaddr = VADDR;
	object.code[0].filesz = sizeof(code);
	object.instructions = csink_object_code_new(NULL, code, sizeof(code));
	csink_code_find_returns(&object, VADDR, false, &rules);
	csink_object_code_free(object.instructions);
	return rules.nr == 1 && rules.at[0].ra_at.kind == CSINK_CODE_PLAIN ? rules.at[0].ra_at.offset : INT32_MIN;
}

int main(void)
{
	is_num(return_address_after(10), 0, "what each callee takes from the stack is counted");
	ok(return_address_after(399) < 0,
	   "callees are looked at as long as compilers' are: of many long ones, the first");
	return done();
}
#else
int main(void)
{
	skip("code paths", "code is followed on x86");
	return done();
}
#endif
