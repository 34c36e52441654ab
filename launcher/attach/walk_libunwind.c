/*
 * libunwind over a copied stack: see walk_libunwind.h. In the launcher only, in the attach command's one thread.
 *
 * The objects are foreign and libunwind does not check all that their tables may hold: it reads beyond its arrays for a
 * register number that is too large, and divides INT64_MIN by -1. So our own reader finds the entry of an address and
 * passes over its instructions; an entry with anything that can lead libunwind astray counts as none. What libunwind
 * reads then is a CIE and an FDE that are made here, with those instructions, at addresses just below the function.
 */
#include "launcher/attach/walk_libunwind.h"

#include <libunwind.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/recording_format.h"
#include "preload/core/cfi/cfi_op.h"

/* libunwind's search of a table by reads through the accessors. It is exported, but in none of its headers. */
#define search_table UNW_OBJ(dwarf_search_unwind_table)
extern int search_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *table, unw_proc_info_t *found,
			int need_unwind_info, void *arg);

#define MAX_READS 200000        /* of a stack; one of 500 frames takes some 30,000 */
#define MADE_BYTES (64U << 10)  /* room for an entry; few functions' instructions take more than 1 KiB */
#define MADE_HEAD_BYTES 128     /* more than what a CIE and an FDE have besides instructions */
#define MAX_INSTRUCTIONS 100000 /* of an entry; as our own reader takes */
#if defined(__x86_64__)
#define MAX_RULE_REG 17 /* registers that libunwind keeps rules of */
#elif defined(__aarch64__)
#define MAX_RULE_REG 97
#endif

/* What the accessors serve during one walk. */
static struct remote {
	const struct csink_walk_copy *copy;
	uint64_t made_at;    /* where libunwind sees `made` */
	uint32_t made_bytes; /* in use */
	uint32_t reads_left; /* of the whole stack */
	/* Of the frame: its entry was found; it can be followed, too; a signal came in it. */
	bool has_entry, has_rules, signal_frame;
	bool is_cut, is_unreadable; /* a read of the frame went beyond the copy; went elsewhere */
	union {
		unsigned char bytes[MADE_BYTES];
		uint64_t words[MADE_BYTES / 8];
	} made;
} remote;

/* ---- which instructions libunwind may see ---- */

/*
 * Operands of instructions by their numbers: u a LEB128 number, d a register that gets a rule, r a register that is
 * read, e an expression, 1, 2, 4 so many bytes. NULL: not taken.
 */
static const char *const operands[] = {
	[0x00] = "",   [0x02] = "1",  [0x03] = "2",  [0x04] = "4",  [0x05] = "du", [0x06] = "d",  [0x07] = "d",
	[0x08] = "d",  [0x09] = "dr", [0x0a] = "",   [0x0b] = "",   [0x0c] = "du", [0x0d] = "d",  [0x0e] = "u",
	[0x0f] = "e",  [0x10] = "de", [0x11] = "du", [0x12] = "du", [0x13] = "u",  [0x14] = "du", [0x15] = "du",
	[0x16] = "de", [0x2d] = "",   [0x2e] = "u",  [0x2f] = "du",
};

/* Without branches, whose targets would have to be followed, and without signed division. */
static bool is_harmless_expression(struct csink_reader r)
{
	while (r.at < r.end && !r.failed) {
		uint8_t op = csink_read_u8(&r);
		uint64_t unused;

		if (csink_cfi_op_constant(&r, op, &unused))
			continue;
		if (op >= OP_BREG0 && op <= OP_BREG31)
			csink_read_sleb(&r);
		else if (op == OP_PLUS_UCONST)
			csink_read_uleb(&r);
		else if (op == OP_PICK || op == OP_DEREF_SIZE)
			csink_read_u8(&r);
		else if (op != OP_DEREF && op != OP_NOP && (op < OP_DUP || op > OP_NE || op == OP_DIV || op == OP_BRA))
			return false;
	}
	return !r.failed;
}

