/* Following code without unwind tables: see code_paths.h. Runs in the launcher's main thread. */
#include "launcher/attach/code_paths.h"

#include <string.h>

#include "include/internal/base.h"
#include "launcher/attach/code_bytes.h"
#include "launcher/attach/object_code.h"
#include "launcher/attach/x86_decode.h"
#include "launcher/base/move.h"

#define MAX_INSTRUCTIONS 3000 /* that are followed from one address */
#define MORE_INSTRUCTIONS 300 /* beyond the first return, for others */
#define MAX_PENDING 48        /* branches that are still to be followed */
#define MAX_BEHIND 16         /* jumps through a register whose next instruction is still to be followed */
#define MAX_SAVED 16          /* words that the path has written */
#define NR_MET 8192
#define MAX_UP_TO_RETURN 400 /* instructions of a callee, up to its first return */
#define MAX_OF_CALLEES 6000  /* of all callees on the way from one address: few pop their arguments */
#define MAX_POPPED 16
#define MAX_DISTANCE (1 << 28)

enum { AX, CX, DX, BX, SP, BP, SI, DI, NR_REGS = 16 };
#define ALIGNED 30 /* in the place of a register's number: the stack pointer, where a path has aligned it */

#define CALLER_SAVED_64 0xfc7 /* AX, CX, DX, SI, DI, R8 to R11: of System V's ABI */
#define CALLER_SAVED_32 0x007

typedef struct csink_code_value value;

/* A path, at an instruction. */
struct path {
	uint64_t pc;
	value reg[NR_REGS];
	struct {
		value at, is; /* at: PLAIN */
	} saved[MAX_SAVED];
	uint32_t nr_saved;
};

static struct finder {
	const struct csink_attach_object *object;
	bool is_32;
	int32_t word;
	uint32_t left; /* instructions */
	uint32_t left_of_callees;
	uint64_t target; /* the path ends there; 0: at returns */
	bool is_found;   /* target was reached by `at` */
	struct path at, pending[MAX_PENDING], behind[MAX_BEHIND];
	uint32_t nr_pending, nr_behind;
	int32_t begin; /* the stack pointer's offset where the path began */
	struct csink_code_rules *rules;
	bool halts;
	/* Instructions that a path has met: all paths have the same stack there. */
	uint64_t met[NR_MET];
	uint32_t round;
	uint32_t met_in[NR_MET];
} finder;

/* ---- registers ---- */

uint8_t csink_code_reg(bool is_32, uint32_t machine_reg)
{
	/* Of 32-bit code si and di are preserved: they have places of registers that are, in 64-bit code. */
	static const uint8_t of_64[NR_REGS] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

	return is_32 && machine_reg >= SI ? (uint8_t)(machine_reg - SI + 12) : of_64[machine_reg & 15];
}

static value add(value v, int64_t distance)
{
	int64_t sum = (v.kind == CSINK_CODE_LOADED ? v.addend : v.offset) + distance;

	if (v.kind == CSINK_CODE_UNKNOWN || sum > MAX_DISTANCE || sum < -MAX_DISTANCE)
		return (value){CSINK_CODE_UNKNOWN};
	*(v.kind == CSINK_CODE_LOADED ? &v.addend : &v.offset) = (int32_t)sum;
	return v;
}

static bool is_same(const value *a, const value *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->offset == b->offset && a->addend == b->addend;
}

static value load(const struct path *p, value at)
{
	for (uint32_t i = 0; i < p->nr_saved; i++)
		if (is_same(&p->saved[i].at, &at))
			return p->saved[i].is;
	return at.kind == CSINK_CODE_PLAIN ? (value){CSINK_CODE_LOADED, at.reg, at.offset, 0}
					   : (value){CSINK_CODE_UNKNOWN};
}

/* A place for one more word: what says the least, or else is the oldest, is given up. */
static uint32_t place_to_save(struct path *p)
{
	uint32_t worst = 0;

	if (p->nr_saved < MAX_SAVED)
		return p->nr_saved++;
	for (uint32_t i = 0; i < MAX_SAVED; i++) {
		if (p->saved[i].is.kind == CSINK_CODE_UNKNOWN) {
			worst = i;
			break;
		}
		if (p->saved[i].is.kind != CSINK_CODE_PLAIN && p->saved[worst].is.kind == CSINK_CODE_PLAIN)
			worst = i;
	}
	csink_move(p->saved + worst, p->saved + worst + 1, (MAX_SAVED - 1 - worst) * sizeof(p->saved[0]));
	return MAX_SAVED - 1;
}

