/* Call frame information: from assembly with known directives to rules and rows; and tables that lie. */
#include "preload/agent/unwind/cfi_row.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"

#include <sys/mman.h>

#if defined(__x86_64__)
/* Nothing here is ever run: labels are asked for their rows. Each label is one byte into the state that it is in. */
__asm__(".text\n"
	".globl cfi_plain, cfi_pushed, cfi_big, cfi_fp, cfi_restored, cfi_remembered, cfi_after\n"
	"plain_start: .cfi_startproc\n"
	"cfi_plain: nop\n"
	".cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	"cfi_pushed: nop\n"
	".cfi_def_cfa_offset 8388608\n"
	"cfi_big: nop\n"
	".cfi_def_cfa %rbp, 16\n"
	"cfi_fp: nop\n"
	".cfi_remember_state\n .cfi_def_cfa %rsp, 8\n .cfi_restore %rbp\n"
	"cfi_restored: nop\n"
	".cfi_restore_state\n"
	"cfi_remembered: nop\n"
	".cfi_adjust_cfa_offset 0\n"
	".fill 300, 1, 0x90\n" /* advance_loc2 */
	".cfi_def_cfa_offset 32\n"
	"cfi_after: nop\n"
	".cfi_endproc\n"

	".globl cfi_end, cfi_rbx, cfi_signal, cfi_ra_elsewhere, cfi_far\n"
	".cfi_startproc\n .cfi_undefined %rip\n cfi_end: nop\n .cfi_endproc\n"
	".cfi_startproc\n .cfi_def_cfa %rbx, 24\n cfi_rbx: nop\n .cfi_endproc\n"
	".cfi_startproc\n .cfi_signal_frame\n cfi_signal: nop\n .cfi_endproc\n"
	".cfi_startproc\n .cfi_register %rip, %rdx\n cfi_ra_elsewhere: nop\n .cfi_endproc\n"
	".cfi_startproc\n .cfi_offset %rbp, -65536\n cfi_far: nop\n .cfi_endproc\n"

	/* DW_CFA_def_cfa_expression: breg7 +8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus: as in a PLT */
	".globl cfi_plt, cfi_plt_pushed, cfi_drap, cfi_deref, cfi_odd\n"
	".p2align 4\n .cfi_startproc\n"
	".cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22\n"
	"cfi_plt: .fill 11, 1, 0x90\n"
	"cfi_plt_pushed: .fill 5, 1, 0x90\n"
	".cfi_endproc\n"
	/* a realigned stack: CFA = *(rbp - 24); rbp saved at rbp + 0 */
	".cfi_startproc\n .cfi_escape 0x0f, 3, 0x76, 0x68, 0x06\n .cfi_escape 0x10, 6, 2, 0x76, 0\n"
	"cfi_drap: nop\n .cfi_endproc\n"
	/* CFA = *(rsp + 56) + 8, rbp as it was */
	".cfi_startproc\n .cfi_escape 0x0f, 5, 0x77, 56, 0x06, 0x23, 8\n cfi_deref: nop\n .cfi_endproc\n"
	/* CFA = rsp * 2: nothing that a row can say */
	".cfi_startproc\n .cfi_escape 0x0f, 4, 0x77, 0, 0x32, 0x1e\n cfi_odd: nop\n .cfi_endproc\n");

extern char cfi_plain[], cfi_pushed[], cfi_big[], cfi_fp[], cfi_restored[], cfi_remembered[], cfi_after[];
extern char cfi_end[], cfi_rbx[], cfi_signal[], cfi_ra_elsewhere[], cfi_far[];
extern char cfi_plt[], cfi_plt_pushed[], cfi_drap[], cfi_deref[], cfi_odd[];

enum { SP = 0, FP = CSINK_ROW_BASE_FP, SP_SAVED = CSINK_ROW_SAVED, FP_SAVED = CSINK_ROW_BASE_FP | CSINK_ROW_SAVED };

static void is_row(const char *at, unsigned int kind, unsigned int reg, long cfa, long far, long near, const char *what)
{
	csink_row_t row = csink_row_compile((uintptr_t)at, true);

	if (!ok(csink_row_kind(row) == kind && csink_row_reg(row) == reg && csink_row_cfa_offset(row) == cfa &&
			csink_row_far(row) == far && csink_row_near(row) == near,
		"%s", what))
		printf("#   kind %d, register %u, CFA %+ld, far %+ld, near %+ld\n", csink_row_kind(row),
		       csink_row_reg(row), (long)csink_row_cfa_offset(row), (long)csink_row_far(row),
		       (long)csink_row_near(row));
}