static bool is_harmless_operand(struct csink_reader *r, char kind)
{
	struct csink_reader expression = *r;
	uint64_t value = kind >= '1' && kind <= '4' ? (uint64_t)(kind - '0') : csink_read_uleb(r);

	switch (kind) {
	case 'd':
		return value < MAX_RULE_REG;
	case 'r':
		return value < CSINK_NR_REGS;
	case 'u':
		return true;
	case 'e':
		expression.at = r->at;
		csink_read_skip(r, value);
		expression.end = r->at;
		return !r->failed && is_harmless_expression(expression);
	default:
		csink_read_skip(r, value);
		return true;
	}
}

static bool are_harmless(const uint8_t *code, const uint8_t *end)
{
	struct csink_reader r = {code, end, false};

	for (uint32_t nr = 0; r.at < r.end && !r.failed; nr++) {
		uint8_t op = csink_read_u8(&r);
		const char *kinds;

		if (nr == MAX_INSTRUCTIONS)
			return false;
		if (op >> 6) { /* the operand, a register but for DW_CFA_advance_loc, is in the low bits */
			if (op >> 6 != 1 && (op & 0x3f) >= MAX_RULE_REG)
				return false;
			kinds = op >> 6 == 2 ? "u" : "";
		} else {
			kinds = op < CSINK_ARRAY_SIZE(operands) ? operands[op] : NULL;
		}
		if (!kinds)
			return false;
		for (; *kinds; kinds++)
			if (!is_harmless_operand(&r, *kinds))
				return false;
	}
	return !r.failed;
}

static bool is_harmless(const struct csink_cfi_fde *fde)
{
	uint64_t bytes = (uint64_t)(fde->initial_end - fde->initial) + (uint64_t)(fde->code_end - fde->code);

	return bytes <= MADE_BYTES - MADE_HEAD_BYTES && are_harmless(fde->initial, fde->initial_end) &&
	       are_harmless(fde->code, fde->code_end);
}

/* ---- the entry that libunwind reads ---- */

static void put(const void *from, size_t bytes)
{
	memcpy(remote.made.bytes + remote.made_bytes, from, bytes);
	remote.made_bytes += (uint32_t)bytes;
}

static void put_byte(uint8_t byte)
{
	put(&byte, 1);
}

static void put_u32(uint32_t value)
{
	put(&value, sizeof(value));
}

/* LEB128, signed: the same bytes are right for an unsigned number that is below 1 << 63. */
static void put_leb(int64_t value)
{
	while (value < -64 || value > 63) {
		put_byte((uint8_t)(value | 0x80));
		value >>= 7;
	}
	put_byte(value & 0x7f);
}

/* A length precedes what it is of. */
static void set_length(uint32_t at)
{
	uint32_t bytes = remote.made_bytes - at - (uint32_t)sizeof(bytes);

	memcpy(remote.made.bytes + at, &bytes, sizeof(bytes));
}

/* Returns where in `made` the FDE is. Before the CIE: a table of one entry, which is for the function's start. */
static uint32_t make_entry(const struct csink_cfi_fde *fde, uint64_t start)
{
	const uint32_t cie = 8;
	uint64_t bytes = fde->end - fde->start;
	uint32_t at;

	remote.made_bytes = cie;
	put_u32(0); /* length */
	put_u32(0); /* it is a CIE */
	put_byte(1);
	put(fde->signal_frame ? "zRS" : "zR", fde->signal_frame ? 4 : 3);
	put_leb((int64_t)fde->code_align);
	put_leb(fde->data_align);
	put_byte((uint8_t)fde->ra_reg);
	put_leb(1); /* bytes of augmentation: */
	put_byte(CSINK_PE_ABSPTR);
	put(fde->initial, (size_t)(fde->initial_end - fde->initial));
	set_length(cie);
	at = remote.made_bytes;
	put_u32(0);            /* length */
	put_u32(at + 4 - cie); /* back to the CIE */
	put(&start, sizeof(start));
	put(&bytes, sizeof(bytes));
	put_leb(0); /* no augmentation */
	put(fde->code, (size_t)(fde->code_end - fde->code));
	set_length(at);
	return at;
}

/* ---- accessors ---- */