static void store(struct path *p, value at, value is)
{
	uint32_t i = 0;

	if (at.kind != CSINK_CODE_PLAIN)
		return;
	while (i < p->nr_saved && !is_same(&p->saved[i].at, &at))
		i++;
	if (i == p->nr_saved)
		i = place_to_save(p);
	p->saved[i].at = at;
	p->saved[i].is = is;
}

static void push(struct path *p, value is)
{
	p->reg[SP] = add(p->reg[SP], -finder.word);
	store(p, p->reg[SP], is);
}

static value pop(struct path *p)
{
	value is = load(p, p->reg[SP]);

	p->reg[SP] = add(p->reg[SP], finder.word);
	return is;
}

static void forget(struct path *p, uint32_t regs)
{
	for (uint32_t i = 0; i < NR_REGS; i++)
		if (regs >> i & 1)
			p->reg[i] = (value){CSINK_CODE_UNKNOWN};
}

/* Of a memory operand. */
static value address(const struct path *p, const struct csink_x86_insn *insn)
{
	if (insn->base >= NR_REGS || insn->index != CSINK_X86_NO_REG || insn->has_segment)
		return (value){CSINK_CODE_UNKNOWN};
	return add(p->reg[insn->base], insn->disp);
}

static void set(struct path *p, uint8_t reg, value is)
{
	p->reg[reg & 15] = is;
}

/* ---- paths ---- */

/* Whether it is the first one there. */
static bool meet(uint64_t pc)
{
	uint32_t at = (uint32_t)(pc ^ pc >> 13) % NR_MET;

	for (uint32_t i = 0; i < 8; i++, at = (at + 1) % NR_MET) {
		if (finder.met_in[at] != finder.round) {
			finder.met_in[at] = finder.round;
			finder.met[at] = pc;
			return true;
		}
		if (finder.met[at] == pc)
			return false;
	}
	return true; /* what is followed is bounded otherwise */
}

static void branch(const struct path *p, uint64_t to)
{
	if (finder.nr_pending == MAX_PENDING)
		return;
	finder.pending[finder.nr_pending] = *p;
	finder.pending[finder.nr_pending++].pc = to;
}

static void take_return(const struct path *p, bool is_jump)
{
	struct csink_code_rules *rules = finder.rules;
	struct csink_code_rule rule = {.ra_at = p->reg[SP], .is_jump = is_jump};

	if (rule.ra_at.kind == CSINK_CODE_UNKNOWN || rules->nr == CSINK_CODE_MAX_RULES)
		return;
	for (uint32_t i = 0; i < rules->nr; i++)
		if (is_same(&rules->at[i].ra_at, &rule.ra_at) && rules->at[i].is_jump <= is_jump)
			return;
	for (uint32_t reg = 0; reg < (finder.is_32 ? 8 : NR_REGS); reg++) {
		int slot = csink_cfi_slot(csink_code_reg(finder.is_32, reg));

		if (slot >= 0)
			rule.slots[slot] = p->reg[reg];
	}
	if (!is_jump)
		finder.left = CSINK_MIN(finder.left, (uint32_t)MORE_INSTRUCTIONS);
	rules->at[rules->nr++] = rule;
}

/* ---- what instructions do, those that matter here ---- */

/* Group 1: add, or, adc, sbb, and, sub, xor, cmp, of a constant. */
static void take_arithmetic(struct path *p, const struct csink_x86_insn *insn)
{
	uint8_t op = insn->reg & 7;

	if (insn->mod != 3 || op == 7 || !(insn->opcode & 1))
		return;
	if (op == 0 || op == 5)
		set(p, insn->rm, add(p->reg[insn->rm & 15], op ? -insn->imm : insn->imm));
	else if (op == 4 && insn->rm == SP)
		p->reg[SP] = (value){CSINK_CODE_PLAIN, ALIGNED, 0, 0};
	else
		set(p, insn->rm, (value){CSINK_CODE_UNKNOWN});
}

