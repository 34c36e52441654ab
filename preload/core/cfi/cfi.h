/*
 * Call frame information: from an address to the rules that recover its caller, out of .eh_frame.
 *
 * The tables belong to whatever object the program loaded, so they are untrusted: every read is checked against the
 * readable segment that holds them, every loop has an end, and what makes no sense is "no information". Nothing here
 * allocates, locks or calls libc; no static state. Context of everything here: signal.
 *
 *   cfi_locate.c   address -> tables
 *   cfi_find.c     tables, address -> frame description entry (FDE)
 *   cfi_next.c     entry -> entry, for those that read all of them
 *   cfi_program.c  FDE, address -> rules for each register
 *   cfi_expr.c     DWARF expressions inside rules, evaluated
 *   cfi_close.c    or put into closed form
 *   cfi_step.c     one frame by all its rules, for what rows (cfi_row.h) cannot say
 */
#ifndef CSINK_CFI_H
#define CSINK_CFI_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/core/safe_load.h"

/*
 * DWARF register numbers, and the registers whose rules are kept: those that a callee preserves.
 */
#if defined(__x86_64__)
enum { CSINK_REG_BX = 3, CSINK_REG_FP = 6, CSINK_REG_SP = 7, CSINK_REG_RA = 16, CSINK_NR_REGS = 17 };
enum { CSINK_SLOT_FP, CSINK_SLOT_RA, CSINK_SLOT_SP, CSINK_NR_SLOTS = 8 };
#elif defined(__aarch64__)
enum { CSINK_REG_FP = 29, CSINK_REG_RA = 30, CSINK_REG_SP = 31, CSINK_NR_REGS = 32 };
enum { CSINK_SLOT_FP, CSINK_SLOT_RA, CSINK_SLOT_SP, CSINK_NR_SLOTS = 13 };
#endif

/** The slot of a register, or -1 for one that is not kept. */
int csink_cfi_slot(uint64_t reg);
/** The register of a slot. */
int csink_cfi_slot_reg(int slot);

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* One object's tables: mostly in one readable segment, but some linkers put .eh_frame beside the data. */
struct csink_cfi_table {
	const uint8_t *low, *high;    /* the segment that holds .eh_frame */
	const uint8_t *hdr, *hdr_end; /* .eh_frame_hdr, and the end of its segment */
	uintptr_t shift;              /* of a copy: what its addresses are more than those of the code */
};

struct csink_cfi_fde {
	const uint8_t *low, *high;            /* of its table */
	uintptr_t start, end;                 /* the code it describes */
	const uint8_t *initial, *initial_end; /* the CIE's instructions */
	const uint8_t *code, *code_end;       /* its own */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	uint8_t address_encoding; /* DW_EH_PE_*, of code addresses */
	bool signal_frame;        /* by the CIE's augmentation */
	bool augmented;           /* it has an augmentation, and so has the FDE */
};

/**
 * The tables of an object, by its program headers.
 * @bias  what is added to their addresses; all segments are mapped. False: it has none, or none that can be read.
 */
bool csink_cfi_table_of(uintptr_t bias, const ElfW(Phdr) * phdr, uint32_t nr, struct csink_cfi_table *table);

/** The tables of the object that covers an address. False: none does, or it has none. */
bool csink_cfi_locate(uintptr_t pc, struct csink_cfi_table *table);

/** The entry of an address. False if there is none (or it makes no sense). */
bool csink_cfi_find(const struct csink_cfi_table *table, uintptr_t pc, struct csink_cfi_fde *fde);

/** Read the entry that is at an address of .eh_frame. False if none is there (or it is a CIE, or makes no sense). */
bool csink_cfi_read_entry(const struct csink_cfi_table *table, const uint8_t *at, struct csink_cfi_fde *fde);

/** Where the next entry is, given where one is, and where .eh_frame ends. NULL: there is none. */
const uint8_t *csink_cfi_next_entry(const uint8_t *at, const uint8_t *end);

/* ---- rules ------------------------------------------------------------------------------------------------------- */

enum csink_cfi_kind {
	CSINK_CFI_UNSET,     /* no rule: the value is kept for a preserved register */
	CSINK_CFI_SAME,      /* the value is kept (DW_CFA_same_value) */
	CSINK_CFI_UNDEFINED, /* lost; for the return address: this is the outermost frame */
	CSINK_CFI_AT_CFA,    /* saved at CFA + value */
	CSINK_CFI_CFA_PLUS,  /* is CFA + value */
	CSINK_CFI_REGISTER,  /* is in register number `value` */
	CSINK_CFI_AT_EXPR,   /* saved at the address that the expression gives; value: where its length and bytes are */
	CSINK_CFI_IS_EXPR,   /* is what the expression gives */
};