static bool find_entry(const struct csink_walk_copy *copy, uint64_t pc, const struct csink_attach_object **object,
		       uint64_t *bias, struct csink_cfi_fde *fde)
{
	return copy->locate(copy->arg, pc, object, bias) && (*object)->table.hdr &&
	       csink_cfi_find(&(*object)->table, (uintptr_t)(pc - *bias) + (*object)->table_bias, fde);
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *found, int need_unwind_info,
			  void *arg)
{
	const struct csink_walk_copy *copy = remote.copy;
	const struct csink_attach_object *object;
	struct csink_cfi_fde fde;
	unw_dyn_info_t table = {.format = UNW_INFO_FORMAT_REMOTE_TABLE};
	uint64_t bias, start;
	int32_t entry[2] = {0};

	if (!find_entry(copy, ip, &object, &bias, &fde))
		return -UNW_ENOINFO;
	remote.has_entry = true;
	if (!is_harmless(&fde))
		return -UNW_ENOINFO;
	start = fde.start - object->table_bias + bias;
	remote.made_at = (start & ~7ULL) - MADE_BYTES;
	entry[1] = (int32_t)(remote.made_at + make_entry(&fde, start) - start);
	memcpy(remote.made.bytes, entry, sizeof(entry));
	remote.signal_frame = fde.signal_frame;
	remote.has_rules = true;
	table.start_ip = start;
	table.end_ip = start + (fde.end - fde.start);
	table.u.rti.segbase = start;
	table.u.rti.table_data = remote.made_at;
	table.u.rti.table_len = sizeof(entry) / (sizeof(unw_word_t)); /* in words */
	return search_table(space, ip, &table, found, need_unwind_info, arg);
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	uint64_t word;

	(void)space;
	(void)arg;
	if (write || !remote.reads_left)
		return -UNW_EINVAL;
	remote.reads_left--;
	if (addr - remote.made_at < remote.made_bytes && addr % 8 == 0) {
		word = remote.made.words[(addr - remote.made_at) / 8];
	} else if (!csink_walk_copy_load(remote.copy, addr, &word, &remote.is_cut)) {
		remote.is_unreadable = true;
		return -UNW_EINVAL;
	}
	*value = word;
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
	(void)space;
	(void)arg;
	if (write || (reg != UNW_REG_IP && (uint32_t)reg >= CSINK_NR_REGS))
		return -UNW_EBADREG;
	*value = reg == UNW_REG_IP ? csink_walk_copy_pc(remote.copy->regs)
				   : csink_walk_copy_first(remote.copy, (uint32_t)reg);
	return 0;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *found, void *arg)
{
	(void)space;
	(void)found;
	(void)arg;
}

/* No program's memory is asked for what a just-in-time compiler may have registered. */
static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *list, void *arg)
{
	(void)space;
	(void)list;
	(void)arg;
	return -UNW_ENOINFO;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	(void)space;
	(void)reg;
	(void)value;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
	(void)space;
	(void)cursor;
	(void)arg;
	return -UNW_EINVAL;
}

/* ---- the walk ---- */

static bool start(unw_cursor_t *cursor, const struct csink_walk_copy *copy)
{
	static unw_addr_space_t space; /* for all walks; nothing is cached in it */

	if (!space) {
		unw_accessors_t accessors = {
			.find_proc_info = find_proc_info,
			.put_unwind_info = put_unwind_info,
			.get_dyn_info_list_addr = get_dyn_info_list_addr,
			.access_mem = access_mem,
			.access_reg = access_reg,
			.access_fpreg = access_fpreg,
			.resume = resume,
		};

		space = unw_create_addr_space(&accessors, 0);
		if (space)
			unw_set_caching_policy(space, UNW_CACHE_NONE);
	}
	remote.copy = copy;
	remote.made_bytes = 0;
	remote.reads_left = MAX_READS;
	return space && unw_init_remote(cursor, space, NULL) == 0;
}