static void check_rows(void)
{
	is_row(cfi_plain, SP, 0, 8, -8, 0, "the CFA row at a function's first instruction");
	is_row(cfi_pushed, SP_SAVED, 0, 16, -16, 0, "the CFA row after a push of the frame pointer");
	is_row(cfi_big, SP_SAVED, 0, 8388608, -16, 0, "the CFA row of a frame of 8 MiB");
	is_row(cfi_fp, FP_SAVED, 0, 16, -16, 0, "the CFA row of a frame with a frame pointer");
	is_row(cfi_restored, SP, 0, 8, -8, 0, "the epilogue restores a register to the CIE's rule");
	is_row(cfi_remembered, FP_SAVED, 0, 16, -16, 0, "DW_CFA_restore_state restores the remembered state");
	is_row(cfi_after, FP_SAVED, 0, 32, -16, 0, "the CFA row after a long advance");
	is_num((long)csink_row_compile((uintptr_t)cfi_after + 1, false),
	       (long)csink_row_compile((uintptr_t)cfi_after, true), "a return address means the call before it");
	is_row(cfi_end, CSINK_ROW_END, 0, 0, 0, 0, "an undefined return address is the end");
	is_row(cfi_rbx, CSINK_ROW_REG, 3, 24, -8, 0, "a CFA from another register");
	is_row(cfi_signal, CSINK_ROW_COMPLEX, 0, 0, 0, 0, "a signal frame that is not the kernel's");
	is_row(cfi_ra_elsewhere, CSINK_ROW_COMPLEX, 0, 0, 0, 0,
	       "the CFA row of a return address in a register: complex");
	is_row(cfi_far, CSINK_ROW_COMPLEX, 0, 0, 0, 0, "a frame pointer saved too far away for a row");
	is_row(cfi_plt, SP, 0, 8, -8, 0, "a PLT stub before its push");
	is_row(cfi_plt + 10, SP, 0, 8, -8, 0, "the CFA row of a PLT stub up to its push");
	is_row(cfi_plt_pushed, SP, 0, 16, -8, 0, "a PLT entry after the push");
	is_row(cfi_drap, CSINK_ROW_DEREF_FPX, CSINK_REG_FP, -24, 0, 0, "the CFA row of a realigned stack");
	is_row(cfi_deref, CSINK_ROW_DEREF, CSINK_REG_SP, 56, -8, 1, "the CFA row of a saved CFA");
	is_row(cfi_odd, CSINK_ROW_COMPLEX, 0, 0, 0, 0, "an expression without closed form");
}

static void check_eval(void)
{
	struct csink_stack_bounds bounds = setup_stack();
	struct csink_cfi_regs regs = {.known = 1ULL << CSINK_REG_SP};
	struct csink_cfi_table table;
	struct csink_cfi_fde fde;
	struct csink_cfi_rules rules;
	struct csink_loader load;
	uint64_t slot[8] = {0, 0, 0, 0, 0, 0, 0, 4711}, value = 0;

	csink_loader_init(&load, &bounds, (uintptr_t)slot);
	regs.value[CSINK_REG_SP] = (uintptr_t)slot;
	ok(csink_cfi_locate((uintptr_t)cfi_odd, &table) && csink_cfi_find(&table, (uintptr_t)cfi_odd, &fde) &&
		   csink_cfi_rules_at(&fde, (uintptr_t)cfi_odd, &rules),
	   "rules with an expression are found");
	ok(csink_cfi_eval(&fde, rules.cfa_expr, &regs, NULL, &load, &value) && value == 2 * (uintptr_t)slot,
	   "an expression is evaluated");
	regs.known = 0;
	ok(!csink_cfi_eval(&fde, rules.cfa_expr, &regs, NULL, &load, &value),
	   "an expression with an unknown register is refused");
	regs.known = 1ULL << CSINK_REG_SP;
	csink_cfi_locate((uintptr_t)cfi_deref, &table);
	csink_cfi_find(&table, (uintptr_t)cfi_deref, &fde);
	csink_cfi_rules_at(&fde, (uintptr_t)cfi_deref, &rules);
	ok(csink_cfi_eval(&fde, rules.cfa_expr, &regs, NULL, &load, &value) && value == 4719,
	   "an expression reads memory");
	regs.value[CSINK_REG_SP] = 16;
	ok(!csink_cfi_eval(&fde, rules.cfa_expr, &regs, NULL, &load, &value),
	   "an expression refuses memory that cannot be read");
}

/* ---- tables that lie --------------------------------------------------------------------------------------------- */

