/*
 * Walking a copied stack by the objects' unwind tables, else by frame pointers: see walk_copied.h. Runs in the
 * attach command's one thread.
 */
#include "launcher/attach/walk_copied_impl.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "include/internal/base.h"
#include "include/internal/recording_format.h"
#include "launcher/attach/go_object.h"
#include "launcher/attach/walk_go.h"

/* The kernel's numbers of registers (asm/perf_regs.h) that hold DWARF's 0 .. CSINK_NR_REGS - 1, the last one being pc.
 */
#if defined(__x86_64__)
static const uint8_t kernel_regs[CSINK_NR_REGS] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};
const uint64_t csink_walk_regs_mask = 0xff01ff, csink_walk_pc_mask = 1 << 8;
#define PC_REG 8
#elif defined(__aarch64__)
static const uint8_t kernel_regs[CSINK_NR_REGS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
						   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
const uint64_t csink_walk_regs_mask = 0x1ffffffff, csink_walk_pc_mask = 1ULL << 32;
#define PC_REG 32
#endif

#define NR_CACHED 8192
#define GO_CONTEXT offsetof(ucontext_t, uc_mcontext) /* above the stack pointer of a handler of Go that returned */

/* Rules at an address of an object, once read. */
struct cached {
	const struct csink_attach_object *object;
	uint64_t pc; /* the object's own address */
	enum { NO_RULES, BY_TABLE, BY_GO } kind;
	struct csink_cfi_fde fde;
	struct csink_cfi_rules rules;
	struct csink_go_rule go;
};
static struct cached *cache; /* NR_CACHED, made for the first stack */

/* The how-manieth of the sampled registers it is. */
static uint64_t sampled_reg(const uint64_t *regs, uint32_t kernel_reg)
{
	return regs[__builtin_popcountll(csink_walk_regs_mask & ((1ULL << kernel_reg) - 1))];
}

uint64_t csink_walk_copy_pc(const uint64_t *regs)
{
	return sampled_reg(regs, PC_REG);
}

uint64_t csink_walk_copy_reg(const uint64_t *regs, uint32_t dwarf_reg)
{
	return sampled_reg(regs, kernel_regs[dwarf_reg]);
}

uint64_t csink_walk_copy_first(const struct csink_walk_copy *copy, uint32_t dwarf_reg)
{
#if defined(__x86_64__)
	if (copy->is_32 && dwarf_reg >= 12 && dwarf_reg <= 13)
		dwarf_reg -= 12 - 4;
#endif
	return csink_walk_copy_reg(copy->regs, dwarf_reg) & (copy->is_32 ? UINT32_MAX : UINT64_MAX);
}

bool csink_walk_copy_load(const struct csink_walk_copy *copy, uint64_t address, uint64_t *value, bool *is_cut)
{
	uint64_t low = csink_walk_copy_first(copy, CSINK_REG_SP), high = low + copy->stack_bytes;
	uint32_t bytes = copy->is_32 ? 4 : 8;

	if (address < low || address > high || high - address < bytes) {
		/* Above the copy, and not too far to be of the same stack. */
		*is_cut |= address + bytes > high && address - high < (8ULL << 20);
		return false;
	}
	*value = 0;
	memcpy(value, copy->stack + (address - low), bytes);
	return true;
}

/* ---- by tables ---- */

static void find_rules(struct cached *cached)
{
	const struct csink_attach_object *object = cached->object;
	uintptr_t in_copy = (uintptr_t)cached->pc + object->table_bias;

	cached->kind = NO_RULES;
	if (object->go && csink_go_rule_at(object->go, cached->pc, &cached->go))
		cached->kind = BY_GO;
	else if (object->table.hdr && csink_cfi_find(&object->table, in_copy, &cached->fde) &&
		 csink_cfi_rules_at(&cached->fde, in_copy, &cached->rules))
		cached->kind = BY_TABLE;
}

static const struct cached *rules_at(const struct csink_attach_object *object, uint64_t pc)
{
	static struct cached alone; /* where there is no memory for more */
	struct cached *cached;

	if (!cache)
		cache = calloc(NR_CACHED, sizeof(*cache));
	cached = cache ? &cache[(pc ^ pc >> 13) % NR_CACHED] : &alone;
	if (cached->object != object || cached->pc != pc) {
		cached->object = object;
		cached->pc = pc;
		find_rules(cached);
	}
	return cached->kind != NO_RULES ? cached : NULL;
}

/* What an expression in closed form gives. */
static bool evaluate(struct csink_copy_walker *w, const struct csink_cfi_closed *closed, uint64_t *value)
{
	if (!csink_copy_known(w, closed->reg))
		return false;
	*value = csink_copy_address(w, w->regs.value[closed->reg] + (uint64_t)closed->offset);
	if (!closed->deref)
		return true;
	if (!csink_copy_load(w, *value, value))
		return false;
	*value = csink_copy_address(w, *value + (uint64_t)closed->addend);
	return true;
}

static bool find_cfa(struct csink_copy_walker *w, const struct cached *at, uint64_t *cfa)
{
	struct csink_cfi_closed closed = {.reg = at->rules.cfa_reg, .offset = at->rules.cfa_offset};

	if (at->rules.cfa_expr && !csink_cfi_expr_close(&at->fde, at->rules.cfa_expr, w->rules_pc, &closed))
		return false;
	return evaluate(w, &closed, cfa);
}

/*
 * A register that the function saved. What was saved below the stack pointer has just been given back: compilers do not
 * end the rule there, and the copy begins above.
 */
static bool recover_saved(struct csink_copy_walker *w, uint64_t at, uint64_t reg, uint64_t *value)
{
	if (w->innermost && reg < CSINK_NR_REGS && at < w->regs.value[CSINK_REG_SP] && csink_copy_known(w, reg)) {
		*value = w->regs.value[reg];
		return true;
	}
	return csink_copy_load(w, at, value);
}

/* The caller's value of a register; false: it cannot be had. */
static bool recover(struct csink_copy_walker *w, const struct cached *at, uint64_t cfa, uint64_t reg,
		    struct csink_cfi_rule rule, uint64_t *value)
{
	struct csink_cfi_closed closed;

	switch ((enum csink_cfi_kind)rule.kind) {
	case CSINK_CFI_AT_CFA:
		return recover_saved(w, csink_copy_address(w, cfa + (uint64_t)(int64_t)rule.value), reg, value);
	case CSINK_CFI_CFA_PLUS:
		*value = csink_copy_address(w, cfa + (uint64_t)(int64_t)rule.value);
		return true;
	case CSINK_CFI_AT_EXPR:
	case CSINK_CFI_IS_EXPR:
		if (!csink_cfi_expr_close(&at->fde, (const uint8_t *)(intptr_t)rule.value, w->rules_pc, &closed) ||
		    !evaluate(w, &closed, value))
			return false;
		return rule.kind == CSINK_CFI_IS_EXPR || csink_copy_load(w, *value, value);
	case CSINK_CFI_REGISTER:
	case CSINK_CFI_UNSET:
	case CSINK_CFI_SAME:
	case CSINK_CFI_UNDEFINED:
		break;
	}
	return csink_cfi_recover_kept(&w->regs, cfa, reg, rule, value);
}

static enum csink_copy_step step_by_rules(struct csink_copy_walker *w, const struct cached *at)
{
	struct csink_cfi_regs caller = w->regs;
	uint64_t cfa, value;

	if (at->rules.rule[CSINK_SLOT_RA].kind == CSINK_CFI_UNDEFINED)
		return CSINK_COPY_END;
	if (!find_cfa(w, at, &cfa))
		return CSINK_COPY_NO_RULE;
	for (int slot = 0; slot < CSINK_NR_SLOTS; slot++) {
		uint64_t reg = (uint64_t)csink_cfi_slot_reg(slot);

		if (recover(w, at, cfa, reg, at->rules.rule[slot], &value))
			csink_cfi_set(&caller, reg, value);
		else
			csink_cfi_forget(&caller, reg);
	}
	if (!csink_cfi_knows(&caller, CSINK_REG_RA) || !csink_cfi_knows(&caller, CSINK_REG_SP))
		return CSINK_COPY_BAD;
	if (caller.value[CSINK_REG_SP] < w->regs.value[CSINK_REG_SP] && !at->fde.signal_frame)
		return CSINK_COPY_BAD;
	w->regs = caller;
	w->pc = CSINK_STRIP_SIGNATURE(caller.value[CSINK_REG_RA]);
	w->exact = at->fde.signal_frame;
	return CSINK_COPY_CALLER;
}

/* ---- by Go's table ---- */

/* Its functions keep their caller's frame pointer below the return address, unless they have no frame. */
static enum csink_copy_step step_by_go(struct csink_copy_walker *w, const struct csink_go_rule *rule)
{
	uint64_t slot = w->regs.value[CSINK_REG_SP] + (uint64_t)(int64_t)rule->offset, ra, fp;

	if (rule->role & CSINK_GO_OUTERMOST)
		return CSINK_COPY_END;
	if (rule->role & CSINK_GO_RETURNS)
		return csink_copy_step_signal(w, GO_CONTEXT);
	if (rule->role & CSINK_GO_SWITCHES &&
	    !(csink_copy_known(w, CSINK_REG_FP) && w->regs.value[CSINK_REG_FP] + 8 == slot))
		return CSINK_COPY_OTHER_STACK;
	if (!csink_copy_load(w, slot, &ra))
		return CSINK_COPY_BAD;
	if (rule->offset >= 8) {
		w->regs.known = 0;
		if (csink_copy_load(w, slot - 8, &fp))
			csink_cfi_set(&w->regs, CSINK_REG_FP, fp);
	}
	w->regs.known &= 1ULL << CSINK_REG_FP;
	csink_cfi_set(&w->regs, CSINK_REG_SP, slot + 8);
	w->pc = ra;
	w->exact = rule->role & CSINK_GO_INTERRUPTS;
	return CSINK_COPY_CALLER;
}

/* ---- without ---- */

enum csink_copy_step csink_copy_step_fp(struct csink_copy_walker *w)
{
	uint64_t fp = w->regs.value[CSINK_REG_FP], caller_fp, ra;

	if (csink_copy_known(w, CSINK_REG_FP) && !fp && !w->innermost) /* the ABI's mark of the outermost frame */
		return CSINK_COPY_END;
	if (!csink_copy_known(w, CSINK_REG_FP) || fp % w->word || fp < w->regs.value[CSINK_REG_SP])
		return CSINK_COPY_NO_TABLE;
	if (!csink_copy_load(w, fp, &caller_fp) || !csink_copy_load(w, fp + w->word, &ra))
		return CSINK_COPY_NO_TABLE;
	w->regs.value[CSINK_REG_FP] = caller_fp;
	w->regs.value[CSINK_REG_SP] = fp + 2 * w->word;
	w->regs.known = 1ULL << CSINK_REG_FP | 1ULL << CSINK_REG_SP;
	w->pc = CSINK_STRIP_SIGNATURE(ra);
	w->exact = false;
	return CSINK_COPY_CALLER;
}

/* In a stub that jumps to a function, which was just called: nothing was pushed since. */
static bool is_in_stub(const struct csink_copy_walker *w, const struct csink_attach_object *object, uint64_t bias)
{
	return CSINK_CALL_PUSHES && w->innermost && object && w->rules_pc - bias >= object->stubs_start &&
	       w->rules_pc - bias < object->stubs_end;
}

static enum csink_copy_step step_by_call(struct csink_copy_walker *w)
{
	if (!csink_copy_load(w, w->regs.value[CSINK_REG_SP], &w->pc))
		return CSINK_COPY_BAD;
	w->regs.value[CSINK_REG_SP] += w->word;
	w->exact = false;
	return CSINK_COPY_CALLER;
}

/* Whether a table has led where nothing is mapped. */
static bool is_astray(const struct csink_copy_walker *w, enum csink_copy_step step)
{
	const struct csink_attach_object *unused;
	uint64_t bias;

	return step == CSINK_COPY_BAD || (step == CSINK_COPY_CALLER && !w->exact &&
					  (!w->pc || !w->copy->locate(w->copy->arg, w->pc - 1, &unused, &bias)));
}

/*
 * By a table. It may be wrong: some assembly pushes registers, and its table does not have it (glibc's memcpy of i386).
 * Then the code itself is asked. The program's first function, if it is not a C library's, may say of itself that it is
 * called, but nothing calls it.
 */
static enum csink_copy_step step_by_table(struct csink_copy_walker *w, const struct cached *at, uint64_t bias)
{
	struct csink_copy_walker before = *w;
	enum csink_copy_step step = step_by_rules(w, at);

	if (!is_astray(w, step))
		return step;
	if (at->fde.start - at->object->table_bias == at->object->entry)
		return CSINK_COPY_END;
	if (!before.innermost || !csink_copy_step_by_code(&before, at->object, bias))
		return step;
	*w = before;
	w->is_cut = false;
	return CSINK_COPY_CALLER;
}

/* One frame. The row's address is inside of the call that is to return. */
static enum csink_copy_step step(struct csink_copy_walker *w)
{
	const struct csink_attach_object *object = NULL;
	uint64_t bias = 0;
	const struct cached *cached = NULL;

	/* Where it runs, not where it is in the copy of the tables: PLT stubs' rules ask for the address's low bits. */
	w->rules_pc = w->exact ? w->pc : w->pc - 1;
	if (w->copy->locate(w->copy->arg, w->rules_pc, &object, &bias) && (object->table.hdr || object->go))
		cached = rules_at(object, w->rules_pc - bias);
	if (object && object->is_32 != w->copy->is_32)
		return CSINK_COPY_NO_TABLE;
	if (cached)
		return cached->kind == BY_GO ? step_by_go(w, &cached->go) : step_by_table(w, cached, bias);
	if (is_in_stub(w, object, bias))
		return step_by_call(w);
	return object && !object->go ? csink_copy_step_untabled(w, object, bias) : csink_copy_step_fp(w);
}

static void start(struct csink_copy_walker *w, const struct csink_walk_copy *copy)
{
	memset(w, 0, sizeof(*w));
	w->copy = copy;
	w->word = copy->is_32 ? 4 : 8;
	for (uint32_t i = 0; i < CSINK_NR_REGS; i++)
		w->regs.value[i] = csink_walk_copy_first(copy, i);
	w->regs.known = (1ULL << CSINK_NR_REGS) - 1;
	w->pc = csink_copy_address(w, csink_walk_copy_pc(copy->regs));
	w->exact = w->innermost = true;
}

/* A signal has interrupted code on another stack than the one that is copied: its stack pointer, which the kernel
 * wrote, is elsewhere. */
static bool has_interrupted_elsewhere(const struct csink_copy_walker *w)
{
	uint64_t first = csink_walk_copy_first(w->copy, CSINK_REG_SP), sp = w->regs.value[CSINK_REG_SP];

	return w->exact && !w->innermost && (sp < first || sp - first >= w->copy->stack_bytes);
}

static enum csink_walk_copy_end end_of(const struct csink_copy_walker *w, enum csink_copy_step stepped,
				       bool is_elsewhere)
{
	if (w->is_cut)
		return CSINK_COPY_CUT;
	if (is_elsewhere || stepped == CSINK_COPY_OTHER_STACK)
		return CSINK_COPY_SWITCHED;
	return stepped == CSINK_COPY_NO_TABLE  ? CSINK_COPY_NO_CFI
	       : stepped == CSINK_COPY_NO_RULE ? CSINK_COPY_RULES
					       : CSINK_COPY_BAD_STACK;
}

/* Frames by rules. cfas: set as well. */
static uint32_t walk(const struct csink_walk_copy *copy, uint64_t *frames, uint64_t *cfas, uint32_t max_frames,
		     enum csink_walk_copy_end *end)
{
	struct csink_copy_walker w;
	uint32_t nr = 0;

	start(&w, copy);
	for (;;) {
		uint64_t last_sp = w.regs.value[CSINK_REG_SP];
		bool is_elsewhere = has_interrupted_elsewhere(&w);
		enum csink_copy_step stepped = step(&w);

		if (stepped == CSINK_COPY_CALLER && !w.pc)
			stepped = CSINK_COPY_END;
		if (stepped == CSINK_COPY_END) {
			*end = CSINK_COPY_COMPLETE;
			return nr;
		}
		/* Each caller's frame lies above; the innermost may have none where calls do not push. */
		if (stepped == CSINK_COPY_CALLER && !w.exact && w.regs.value[CSINK_REG_SP] <= last_sp &&
		    !(w.innermost && !CSINK_CALL_PUSHES))
			stepped = CSINK_COPY_BAD;
		if (stepped == CSINK_COPY_CALLER && (w.pc - 1) >> 48)
			stepped = CSINK_COPY_BAD;
		if (stepped != CSINK_COPY_CALLER) {
			*end = end_of(&w, stepped, is_elsewhere);
			return nr;
		}
		if (nr == max_frames) {
			*end = CSINK_COPY_DEPTH;
			return nr;
		}
		w.innermost = false;
		cfas[nr] = w.regs.value[CSINK_REG_SP];
		frames[nr++] = w.pc | (w.exact ? CSINK_FRAME_EXACT : 0);
	}
}

uint32_t csink_walk_copy(const struct csink_walk_copy *copy, uint64_t *frames, uint32_t max_frames,
			 enum csink_walk_copy_end *end)
{
	static uint64_t own_cfas[CSINK_MAX_DEPTH];
	uint64_t *cfas = copy->cfas ? copy->cfas : own_cfas;
	uint32_t nr;

	if (copy->trust)
		*copy->trust = (struct csink_walk_trust){0};
	max_frames = copy->cfas ? max_frames : CSINK_MIN(max_frames, (uint32_t)CSINK_MAX_DEPTH);
	nr = walk(copy, frames, cfas, max_frames, end);
	if (*end != CSINK_COPY_COMPLETE && *end != CSINK_COPY_DEPTH && copy->nr_chain)
		nr = csink_walk_go_join(copy, frames, cfas, nr, max_frames, end);
	return nr;
}