/* One frame. Sets *end where there is none. */
static bool step(unw_cursor_t *cursor, unw_word_t *ip, unw_word_t *sp, enum csink_walk_copy_end *end)
{
	int stepped;

	*ip = 0;
	remote.has_entry = remote.has_rules = remote.signal_frame = false;
	remote.is_cut = remote.is_unreadable = false;
	stepped = unw_step(cursor);
	if (stepped > 0 && (unw_get_reg(cursor, UNW_REG_IP, ip) || unw_get_reg(cursor, UNW_REG_SP, sp)))
		stepped = -UNW_EBADREG;
	/* Without rules libunwind guesses by the frame pointer: no better than ours, and with fewer checks. */
	if (stepped > 0 && remote.has_rules && *ip)
		return true;
	if (remote.has_rules && stepped >= 0)
		*end = CSINK_COPY_COMPLETE;
	else if (!remote.has_entry)
		*end = CSINK_COPY_NO_CFI;
	else if (remote.has_rules && (remote.is_cut || remote.is_unreadable))
		*end = remote.is_cut ? CSINK_COPY_CUT : CSINK_COPY_BAD_STACK;
	else
		*end = CSINK_COPY_RULES;
	return false;
}

uint32_t csink_walk_libunwind(const struct csink_walk_copy *copy, uint64_t *frames, uint32_t max_frames,
			      enum csink_walk_copy_end *end)
{
	unw_word_t ip, sp = 0, last_sp = csink_walk_copy_first(copy, CSINK_REG_SP);
	unw_cursor_t cursor;
	uint32_t nr = 0;

	*end = CSINK_COPY_NO_CFI;
	if (!start(&cursor, copy))
		return 0;
	for (; step(&cursor, &ip, &sp, end); last_sp = sp) {
		ip = CSINK_STRIP_SIGNATURE(ip);
		/* Each caller's frame lies above; the innermost may have none where calls do not push. */
		if ((!remote.signal_frame && (nr || CSINK_CALL_PUSHES ? sp <= last_sp : sp < last_sp)) ||
		    (ip - 1) >> 48) {
			*end = CSINK_COPY_BAD_STACK;
			break;
		}
		if (nr == max_frames) {
			*end = CSINK_COPY_DEPTH;
			break;
		}
		if (copy->cfas)
			copy->cfas[nr] = sp;
		frames[nr++] = ip | (remote.signal_frame ? CSINK_FRAME_EXACT : 0);
	}
	return nr;
}

/* Whether a table has the code where a walk ended: else libunwind would end there, too. */
static bool ended_in_table(const struct csink_walk_copy *copy, const uint64_t *frames, uint32_t nr)
{
	uint64_t last = nr ? frames[nr - 1] : csink_walk_copy_pc(copy->regs) | CSINK_FRAME_EXACT, bias;
	uint64_t pc = last & CSINK_FRAME_EXACT ? last & ~CSINK_FRAME_EXACT : last - 1;
	const struct csink_attach_object *object;
	struct csink_cfi_fde fde;

	return find_entry(copy, pc, &object, &bias, &fde);
}

uint32_t csink_walk_chosen(enum csink_walk_by by, const struct csink_walk_copy *copy, uint64_t *frames,
			   uint32_t max_frames, enum csink_walk_copy_end *end, bool *helped)
{
	static uint64_t other[CSINK_MAX_DEPTH], other_cfas[CSINK_MAX_DEPTH];
	struct csink_walk_copy again = *copy;
	enum csink_walk_copy_end other_end;
	uint32_t nr, nr_other;

	*helped = false;
	if (by == CSINK_WALK_BY_LIBUNWIND)
		return csink_walk_libunwind(copy, frames, max_frames, end);
	nr = csink_walk_copy(copy, frames, max_frames, end);
	if (by == CSINK_WALK_BY_OURS || (*end != CSINK_COPY_RULES && *end != CSINK_COPY_NO_CFI) ||
	    !ended_in_table(copy, frames, nr))
		return nr;
	again.cfas = copy->cfas ? other_cfas : NULL;
	nr_other = csink_walk_libunwind(&again, other, CSINK_MIN(max_frames, (uint32_t)CSINK_MAX_DEPTH), &other_end);
	if (nr_other <= nr || memcmp(other, frames, nr * sizeof(*frames)))
		return nr;
	memcpy(frames, other, nr_other * sizeof(*frames));
	if (copy->cfas)
		memcpy(copy->cfas, other_cfas, nr_other * sizeof(*other_cfas));
	*end = other_end;
	*helped = true;
	return nr_other;
}
