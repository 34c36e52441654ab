/*
 * The line that runs of a JavaScript function. Runs in the handler of the thread whose frames are read.
 *
 * A frame of the interpreter has the function's bytecodes and an offset in them; code that is compiled without being
 * optimized ("baseline") has a table of how much code each bytecode became; what optimized code has, v8_inlines.c
 * reads. V8 makes the table of the bytecodes' places in the source when it first needs it, for Error.stack for
 * instance, or at once with --no-enable-lazy-source-positions. Without it the line is not known. Here the tables are
 * found, and copied at the first sample of a function that has them; the launcher decodes them
 * (launcher/collect/v8_positions.c).
 *
 * Sources: V8's src/execution/frame-constants.h, src/objects/bytecode-array.tq, src/objects/code.h, and
 * src/builtins/x64/builtins-x64.cc (registers of the interpreter) of 10.2 to 13.6; 14.1 and 14.6
 * (node 25 and 26) are the same by what tests/cli/frames_v8.t finds, but for the kinds of code.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/v8_impl.h"
#include "preload/agent/unwind/code_copies.h"

/* Bytes from the end of a frame, and from a tagged pointer. */
enum {
	TAG = CSINK_V8_TAG,
	FRAME_BYTECODES = -48,
	FRAME_OFFSET = -56,
	LENGTH = 8 - TAG, /* of arrays, a Smi */
	BYTES = 16 - TAG, /* of an array of bytes */
	SHARED_DATA = 8 - TAG,
	MAX_TABLES = 60 * 1024, /* bytes of all tables of a function */
	WALKS_WITHOUT = 16,     /* of a thread, in which a function without tables is taken to have none still */
	NR_HANDLERS = 256,
	MAX_STEP = 12,           /* bytes from a bytecode to the next one, perhaps with another one between them */
	MAX_HANDLER = 16 * 1024, /* bytes of the code that runs one bytecode, at most */
};

/*
 * How many operands each operation has, a digit: one behind another, since the loader would have to relocate pointers
 * in every program.
 */
#define V8_10 "2103113131111111115334111112"
#define V8_11 "103311313111112111111115333401111121"
#define V8_12 "5333213432103311111111111111111101111121"
#define V8_13 "643321343331003311101111111111111111101111121" /* 14 has the same */
static const struct operand_counts {
	char V8_10_[sizeof(V8_10)], V8_11_[sizeof(V8_11)], V8_12_[sizeof(V8_12)], V8_13_[sizeof(V8_13)];
} operand_counts = {V8_10, V8_11, V8_12, V8_13};
#define OPERATIONS(version)                                                                                            \
	.nr_operations = sizeof(version) - 1, .operand_counts = offsetof(struct operand_counts, version##_)

/* node 24 to 26 differ in the kinds of code alone. */
#define SINCE_13                                                                                                       \
	.positions = 24, .code_bytecodes = 8, .code_offsets = 16, .code_start = 40, .code_size = 56, .header = 32,     \
	.code_back = 24, .code_states = 8, .first_state = 12, .literals = 3, .frame = 0, .last_frame = 1, .begin = 14, \
	.table_header = 12, .code_flags = 52, OPERATIONS(V8_13)

static const struct csink_v8_version versions[] = {
	{.major = 10,
	 .minor = 2,
	 .positions = 32,
	 .code_bytecodes = 16,
	 .code_offsets = 24,
	 .code_start = 128,
	 .code_size = 40,
	 .is_code_inside = true,
	 .header = 128,
	 .code_back = 0,
	 .code_states = 16,
	 .first_state = 11,
	 .literals = 2,
	 .frame = 18,
	 .last_frame = 18,
	 .begin = 3,
	 .table_header = 8,
	 .code_flags = 48,
	 .maglev = 12,
	 .regexp = 3,
	 OPERATIONS(V8_10)},
	{.major = 11,
	 .minor = 3,
	 .positions = 32,
	 .code_bytecodes = 16,
	 .code_offsets = 24,
	 .code_start = 40,
	 .code_size = 56,
	 .header = 16,
	 .code_back = 8,
	 .code_states = 16,
	 .first_state = 11,
	 .literals = 2,
	 .frame = 23,
	 .last_frame = 24,
	 .begin = 2,
	 .table_header = 8,
	 .code_flags = 48,
	 .maglev = 12,
	 .regexp = 3,
	 OPERATIONS(V8_11)},
	{.major = 12,
	 .minor = 4,
	 .positions = 24,
	 .code_bytecodes = 8,
	 .code_offsets = 16,
	 .code_start = 40,
	 .code_size = 52,
	 .header = 32,
	 .code_back = 24,
	 .code_states = 8,
	 .first_state = 11,
	 .literals = 2,
	 .frame = 0,
	 .last_frame = 1,
	 .begin = 12,
	 .table_header = 8,
	 .code_flags = 48,
	 .maglev = 11,
	 .regexp = 3,
	 OPERATIONS(V8_12)},
	{.major = 13, .minor = 6, .maglev = 11, .regexp = 3, SINCE_13},
	{.major = 14, .minor = 1, .maglev = 11, .regexp = 3, SINCE_13},
	{.major = 14, .minor = 6, .maglev = 12, .regexp = 4, SINCE_13},
};

const char *csink_v8_operand_counts(const struct csink_v8_version *version)
{
	return (const char *)&operand_counts + version->operand_counts;
}

const struct csink_v8_version *csink_v8_version(const struct csink_v8_layout *layout)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(versions); i++) {
		if (versions[i].major == layout->version && versions[i].minor == layout->minor)
			return layout->type_bytecodes && layout->type_bytes && layout->type_code && layout->bytecodes
				       ? &versions[i]
				       : NULL;
	}
	return NULL;
}