struct csink_cfi_rule {
	int64_t value : 56;
	uint64_t kind : 8; /* enum csink_cfi_kind */
};

struct csink_cfi_rules {
	uint64_t cfa_reg; /* CFA = register + offset ... */
	int64_t cfa_offset;
	const uint8_t *cfa_expr; /* ... or, unless NULL, what this expression gives (its length comes first) */
	struct csink_cfi_rule rule[CSINK_NR_SLOTS];
};

/** The rules at an address inside the entry. False if its instructions make no sense. */
bool csink_cfi_rules_at(const struct csink_cfi_fde *fde, uintptr_t pc, struct csink_cfi_rules *rules);

/* ---- expressions ------------------------------------------------------------------------------------------------- */

struct csink_cfi_regs {
	uint64_t value[CSINK_NR_REGS];
	uint64_t known; /* a bit for each register whose value is known */
};

static inline bool csink_cfi_knows(const struct csink_cfi_regs *regs, uint64_t reg)
{
	return reg < CSINK_NR_REGS && regs->known >> reg & 1;
}

static inline void csink_cfi_set(struct csink_cfi_regs *regs, uint64_t reg, uint64_t value)
{
	regs->value[reg] = value;
	regs->known |= 1ULL << reg;
}

static inline void csink_cfi_forget(struct csink_cfi_regs *regs, uint64_t reg)
{
	regs->known &= ~(1ULL << reg);
}

/** The caller's value of a register by a rule that reads no memory. Returns false if it is not known. Context: signal.
 */
static inline bool csink_cfi_recover_kept(const struct csink_cfi_regs *regs, uint64_t cfa, uint64_t reg,
					  struct csink_cfi_rule rule, uint64_t *value)
{
	if (rule.kind == CSINK_CFI_UNDEFINED)
		return false;
	if (rule.kind == CSINK_CFI_UNSET && reg == CSINK_REG_SP) { /* what the CFA is, by its definition */
		*value = cfa;
		return true;
	}
	reg = rule.kind == CSINK_CFI_REGISTER ? (uint64_t)(int64_t)rule.value : reg;
	*value = reg < CSINK_NR_REGS ? regs->value[reg] : 0;
	return csink_cfi_knows(regs, reg);
}

/** Bounds of an expression's operations: [*start, *end). False if they leave the table. */
bool csink_cfi_expr_bounds(const struct csink_cfi_fde *fde, const uint8_t *expr, const uint8_t **start,
			   const uint8_t **end);

/**
 * Evaluate a rule's expression.
 * @cfa   pushed first; NULL for the expression of a CFA, which starts with an empty stack.
 * @load  memory that it dereferences.
 */
bool csink_cfi_eval(const struct csink_cfi_fde *fde, const uint8_t *expr, const struct csink_cfi_regs *regs,
		    const uint64_t *cfa, struct csink_loader *load, uint64_t *result);

/* A CFA expression in closed form: *(reg + offset) + addend, or reg + offset. */
struct csink_cfi_closed {
	uint64_t reg;
	int64_t offset, addend;
	bool deref;
};

/** Put an expression into closed form for one address of code. False if it has none. */
bool csink_cfi_expr_close(const struct csink_cfi_fde *fde, const uint8_t *expr, uintptr_t pc,
			  struct csink_cfi_closed *closed);

/* ---- stepping ---------------------------------------------------------------------------------------------------- */

enum csink_cfi_step {
	CSINK_STEP_CALLER, /* registers are now the caller's */
	CSINK_STEP_END,    /* there is none: outermost frame */
	CSINK_STEP_NO_CFI, /* no rules */
	CSINK_STEP_RULES,  /* rules that cannot be followed: unknown ones, or of a register that was not kept */
	CSINK_STEP_BAD,    /* memory cannot be read */
};

/**
 * Go to the caller of a frame by all rules of its address. Registers without rules, which a callee need not preserve,
 * stay as they are: a rule of the caller's that asks for one is that of assembly which calls its own by conventions of
 * its own (AES-GCM of OpenSSL has its CFA in %rax).
 * @pc     in: where the frame is; out: where its caller goes on.
 * @exact  as csink_row_compile; out: true if a signal came between the two.
 */
enum csink_cfi_step csink_cfi_step(struct csink_cfi_regs *regs, uintptr_t *pc, bool *exact, struct csink_loader *load);

#endif