static void take_move(struct path *p, const struct csink_x86_insn *insn, bool to_reg)
{
	bool is_word = finder.is_32 ? !insn->is_16 : insn->is_wide;
	value none = {CSINK_CODE_UNKNOWN};
	uint8_t from = insn->reg & 15, to = insn->rm & 15;

	if (insn->mod == 3) {
		if (to_reg) {
			from = insn->rm & 15;
			to = insn->reg & 15;
		}
		set(p, to, is_word ? p->reg[from] : none);
	} else if (to_reg) {
		set(p, insn->reg, is_word ? load(p, address(p, insn)) : none);
	} else {
		store(p, address(p, insn), is_word ? p->reg[from] : none);
	}
}

/*
 * How many bytes a function of 32-bit code takes from the stack when it returns: what it was given for its result. Its
 * first return says it; 0 where none is found.
 * @left  instructions that may be looked at.
 */
static int32_t popped_by(const struct csink_attach_object *object, uint64_t pc, uint32_t *left)
{
	uint8_t code[CSINK_X86_MAX_BYTES];
	struct csink_x86_insn insn;

	for (uint32_t i = 0; i < MAX_UP_TO_RETURN && *left; i++, --*left, pc += insn.bytes) {
		size_t bytes = csink_object_code_read(object, pc, code, sizeof(code));

		if (!csink_x86_decode(code, bytes, !object->is_32, &insn))
			return 0;
		if (insn.map == CSINK_X86_ONE_BYTE && !insn.is_vector && (insn.opcode == 0xc3 || insn.opcode == 0xc2))
			return insn.opcode == 0xc2 && insn.imm <= MAX_POPPED ? (int32_t)insn.imm : 0;
	}
	return 0;
}

/* What the callee took that has just returned to an address. */
static int32_t popped_before(const struct csink_attach_object *object, uint64_t pc)
{
	uint32_t left = MAX_UP_TO_RETURN;
	uint64_t target;

	return object->is_32 && csink_code_call_before(object, pc, &target) == CSINK_CODE_DIRECT
		       ? popped_by(object, target, &left)
		       : 0;
}

/* The register that a function only sets to where it was called: 32-bit code learns so where it is, and expects others
 * to stay. */
static bool is_thunk(uint64_t pc, uint8_t *reg)
{
	uint8_t code[4];

	if (csink_object_code_read(finder.object, pc, code, 4) != 4 || code[0] != 0x8b || (code[1] & 0xc7) != 4 ||
	    code[2] != 0x24 || code[3] != 0xc3) /* mov (%esp), %reg; ret */
		return false;
	*reg = code[1] >> 3 & 7;
	return true;
}

/* False: the path ends, for the call does not return. */
static bool take_call(struct path *p, const struct csink_x86_insn *insn)
{
	bool is_direct = insn->opcode == 0xe8;
	uint8_t reg;

	if (is_direct && !insn->imm) {
		push(p, (value){CSINK_CODE_UNKNOWN}); /* as a thunk, without one */
		return true;
	}
	if (is_direct && finder.is_32 && is_thunk(p->pc + (uint64_t)insn->imm, &reg)) {
		set(p, reg, (value){CSINK_CODE_UNKNOWN});
		return true;
	}
	forget(p, finder.is_32 ? CALLER_SAVED_32 : CALLER_SAVED_64);
	if (is_direct && finder.is_32)
		p->reg[SP] =
			add(p->reg[SP], popped_by(finder.object, p->pc + (uint64_t)insn->imm, &finder.left_of_callees));
	/* Where a function begins behind the call, the call does not return. */
	return p->pc == finder.target || !csink_code_begins_function(finder.object, p->pc);
}

/*
 * A jump through a register or a table. One that leaves the function has nothing left of the frame on the stack;
 * another one goes on within it, as those of an evaluator to the code of the next instruction. What is behind such a
 * jump is the same function's, too, with the same stack: it is followed where nothing else leads to an end. Where it is
 * another function's after all, that one has no frame yet, as this one has none.
 */
