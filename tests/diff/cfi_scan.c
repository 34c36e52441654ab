/*
 * What frame rules there are: reads the tables of installed programs and libraries with our own parser, row by row, and
 * says how our walker would take each.
 *
 *   cfi_scan FILE...
 *
 * Files are mapped as a loader would, and not run. A row counts once for each address where rules change. Fails if a
 * row is found that the walker cannot follow from any frame.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/agent/unwind/cfi_row.h"
#include "preload/core/cfi/cfi_read.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

enum { MAX_SHOWN = 20 };

/* How a row is followed. */
enum way {
	PLAIN,  /* by walk_plain */
	BY_REG, /* one of the other closed forms */
	OUTERMOST,
	BY_RULES, /* by csink_cfi_step, from any frame */
	LEAF,     /* needs a register that a callee may change: as the innermost frame, or above a signal's only */
	LOST,     /* rules that cannot be followed */
	UNREAD,   /* rules that cannot be read */
	NO_ENTRY, /* an entry that cannot be read */
	NR_WAYS
};

static const char *const way_names[NR_WAYS] = {
	[PLAIN] = "plain: stack or frame pointer plus an offset",
	[BY_REG] = "closed form of another register, or of memory",
	[OUTERMOST] = "outermost frame",
	[BY_RULES] = "by all rules, expressions evaluated",
	[LEAF] = "likewise, but of the innermost frame only: it needs a register that calls do not keep",
	[LOST] = "that cannot be followed",
	[UNREAD] = "that cannot be read",
	[NO_ENTRY] = "entries that cannot be read",
};

static uint64_t ways[NR_WAYS], nr_files, nr_bare, nr_entries;
static const char *file;
static int nr_shown;

static uint64_t arena[4096]; /* every word points into its middle, so that whatever is dereferenced can be read */

/* Registers that point there; or, but for the stack pointer, are small numbers. */
static struct csink_cfi_regs make_regs(bool all, bool small)
{
	struct csink_cfi_regs regs = {.known = 0};

	for (unsigned int i = 0; i < CSINK_NR_REGS; i++)
		regs.value[i] = small && i != CSINK_REG_SP ? 8 : (uintptr_t)&arena[sizeof(arena) / sizeof(*arena) / 2];
	for (unsigned int i = 0; i < CSINK_NR_REGS; i++)
		if (all || csink_cfi_slot(i) >= 0)
			regs.known |= 1ULL << i;
	return regs;
}

static bool rule_works(const struct csink_cfi_fde *fde, struct csink_cfi_rule rule, const struct csink_cfi_regs *regs,
		       bool is_kept)
{
	struct csink_stack_bounds bounds = {(uintptr_t)arena, (uintptr_t)arena + sizeof(arena)};
	uint64_t cfa = regs->value[CSINK_REG_SP], value;
	struct csink_loader load;

	csink_loader_init(&load, &bounds, bounds.low);
	switch ((enum csink_cfi_kind)rule.kind) {
	case CSINK_CFI_UNSET:
	case CSINK_CFI_SAME:
		return is_kept;
	case CSINK_CFI_REGISTER:
		return rule.value >= 0 && rule.value < CSINK_NR_REGS && regs->known >> rule.value & 1;
	case CSINK_CFI_AT_EXPR:
	case CSINK_CFI_IS_EXPR:
		return csink_cfi_eval(fde, (const uint8_t *)(intptr_t)rule.value, regs, &cfa, &load, &value);
	case CSINK_CFI_UNDEFINED:
		return false;
	default:
		return true;
	}
}

/* Would csink_cfi_step know the CFA, the return address and the caller's stack pointer? */
static bool can_step(const struct csink_cfi_fde *fde, const struct csink_cfi_rules *rules, bool all, bool small)
{
	struct csink_stack_bounds bounds = {(uintptr_t)arena, (uintptr_t)arena + sizeof(arena)};
	struct csink_cfi_regs regs = make_regs(all, small);
	struct csink_loader load;
	uint64_t cfa;

	csink_loader_init(&load, &bounds, bounds.low);
	if (rules->cfa_expr ? !csink_cfi_eval(fde, rules->cfa_expr, &regs, NULL, &load, &cfa)
			    : rules->cfa_reg >= CSINK_NR_REGS || !(regs.known >> rules->cfa_reg & 1))
		return false;
	return rule_works(fde, rules->rule[CSINK_SLOT_RA], &regs, all) &&
	       rule_works(fde, rules->rule[CSINK_SLOT_SP], &regs, true);
}

static enum way way_of(const struct csink_cfi_fde *fde, uintptr_t pc)
{
	struct csink_cfi_rules rules;
	enum csink_row_kind kind;

	if (!csink_cfi_rules_at(fde, pc, &rules))
		return UNREAD;
	kind = csink_row_kind(csink_row_close(fde, pc, &rules));
	if (kind == CSINK_ROW_END)
		return OUTERMOST;
	if (kind == CSINK_ROW_COMPLEX)
		return can_step(fde, &rules, false, false) || can_step(fde, &rules, false, true) ? BY_RULES
		       : can_step(fde, &rules, true, false) || can_step(fde, &rules, true, true) ? LEAF
												 : LOST;
	return kind < CSINK_ROW_NR_PLAIN ? PLAIN : BY_REG;
}

static void take(const struct csink_cfi_fde *fde, uintptr_t pc, uintptr_t base)
{
	enum way way = way_of(fde, pc);

	ways[way]++;
	if (way <= LEAF || nr_shown++ >= MAX_SHOWN)
		return;
	printf("  %s+0x%zx: %s\n", file, pc - base, way_names[way]);
}