/* .eh_frame_hdr with one entry, a CIE and an FDE for the code at BASE + 0x1000, 0x100 bytes of it. */
static const unsigned char good[] = {
	/*  0 */ 1,  0x1b, 0x03, 0x3b, 16,   0,    0, 0,    1,    0,    0,   0,
	0x00,        0x10, 0,    0,    40,   0,    0, 0,
	/* 20 */ 16, 0,    0,    0,    0,    0,    0, 0,    1,    'z',  'R', 0,
	1,           0x78, 16,   1,    0x1b, 0x0c, 7, 8, /* the next entry: RA at CFA-8 */
	/* 40 */ 20, 0,    0,    0,    24,   0,    0, 0,    0xd0, 0x0f, 0,   0,
	0x00,        0x01, 0,    0,    0,    0x90, 1, 0x44, 0x0e, 16,   0,   0,
};

static unsigned char *area; /* of two pages, the second unreadable */

/* The table lies at the end of the readable page: a read beyond it would fault. */
static struct csink_cfi_table put(const unsigned char *bytes, size_t nr)
{
	unsigned char *at = area + 4096 - nr;

	memcpy(at, bytes, nr);
	return (struct csink_cfi_table){.low = at, .high = area + 4096, .hdr = at, .hdr_end = area + 4096};
}

static bool rules_of(const struct csink_cfi_table *table, uintptr_t offset, struct csink_cfi_rules *rules)
{
	uintptr_t pc = (uintptr_t)table->hdr + 0x1000 + offset;
	struct csink_cfi_fde fde;

	return csink_cfi_find(table, pc, &fde) && csink_cfi_rules_at(&fde, pc, rules);
}

static void check_good(void)
{
	struct csink_cfi_table table = put(good, sizeof(good));
	struct csink_cfi_rules rules;

	ok(rules_of(&table, 0, &rules) && rules.cfa_reg == 7 && rules.cfa_offset == 8 &&
		   rules.rule[CSINK_SLOT_RA].kind == CSINK_CFI_AT_CFA && rules.rule[CSINK_SLOT_RA].value == -8,
	   "a table made by hand is read");
	ok(rules_of(&table, 4, &rules) && rules.cfa_offset == 16, "a rule holds from its advance on");
	ok(rules_of(&table, 3, &rules) && rules.cfa_offset == 8, "a rule does not hold before its advance");
	ok(!rules_of(&table, 0x100, &rules) && !rules_of(&table, (uintptr_t)-1, &rules),
	   "a table covers only its range");
}

static void check_one_change(int at, unsigned char value, const char *what)
{
	unsigned char bytes[sizeof(good)];
	struct csink_cfi_table table;
	struct csink_cfi_rules rules;

	memcpy(bytes, good, sizeof(good));
	bytes[at] = value;
	table = put(bytes, sizeof(bytes));
	ok(!rules_of(&table, 8, &rules), "refused: %s", what);
}

static void check_lies(void)
{
	check_one_change(0, 2, "a header of another version");
	check_one_change(1, 0x80 | 0x1b, "an indirect pointer to the frames");
	check_one_change(2, 0xff, "a table without a count");
	check_one_change(3, 0x1b, "a table that is not data-relative");
	check_one_change(8, 3, "more entries than there are bytes");
	check_one_change(19, 0x80, "an entry that points out of the segment");
	check_one_change(18, 1, "an entry that points beyond the end");
	check_one_change(40, 0, "an FDE without length");
	check_one_change(40, 200, "an FDE longer than its segment");
	check_one_change(44, 0, "an FDE that is a CIE");
	check_one_change(44, 250, "a CIE before the segment");
	check_one_change(20, 200, "a CIE longer than its segment");
	check_one_change(28, 9, "a CIE of an unknown version");
	check_one_change(29, 'x', "an unknown augmentation");
	check_one_change(30, 'q', "an unknown letter in it");
	check_one_change(34, 5, "a return address in another column");
	check_one_change(36, 0x40, "an unknown encoding of addresses");
	check_one_change(56, 100, "augmentation data beyond the FDE");
	check_one_change(57, 0x3f, "an unknown instruction");
	check_one_change(57, 0x0b, "a state restored that was never remembered");
	check_one_change(60, 0x0f, "an expression beyond the table");
}