static void jump_somewhere(const struct path *p)
{
	const value *sp = &p->reg[SP];
	bool is_within = sp->kind == CSINK_CODE_PLAIN && (sp->reg == ALIGNED || sp->offset < finder.begin ||
							  (!finder.target && sp->offset == finder.begin));

	take_return(p, true);
	if (is_within && finder.nr_behind < MAX_BEHIND)
		finder.behind[finder.nr_behind++] = *p;
}

/* Opcodes ff and 8f. False: the path ends. */
static bool take_group_5(struct path *p, const struct csink_x86_insn *insn)
{
	switch (insn->reg & 7) {
	case 2:
	case 3:
		return take_call(p, insn);
	case 4:
		jump_somewhere(p);
		return false;
	case 5:
		return false;
	case 6:
		push(p, insn->mod == 3 ? p->reg[insn->rm & 15] : load(p, address(p, insn)));
		break;
	default:
		if (insn->mod == 3)
			set(p, insn->rm, (value){CSINK_CODE_UNKNOWN});
	}
	return true;
}

static bool take_0f(struct path *p, const struct csink_x86_insn *insn)
{
	if (insn->opcode >> 4 == 8)
		branch(p, p->pc + (uint64_t)insn->imm);
	if (insn->opcode == 0x0b || insn->opcode == 0xb9 ||
	    insn->opcode == 0xff) { /* undefined: nothing is behind it */
		finder.halts = true;
		return false;
	}
	if (insn->opcode == 0x05 || insn->opcode == 0x34)
		forget(p, 1U << AX | (finder.is_32 ? 0 : 1U << CX | 1U << 11));
	if (insn->opcode >> 4 == 4 && insn->mod == 3) /* a conditional move */
		set(p, insn->reg, (value){CSINK_CODE_UNKNOWN});
	return true;
}

/* 40 to 5f: push and pop, and in 32-bit code inc and dec. */
static void take_register_opcode(struct path *p, const struct csink_x86_insn *insn, const uint8_t *code)
{
	bool is_high = !finder.is_32 && insn->bytes > 1 && code[insn->bytes - 2] >> 4 == 4 && code[insn->bytes - 2] & 1;
	uint8_t reg = (uint8_t)((insn->opcode & 7) | (is_high ? 8 : 0));

	if (insn->opcode < 0x50)
		set(p, reg, (value){CSINK_CODE_UNKNOWN});
	else if (insn->opcode < 0x58)
		push(p, p->reg[reg]);
	else
		set(p, reg, pop(p));
}

static void push_all(struct path *p)
{
	value sp = p->reg[SP];

	for (uint32_t reg = 0; reg < 8; reg++)
		push(p, reg == SP ? sp : p->reg[reg]);
}

static void pop_all(struct path *p)
{
	for (uint8_t reg = 8; reg-- > 0;) {
		value is = pop(p);

		if (reg != SP)
			set(p, reg, is);
	}
}

/* Any arithmetic of registers whose result is in one: 00 to 3f. */
static void take_register_arithmetic(struct path *p, const struct csink_x86_insn *insn)
{
	uint8_t form = insn->opcode & 7;

	if (insn->opcode >= 0x38 || form >= 4 || !(insn->opcode & 1))
		return;
	if (form == 3)
		set(p, insn->reg, (value){CSINK_CODE_UNKNOWN});
	else if (insn->mod == 3)
		set(p, insn->rm, (value){CSINK_CODE_UNKNOWN});
}