/* An array, which *array is the address of, and its length. 0: it is of another type, or empty. */
static uint32_t length_of(struct csink_interp_walk *walk, uint64_t *array, int type)
{
	bool ok = type && csink_v8_type(walk, array) == type;
	uint64_t length = csink_v8_word(walk, *array + LENGTH, &ok);

	return ok && !(uint32_t)length && length >> 32 <= MAX_TABLES ? (uint32_t)(length >> 32) : 0;
}

#if defined(__x86_64__)
/*
 * The table of the interpreter has the code of each bytecode: alone, and behind the two prefixes. Returns where the one
 * begins that has the interrupted instruction; 0: it is in none. What was found is kept by instruction: V8's own code
 * stays where it is.
 */
static uint64_t find_handler(struct csink_interp_walk *walk, uintptr_t table)
{
	static _Atomic uint64_t kept[32]; /* instruction << 16 | bytes from the begin, by any thread */
	uintptr_t pc = csink_context_pc(walk->context);
	_Atomic uint64_t *slot = &kept[(pc ^ pc >> 8) % CSINK_ARRAY_SIZE(kept)];
	uint64_t has = atomic_load_explicit(slot, memory_order_relaxed), begin = 0, other;

	_Static_assert(MAX_HANDLER <= 1 << 16, "the distance has 16 bits");
	if (has >> 16 == pc)
		return pc - (uint16_t)has;
	for (uint32_t i = 0; i < 3 * NR_HANDLERS; i++) {
		if (!csink_interp_load(walk, table + 8UL * i, &other))
			return 0;
		begin = other <= pc && other > begin ? other : begin;
	}
	if (pc - begin >= MAX_HANDLER)
		return 0;
	atomic_store_explicit(slot, (uint64_t)pc << 16 | (pc - begin), memory_order_relaxed);
	return begin;
}

/* Does this code run the bytecode at an offset? */
static bool is_handler_of(struct csink_interp_walk *walk, uintptr_t table, uint64_t handler, uintptr_t at)
{
	bool ok = true, is = false;
	uint64_t bytecode = csink_v8_word(walk, at, &ok) & 0xff;

	for (uint32_t i = 0; i < 3 && ok && !is; i++)
		is = csink_v8_word(walk, table + 8 * (NR_HANDLERS * i + bytecode), &ok) == handler;
	return ok && is;
}

/*
 * The offset that the interpreter has in registers while it runs the code of a bytecode; a frame has that of its last
 * call. Before the code of the next bytecode is entered, the register has the offset of that. False: no such code runs.
 * *offset is 0 if the registers have something else.
 */
static bool offset_in_registers(struct csink_interp_walk *walk, const struct csink_v8_place *place, uint32_t *offset)
{
	const greg_t *registers = walk->context->uc_mcontext.gregs;
	uintptr_t table = (uintptr_t)registers[REG_R15];
	uint32_t begin = csink_v8_layout(walk)->bytecodes - TAG;
	uint64_t at = (uint64_t)registers[REG_R9], handler = find_handler(walk, table);

	*offset = 0;
	if (!handler || at - begin >= place->nr_bytecodes)
		return handler != 0;
	for (uint64_t back = 0; back <= CSINK_MIN(at - begin, (uint64_t)MAX_STEP); back++) {
		if (is_handler_of(walk, table, handler, place->bytecodes + at - back)) {
			*offset = (uint32_t)(at - back);
			break;
		}
	}
	return true;
}
#else
static bool offset_in_registers(struct csink_interp_walk *walk, const struct csink_v8_place *place, uint32_t *offset)
{
	(void)walk;
	(void)place;
	(void)offset;
	return false;
}
#endif

