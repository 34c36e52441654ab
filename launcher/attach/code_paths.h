/*
 * What code without unwind tables does to the stack, by its instructions: they are followed, branch by branch, from an
 * address to where the function returns, or from the function's start to an address. The result is a rule like a
 * table's: where the return address lies, and what the registers that a callee preserves will be. For x86; of other
 * machines nothing is known here.
 *
 * Not a proof: a path may lead out of the function, behind a call that never returns. The walk uses a rule only
 * if a call lies before the return address that it gives.
 */
#ifndef CSINK_CODE_PATHS_H
#define CSINK_CODE_PATHS_H

#include "launcher/attach/objects.h"

/* By the registers at the address that the rule is for: the register plus offset; loaded: the word there plus addend.
 */
struct csink_code_value {
	enum { CSINK_CODE_UNKNOWN, CSINK_CODE_PLAIN, CSINK_CODE_LOADED } kind;
	uint8_t reg; /* DWARF's number, of 64-bit code (those of 32-bit: csink_code_reg) */
	int32_t offset, addend;
};

struct csink_code_rule {
	struct csink_code_value ra_at;                 /* where the return address lies */
	struct csink_code_value slots[CSINK_NR_SLOTS]; /* of FP and the others; those of RA and SP mean nothing */
	bool is_jump; /* by a jump through a register or memory: as a return, if it leads to another function */
};

#define CSINK_CODE_MAX_RULES 4

struct csink_code_rules {
	struct csink_code_rule at[CSINK_CODE_MAX_RULES]; /* of different returns, the nearest first */
	uint32_t nr;
	bool halts; /* no path returns, and one ends where the machine is halted: as the first function's of a thread
		       does */
};

/**
 * Follow the code from an object's own address to its returns.
 * @is_behind_call  a call has just returned there; the stack pointer is that before it pushed.
 */
void csink_code_find_returns(const struct csink_attach_object *object, uint64_t pc, bool is_behind_call,
			     struct csink_code_rules *rules);

/** Follow the code from the start of a function to an address in it. False: no path was found. */
bool csink_code_find_frame(const struct csink_attach_object *object, uint64_t start, uint64_t pc, bool is_behind_call,
			   struct csink_code_rule *rule);

/** DWARF's number, as rules have it, of one of the machine's registers by the machine's number (0 to 15). */
uint8_t csink_code_reg(bool is_32, uint32_t machine_reg);

#endif