/* False: the path ends. */
static bool take_one_byte(struct path *p, const struct csink_x86_insn *insn, const uint8_t *code)
{
	uint8_t op = insn->opcode;

	if (op < 0x40)
		take_register_arithmetic(p, insn);
	else if (op < 0x60)
		take_register_opcode(p, insn, code);
	else if (op >> 4 == 7 || (op >= 0xe0 && op <= 0xe3))
		branch(p, p->pc + (uint64_t)insn->imm);
	else
		switch (op) {
		case 0x60:
			push_all(p);
			break;
		case 0x61:
			pop_all(p);
			break;
		case 0x68:
		case 0x6a:
		case 0x9c:
			push(p, (value){CSINK_CODE_UNKNOWN});
			break;
		case 0x9d:
			pop(p);
			break;
		case 0x81:
		case 0x83:
			take_arithmetic(p, insn);
			break;
		case 0x87:
			if (insn->mod == 3)
				set(p, insn->rm, (value){CSINK_CODE_UNKNOWN});
			set(p, insn->reg, (value){CSINK_CODE_UNKNOWN});
			break;
		case 0x89:
		case 0x8b:
			take_move(p, insn, op == 0x8b);
			break;
		case 0x8d:
			set(p, insn->reg, address(p, insn));
			break;
		case 0x8f:
			store(p, address(p, insn), pop(p));
			break;
		case 0xc2:
		case 0xc3:
			take_return(p, false);
			return false;
		case 0xc9:
			p->reg[SP] = p->reg[BP];
			set(p, BP, pop(p));
			break;
		case 0xcd:
			forget(p, 1U << AX);
			break;
		case 0xe8:
			return take_call(p, insn);
		case 0xe9:
		case 0xeb:
			p->pc += (uint64_t)insn->imm;
			break;
		case 0xff:
			return take_group_5(p, insn);
		case 0xf4:
			finder.halts = true;
			return false;
		case 0xc8: /* enter; far calls and returns; a breakpoint: not in functions that are followed here */
		case 0x9a:
		case 0xea:
		case 0xca:
		case 0xcb:
		case 0xcc:
		case 0xcf:
			return false;
		}
	return true;
}

static void follow(struct path *p)
{
	uint8_t code[CSINK_X86_MAX_BYTES];
	struct csink_x86_insn insn;

	for (bool goes_on = true; goes_on && finder.left; finder.left--) {
		size_t bytes = csink_object_code_read(finder.object, p->pc, code, sizeof(code));

		if (finder.target && p->pc == finder.target) {
			finder.is_found = true;
			finder.at = *p;
			return;
		}
		if (!meet(p->pc) || !csink_x86_decode(code, bytes, !finder.is_32, &insn))
			return;
		if (finder.target > p->pc && finder.target < p->pc + insn.bytes)
			return; /* not the instructions that ran */
		p->pc += insn.bytes;
		if (insn.is_vector)
			continue;
		if (insn.map == CSINK_X86_ONE_BYTE)
			goes_on = take_one_byte(p, &insn, code);
		else if (insn.map == CSINK_X86_0F)
			goes_on = take_0f(p, &insn);
	}
}

static void start(const struct csink_attach_object *object, uint64_t pc, uint64_t target)
{
	struct path *p = &finder.pending[0];

	finder.object = object;
	finder.is_32 = object->is_32;
	finder.word = object->is_32 ? 4 : 8;
	finder.left = MAX_INSTRUCTIONS;
	finder.left_of_callees = MAX_OF_CALLEES;
	finder.target = target;
	finder.is_found = finder.halts = false;
	finder.round++;
	finder.nr_pending = 1;
	finder.nr_behind = 0;
	finder.begin = 0;
	memset(p, 0, sizeof(*p));
	p->pc = pc;
	for (uint32_t reg = 0; reg < (object->is_32 ? 8 : NR_REGS); reg++)
		p->reg[reg] = (value){CSINK_CODE_PLAIN, csink_code_reg(object->is_32, reg), 0, 0};
}

static bool has_return(void)
{
	for (uint32_t i = 0; i < finder.rules->nr; i++)
		if (!finder.rules->at[i].is_jump)
			return true;
	return false;
}

static void follow_all(void)
{
	static struct path now;

	while (finder.left && !finder.is_found) {
		if (finder.nr_pending)
			now = finder.pending[--finder.nr_pending];
		else if (finder.nr_behind && (finder.target || !has_return()))
			now = finder.behind[--finder.nr_behind];
		else
			return;
		follow(&now);
	}
}

void csink_code_find_returns(const struct csink_attach_object *object, uint64_t pc, bool is_behind_call,
			     struct csink_code_rules *rules)
{
	memset(rules, 0, sizeof(*rules));
	finder.rules = rules;
	start(object, pc, 0);
	if (is_behind_call)
		finder.pending[0].reg[SP].offset = finder.begin = popped_before(object, pc);
	follow_all();
	rules->halts = finder.halts && !rules->nr;
}

/* ---- from the start ---- */