/* Find the table of the bytecodes' places. False: there is none. */
static bool find_positions(struct csink_interp_walk *walk, const struct csink_v8_version *version,
			   struct csink_v8_place *place)
{
	const struct csink_v8_layout *layout = csink_v8_layout(walk);
	bool ok = true;

	place->nr_bytecodes = length_of(walk, &place->bytecodes, layout->type_bytecodes);
	if (!place->nr_bytecodes)
		return false;
	place->positions = csink_v8_word(walk, place->bytecodes - TAG + version->positions, &ok);
	place->nr_positions = ok ? length_of(walk, &place->positions, layout->type_bytes) : 0;
	return place->nr_positions > 0;
}

/* The interpreter runs the function. False: where is not known. */
static bool place_in_bytecodes(struct csink_interp_walk *walk, const struct csink_v8_frame *frame,
			       struct csink_v8_place *place)
{
	uint32_t begin = csink_v8_layout(walk)->bytecodes - TAG, offset = 0;
	bool ok = true;

	if ((!frame->is_innermost || !offset_in_registers(walk, place, &offset)) && !frame->is_exact)
		offset = (uint32_t)(csink_v8_word(walk, frame->end + (uintptr_t)FRAME_OFFSET, &ok) >> 32);
	place->position = offset - begin;
	return ok && place->position < place->nr_bytecodes;
}

/* Baseline code runs the function. False: it is other code. */
static bool place_in_code(struct csink_interp_walk *walk, const struct csink_v8_frame *frame, uint64_t shared,
			  const struct csink_v8_version *version, struct csink_v8_place *place)
{
	bool ok = true;
	uint64_t start, size, bytecodes;

	place->code = csink_v8_word(walk, shared + SHARED_DATA, &ok);
	if (!ok || csink_v8_type(walk, &place->code) != csink_v8_layout(walk)->type_code)
		return false;
	start = place->code - TAG + version->code_start;
	if (!version->is_code_inside)
		start = csink_v8_word(walk, start, &ok);
	size = (uint32_t)csink_v8_word(walk, place->code - TAG + version->code_size, &ok);
	bytecodes = csink_v8_word(walk, place->code - TAG + version->code_bytecodes, &ok);
	place->offsets = csink_v8_word(walk, place->code - TAG + version->code_offsets, &ok);
	place->position = (uint32_t)(frame->pc - start + frame->is_exact);
	return ok && frame->pc - start < size + !frame->is_exact &&
	       csink_v8_type(walk, &bytecodes) == csink_v8_layout(walk)->type_bytecodes &&
	       bytecodes == place->bytecodes &&
	       (place->nr_offsets = length_of(walk, &place->offsets, csink_v8_layout(walk)->type_bytes)) > 0;
}

bool csink_v8_is_own_code(const struct csink_interp_walk *walk, uintptr_t pc)
{
	return pc - walk->interpreter->start < walk->interpreter->end - walk->interpreter->start ||
	       csink_code_copies_have(pc);
}

/* Has so little time passed since a walk that what was not there then is not looked for again? */
static bool is_recent(const struct csink_interp_walk *walk, uint64_t number)
{
	return walk->room->nr_walks - number < WALKS_WITHOUT;
}

/*
 * Find the tables of a frame's bytecodes, unless they are known. A function is what it was (v8.c), so it has bytecodes
 * of the same size: a table of their places can come to them, and can be moved.
 */
static void find_tables(struct csink_interp_walk *walk, const struct csink_v8_version *version, uint64_t stored,
			struct csink_v8_tables *tables)
{
	bool is_known = tables->found.stored == stored, ok = true;
	uint64_t words[2];

	if (is_known &&
	    (tables->found.nr_positions ? tables->walk == walk->room->nr_walks : is_recent(walk, tables->walk)))
		return;
	words[0] = csink_v8_word(walk, stored - TAG, &ok);
	words[1] = csink_v8_word(walk, stored - TAG + version->positions, &ok);
	tables->walk = walk->room->nr_walks;
	if (is_known && ok && tables->words[0] == words[0] && tables->words[1] == words[1])
		return;
	memcpy(tables->words, words, sizeof(words));
	tables->found = (struct csink_v8_place){.stored = stored, .bytecodes = stored};
	find_positions(walk, version, &tables->found);
}