/* Every byte of the table set to every value: nothing but an answer may come of it. */
/* Some linkers put .eh_frame beside the data: two segments, with nothing between them. */
static void check_two_segments(void)
{
	unsigned char *base = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ElfW(Phdr) phdr[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0, .p_filesz = 20, .p_memsz = 20},
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = 0x2000, .p_filesz = sizeof(good) - 20},
		{.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_vaddr = 0, .p_filesz = 20, .p_memsz = 20},
	};
	int32_t frames = 0x2000 - 4, fde = 0x2000 + 20, start = 0x1000 - (0x2000 + 28);
	struct csink_cfi_table table;
	struct csink_cfi_rules rules;

	memcpy(base, good, 20);
	memcpy(base + 4, &frames, sizeof(frames));
	memcpy(base + 16, &fde, sizeof(fde));
	memcpy(base + 0x2000, good + 20, sizeof(good) - 20);
	memcpy(base + 0x2000 + 28, &start, sizeof(start));
	mprotect(base + 0x1000, 4096, PROT_NONE);
	ok(csink_cfi_table_of((uintptr_t)base, phdr, 3, &table) && rules_of(&table, 4, &rules) &&
		   rules.cfa_offset == 16,
	   "a header in one segment, its tables in another");
	phdr[1].p_flags = 0;
	ok(!csink_cfi_table_of((uintptr_t)base, phdr, 3, &table), "tables in an unreadable segment are refused");
	munmap(base, 3 * 4096);
}

static void check_all_changes(void)
{
	int answers = 0;

	for (size_t at = 0; at < sizeof(good); at++)
		for (int value = 0; value < 256; value++) {
			unsigned char bytes[sizeof(good)];
			struct csink_cfi_table table;
			struct csink_cfi_rules rules;

			memcpy(bytes, good, sizeof(good));
			bytes[at] = (unsigned char)value;
			table = put(bytes, sizeof(bytes));
			answers += rules_of(&table, 8, &rules);
		}
	ok(answers > 0, "every single-byte change is survived (%d of %d still give rules)", answers,
	   (int)sizeof(good) * 256);
	answers = 0;
	for (size_t nr = 0; nr < sizeof(good); nr++) {
		struct csink_cfi_table table = put(good, nr);
		struct csink_cfi_rules rules;

		answers += rules_of(&table, 8, &rules);
	}
	is_num(answers, 0, "every truncated table is refused");
}

int main(void)
{
	is_num(setup_modules(), 0, "the module snapshot is created");
	area = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(area + 4096, 4096, PROT_NONE);
	check_rows();
	check_eval();
	check_good();
	check_lies();
	check_two_segments();
	check_all_changes();
	return done();
}
#elif defined(__aarch64__)
/* As glibc's _dl_runtime_resolve(): entered with the return address in a pushed pair, which the CFA leaves out.
 */
__asm__(".text\n"
	".globl cfi_usual, cfi_entered, cfi_saved\n"
	".cfi_startproc\n .cfi_def_cfa_offset 32\n .cfi_offset x29, -32\n .cfi_offset x30, -24\n"
	"cfi_usual: nop\n .cfi_endproc\n"
	".cfi_startproc\n .cfi_rel_offset x30, 8\n"
	"cfi_entered: nop\n"
	".cfi_adjust_cfa_offset 208\n .cfi_rel_offset x19, 0\n"
	"cfi_saved: nop\n .cfi_endproc\n");

extern char cfi_usual[], cfi_entered[], cfi_saved[];

static bool rules_of(const char *at, struct csink_cfi_rules *rules)
{
	struct csink_cfi_table table;
	struct csink_cfi_fde fde;

	return csink_cfi_locate((uintptr_t)at, &table) && csink_cfi_find(&table, (uintptr_t)at, &fde) &&
	       csink_cfi_rules_at(&fde, (uintptr_t)at, rules);
}

static bool at_cfa(struct csink_cfi_rule rule, long value)
{
	return rule.kind == CSINK_CFI_AT_CFA && rule.value == value;
}

int main(void)
{
	struct csink_cfi_rules rules;

	is_num(setup_modules(), 0, "the module snapshot is created");
	ok(rules_of(cfi_usual, &rules) && rules.cfa_offset == 32 && at_cfa(rules.rule[CSINK_SLOT_RA], -24) &&
		   at_cfa(rules.rule[CSINK_SLOT_FP], -32),
	   "a usual frame keeps its rules");
	ok(rules_of(cfi_entered, &rules) && rules.cfa_offset == 16 && at_cfa(rules.rule[CSINK_SLOT_RA], -8),
	   "the CFA is above a pair that a PLT entry pushed");
	ok(rules_of(cfi_saved, &rules) && rules.cfa_offset == 224 && at_cfa(rules.rule[CSINK_SLOT_RA], -8) &&
		   at_cfa(rules.rule[csink_cfi_slot(19)], -224),
	   "what is saved below the pair stays where it is");
	return done();
}
#endif