/*
 * The frame at the end of the path: what addresses by the stack pointer at the start, or by an aligned one, are by the
 * registers at the end.
 */
struct frame_base {
	uint8_t of;     /* CSINK_REG_SP (at the start) or ALIGNED */
	uint8_t reg;    /* at the end: CSINK_REG_SP or CSINK_REG_FP */
	int32_t offset; /* of that register there */
	int32_t popped; /* see popped_before(); of the stack pointer */
};

static value in_frame(const struct frame_base *base, int32_t offset)
{
	return (value){CSINK_CODE_PLAIN, base->reg, offset - base->offset + base->popped, 0};
}

static bool find_base(const struct path *p, uint8_t of, int32_t popped, struct frame_base *base)
{
	const value *sp = &p->reg[SP], *fp = &p->reg[BP];

	if (sp->kind == CSINK_CODE_PLAIN && sp->reg == of)
		*base = (struct frame_base){of, CSINK_REG_SP, sp->offset, popped};
	else if (fp->kind == CSINK_CODE_PLAIN && fp->reg == of)
		*base = (struct frame_base){of, CSINK_REG_FP, fp->offset, 0};
	else
		return false;
	return true;
}

/* What a word that the path has saved will be. */
static value saved_word(const struct frame_base *base, uint32_t i, const struct path *p, int32_t addend)
{
	value at = in_frame(base, p->saved[i].at.offset);

	return (value){CSINK_CODE_LOADED, at.reg, at.offset, addend};
}

/* Where the return address lies: where the stack pointer was; if only an aligned one is known, as a register says that
 * has the former and was saved. */
static bool find_return_address(const struct path *p, const struct frame_base *base, value *ra_at)
{
	if (base->of == CSINK_REG_SP) {
		*ra_at = in_frame(base, 0);
		return true;
	}
	for (uint32_t reg = 0; reg < NR_REGS; reg++) {
		if (p->reg[reg].kind != CSINK_CODE_PLAIN || p->reg[reg].reg != CSINK_REG_SP)
			continue;
		*ra_at = (value){CSINK_CODE_PLAIN, csink_code_reg(finder.is_32, reg), -p->reg[reg].offset, 0};
		return true;
	}
	for (uint32_t i = 0; i < p->nr_saved; i++) {
		const value *is = &p->saved[i].is;

		if (p->saved[i].at.reg != base->of || is->kind != CSINK_CODE_PLAIN || is->reg != CSINK_REG_SP)
			continue;
		*ra_at = saved_word(base, i, p, -is->offset);
		return true;
	}
	return false;
}

/* The caller's register: still there, or where the path saved it. */
static value callers(const struct path *p, const struct frame_base *base, uint8_t dwarf_reg, const value *now)
{
	value is = {CSINK_CODE_PLAIN, dwarf_reg, 0, 0};

	for (uint32_t i = 0; i < p->nr_saved; i++)
		if (is_same(&p->saved[i].is, &is) && p->saved[i].at.reg == base->of)
			return saved_word(base, i, p, 0);
	return is_same(now, &is) ? is : (value){CSINK_CODE_UNKNOWN};
}

bool csink_code_find_frame(const struct csink_attach_object *object, uint64_t from, uint64_t pc, bool is_behind_call,
			   struct csink_code_rule *rule)
{
	static struct csink_code_rules unused;
	int32_t popped = is_behind_call ? popped_before(object, pc) : 0;
	const struct path *p = &finder.at;
	struct frame_base base;

	memset(&unused, 0, sizeof(unused));
	memset(rule, 0, sizeof(*rule));
	finder.rules = &unused;
	start(object, from, pc);
	follow_all();
	if (!finder.is_found || (!find_base(p, CSINK_REG_SP, popped, &base) && !find_base(p, ALIGNED, popped, &base)) ||
	    !find_return_address(p, &base, &rule->ra_at))
		return false;
	for (uint32_t reg = 0; reg < (object->is_32 ? 8 : NR_REGS); reg++) {
		uint8_t dwarf_reg = csink_code_reg(object->is_32, reg);
		int slot = csink_cfi_slot(dwarf_reg);

		if (slot >= 0)
			rule->slots[slot] = callers(p, &base, dwarf_reg, &p->reg[reg]);
	}
	return true;
}