/* Pass over one instruction's operands; how far it goes in the code, or 0. Expressions, too, are a length and bytes. */
static uint64_t next_advance(struct csink_reader *r, const struct csink_cfi_fde *fde)
{
	uint8_t op = csink_read_u8(r);

	switch (op >> 6) {
	case 1:
		return (op & 0x3f) * fde->code_align;
	case 2:
		csink_read_uleb(r);
		return 0;
	case 3:
		return 0;
	}
	switch (op) {
	case 0x02:
		return csink_read_u8(r) * fde->code_align;
	case 0x03:
		return csink_read_u16(r) * fde->code_align;
	case 0x04:
		return csink_read_u32(r) * fde->code_align;
	case 0x06: /* one number */
	case 0x07:
	case 0x08:
	case 0x0d:
	case 0x0e:
	case 0x13:
	case 0x2e:
		csink_read_uleb(r);
		return 0;
	case 0x05: /* two */
	case 0x09:
	case 0x0c:
	case 0x11:
	case 0x12:
	case 0x14:
	case 0x15:
	case 0x2f:
		csink_read_uleb(r);
		csink_read_uleb(r);
		return 0;
	case 0x10: /* one, and an expression */
	case 0x16:
		csink_read_uleb(r);
		csink_read_skip(r, csink_read_uleb(r));
		return 0;
	case 0x0f: /* an expression */
		csink_read_skip(r, csink_read_uleb(r));
		return 0;
	}
	return 0;
}

static void scan_entry(const struct csink_cfi_fde *fde, uintptr_t base)
{
	struct csink_reader r = {fde->code, fde->code_end, false};
	uintptr_t at = fde->start;

	nr_entries++;
	take(fde, at, base);
	while (r.at < r.end && !r.failed) {
		uint64_t advance = next_advance(&r, fde);

		if (!advance || r.failed)
			continue;
		at += advance;
		if (at >= fde->end)
			break;
		take(fde, at, base);
	}
}

static void scan_table(const struct csink_cfi_table *table, uintptr_t base)
{
	struct csink_reader r = {table->hdr + 4, table->hdr_end, false};
	uint64_t hdr = (uintptr_t)table->hdr, nr;

	csink_read_encoded(&r, table->hdr[1], hdr);
	nr = csink_read_encoded(&r, table->hdr[2], hdr);
	for (uint64_t i = 0; i < nr && !r.failed; i++) {
		uintptr_t pc = hdr + (uint64_t)(int64_t)(int32_t)csink_read_u32(&r);
		struct csink_cfi_fde fde;

		csink_read_u32(&r);
		if (r.failed)
			break;
		if (csink_cfi_find(table, pc, &fde)) {
			scan_entry(&fde, base);
			continue;
		}
		ways[NO_ENTRY]++;
		if (nr_shown++ < MAX_SHOWN)
			printf("  %s+0x%zx: an entry that cannot be read\n", file, pc - base);
	}
}

/* The file's segments where the loader would put them. */
static void scan_image(int fd, const Elf64_Ehdr *ehdr, const Elf64_Phdr *phdr)
{
	struct csink_cfi_table table;
	uint64_t bytes = 0;
	char *base;

	for (int i = 0; i < ehdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_vaddr + phdr[i].p_memsz > bytes)
			bytes = phdr[i].p_vaddr + phdr[i].p_memsz;
	base = bytes > 1ULL << 40 ? MAP_FAILED
				  : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return;
	for (int i = 0; i < ehdr->e_phnum; i++) {
		uint64_t slack = phdr[i].p_vaddr & 4095;

		if (phdr[i].p_type == PT_LOAD && phdr[i].p_filesz &&
		    mmap(base + phdr[i].p_vaddr - slack, phdr[i].p_filesz + slack, PROT_READ, MAP_PRIVATE | MAP_FIXED,
			 fd, (off_t)(phdr[i].p_offset - slack)) == MAP_FAILED)
			break;
	}
	if (csink_cfi_table_of((uintptr_t)base, phdr, ehdr->e_phnum, &table)) {
		nr_files++;
		scan_table(&table, (uintptr_t)base);
	} else {
		nr_bare++;
	}
	munmap(base, bytes);
}

/* Files of other kinds and other machines are passed over. */
static void scan_file(int fd)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[64];
	size_t bytes;

	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) || memcmp(ehdr.e_ident, ELFMAG, SELFMAG) ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_machine != MACHINE ||
	    (ehdr.e_type != ET_DYN && ehdr.e_type != ET_EXEC) || !ehdr.e_phnum || ehdr.e_phnum > 64)
		return;
	bytes = ehdr.e_phnum * sizeof(*phdr);
	if (pread(fd, phdr, bytes, (off_t)ehdr.e_phoff) == (ssize_t)bytes)
		scan_image(fd, &ehdr, phdr);
}

int main(int argc, char **argv)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < sizeof(arena) / sizeof(*arena); i++)
		arena[i] = (uintptr_t)&arena[sizeof(arena) / sizeof(*arena) / 2];
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		file = argv[i];
		scan_file(fd);
		close(fd);
	}
	for (int i = 0; i < NO_ENTRY; i++)
		rows += ways[i];
	printf("%" PRIu64 " files with tables, %" PRIu64 " without; %" PRIu64 " entries, %" PRIu64 " rows:\n", nr_files,
	       nr_bare, nr_entries, rows);
	for (int i = 0; i < NR_WAYS; i++)
		printf("%12" PRIu64 "  %9.5f %%  %s\n", ways[i], rows ? 100.0 * (double)ways[i] / (double)rows : 0,
		       way_names[i]);
	if (!rows)
		fputs("cfi_scan: no file with tables among those given\n", stderr);
	return !rows || ways[LOST] || ways[UNREAD] || ways[NO_ENTRY];
}