/* What optimized code has on the stack is no bytecodes. Where an object was that is no code, there may be code later.
 */
static bool may_be_baseline(struct csink_interp_walk *walk, uint64_t shared, struct csink_v8_tables *tables)
{
	bool ok = true;
	uint64_t data = csink_v8_word(walk, shared + SHARED_DATA, &ok), code = data;

	if (!ok || (tables->not_code == data && is_recent(walk, tables->not_code_walk)))
		return false;
	if (csink_v8_type(walk, &code) == csink_v8_layout(walk)->type_code)
		return true;
	tables->not_code = data;
	tables->not_code_walk = walk->room->nr_walks;
	return false;
}

void csink_v8_find_place(struct csink_interp_walk *walk, const struct csink_v8_frame *frame, uint64_t shared,
			 struct csink_v8_tables *tables, struct csink_v8_place *place)
{
	const struct csink_v8_version *version = csink_v8_version(csink_v8_layout(walk));
	bool is_own = csink_v8_is_own_code(walk, frame->pc);
	bool has_baseline = version && (!is_own || frame->is_exact) && may_be_baseline(walk, shared, tables);
	bool ok = version && frame->end + (uintptr_t)FRAME_OFFSET >= frame->begin && (is_own || has_baseline);
	struct csink_v8_frame caller = {.begin = frame->begin, .end = frame->end};
	uint64_t stored = csink_v8_word(walk, frame->end + (uintptr_t)FRAME_BYTECODES, &ok);

	/* Most frames have none: nothing else is set, or copied. */
	place->nr_positions = place->position = 0;
	if (ok)
		find_tables(walk, version, stored, tables);
	if (!ok || !tables->found.nr_positions)
		return;
	/* A builtin function without a frame runs: on top of the stack is its return address, in code that is not
	 * optimized. */
	if (is_own && has_baseline && csink_interp_load(walk, frame->begin, &caller.pc)) {
		*place = tables->found;
		if (place_in_code(walk, &caller, shared, version, place))
			return;
	}
	*place = tables->found;
	if (!(is_own ? place_in_bytecodes(walk, frame, place) : place_in_code(walk, frame, shared, version, place)))
		place->nr_positions = place->position = 0;
}

void csink_v8_place_at(struct csink_interp_walk *walk, uint64_t shared, uint32_t offset, struct csink_v8_place *place)
{
	const struct csink_v8_version *version = csink_v8_version(csink_v8_layout(walk));
	bool ok = true;

	*place = (struct csink_v8_place){.bytecodes = csink_v8_word(walk, shared + SHARED_DATA, &ok)};
	/* Code that is not optimized is in the place of the bytecodes that it was made of. */
	if (ok && csink_v8_type(walk, &place->bytecodes) == csink_v8_layout(walk)->type_code)
		place->bytecodes = csink_v8_word(walk, place->bytecodes - TAG + version->code_bytecodes, &ok);
	if (ok && find_positions(walk, version, place) && offset < place->nr_bytecodes)
		place->position = offset;
	else
		*place = (struct csink_v8_place){0};
}

void csink_v8_add_tables(struct csink_interp_walk *walk, const struct csink_v8_place *place,
			 struct csink_code_source *to)
{
	const struct csink_v8_layout *layout = csink_v8_layout(walk);
	uint32_t nr_bytecodes = place->code ? place->nr_bytecodes : 0;

	_Static_assert(sizeof(struct csink_rec_v8_lines) == sizeof(to->own), "own[] is one");
	if (!place->nr_positions || place->nr_positions + nr_bytecodes + place->nr_offsets > MAX_TABLES)
		return;
	to->own[2] = (uint32_t)layout->version << 16 | layout->minor;
	to->own[3] = place->nr_positions;
	to->own[4] = nr_bytecodes;
	to->table_bytes = sizeof(to->own);
	to->more[0] = (struct csink_code_part){place->positions + BYTES, place->nr_positions};
	to->more[1] = (struct csink_code_part){place->bytecodes - TAG + layout->bytecodes, nr_bytecodes};
	to->more[2] = (struct csink_code_part){place->offsets + BYTES, place->nr_offsets};
}
