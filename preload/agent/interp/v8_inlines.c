/*
 * Functions that V8's optimizing compilers (TurboFan, Maglev) inlined into another one. Runs in the handler of the
 * thread whose frames are read.
 *
 * Optimized code has a list of the states in which it may have to be left for the interpreter: the functions that run
 * there, inlined ones included, where in their bytecodes they are, and where their values are. A call that may come
 * back to the interpreter has the state of its return address. So the functions of callers are known, those of the
 * interrupted instruction are not.
 *
 * No table leads from an address to its code. But code begins at multiples of 64 bytes, behind an object of a known
 * type that refers to its description, which in turn has the address of the code. This finds code that replaced a
 * running loop, too. What was found is kept for each return address by its thread, and compared with what its code and
 * function are now: V8 removes code and uses its place again.
 *
 * Sources: V8's src/deoptimizer/translation-opcode.h, translation-array.cc (frame-translation-builder.cc from 12 on),
 * src/base/vlq.h, src/codegen/safepoint-table.h and src/objects/deoptimization-data.h of 10.2 to 13.6. The number of
 * operands is that in the programs, 25 and 26 included (TranslationOpcodeOperandCount). tests/cli/frames_v8.t compares
 * frames with Error.stack.
 */
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/v8_impl.h"

/* Bytes from a tagged pointer, but where another unit is given. */
enum {
	TAG = CSINK_V8_TAG,
	WEAK = 2, /* set in references that do not keep an object */
	LENGTH = 8 - TAG,
	ITEMS = 16 - TAG,
	ALIGNMENT = 64,         /* of code */
	MAX_CODE = 512 * 1024,  /* bytes of code that are looked at */
	MAX_STATES = 64 * 1024, /* words of a list of states */
	STATE_WORDS = 3,        /* offset in bytecodes, index of its operations, offset of its return address */
	MAX_OPERATIONS = 16384, /* of a state */
	MAX_FRAMES = 64,        /* of a state */
	KIND_MASK = 15,         /* of a code's flags */
	MAX_REGEXP = 64 * 1024, /* as MAX_CODE */
	NR_CONTINUATIONS = 2,   /* operations behind those of functions, which are frames of JavaScript, too: those of
				   builtin functions */
	FIRST_COMPRESSED = 11,  /* the version from which on operations may refer to those of another state */
};

/* A state's operations: a byte each, with operands. */
struct reader {
	struct csink_interp_walk *walk;
	uintptr_t bytes;
	uint32_t nr, nr_operations;
	uint32_t at;
	/* Operations that are equal to another state's are not repeated: where that is, and how many more are read
	 * there.
	 */
	uint32_t other, nr_equal;
	uint32_t nr_since; /* operations since the other position was set */
	bool is_old, ok;
	const char *nr_operands;
};

static uint32_t next_byte(struct reader *r, uint32_t *at)
{
	uintptr_t address = r->bytes + *at;
	uint64_t word = 0;

	r->ok = r->ok && *at < r->nr;
	word = csink_v8_word(r->walk, address & ~7UL, &r->ok);
	++*at;
	return word >> 8 * (address & 7) & 0xff;
}

static uint32_t number(struct reader *r, uint32_t *at)
{
	uint32_t value = 0, byte = 1 << 7;

	for (unsigned int shift = 0; byte & 1 << 7 && shift < 32; shift += 7) {
		byte = next_byte(r, at);
		value |= (byte & 127) << shift;
	}
	return value;
}

/* Where the operands of the current operation are. */
static uint32_t *operands_at(struct reader *r)
{
	return r->nr_equal ? &r->other : &r->at;
}

static void skip(struct reader *r, uint32_t operation, uint32_t nr_read, uint32_t *at)
{
	uint32_t nr = operation < r->nr_operations ? (uint32_t)(r->nr_operands[operation] - '0') : 0;

	for (r->ok = r->ok && operation<r->nr_operations; nr> nr_read; nr--)
		number(r, at);
}

static uint32_t next_operation(struct reader *r)
{
	uint32_t operation;

	if (r->is_old)
		return number(r, &r->at) >> 1;
	r->nr_equal -= r->nr_equal > 0;
	if (r->nr_equal)
		return next_byte(r, &r->other);
	operation = next_byte(r, &r->at);
	r->nr_since++;
	if (operation < r->nr_operations - 1)
		return operation;
	/* The last operation has a number of equal ones; what is above it is that number. */
	r->nr_equal = operation >= r->nr_operations ? operation - r->nr_operations : number(r, &r->at);
	for (r->nr_since--; r->nr_since && r->ok; r->nr_since--)
		skip(r, next_byte(r, &r->other), 0, &r->other);
	return next_byte(r, &r->other);
}

static int32_t signed_operand(struct reader *r)
{
	uint32_t value = number(r, operands_at(r));

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* Begin with a state. Returns how many frames of JavaScript it has; 0: it cannot be read. */
static uint32_t begin_state(struct reader *r, const struct csink_v8_version *version, uint32_t at)
{
	uint32_t operation, back;
	int32_t nr;

	r->at = at;
	operation = next_operation(r);
	if (operation != version->begin && (r->is_old || operation != version->begin + 1U))
		return 0;
	back = r->is_old ? 0 : number(r, &r->at);
	r->other = at - back;
	r->ok = r->ok && back <= at;
	signed_operand(r);
	nr = signed_operand(r);
	if (r->is_old)
		signed_operand(r);
	return r->ok && nr > 0 && nr <= MAX_FRAMES ? (uint32_t)nr : 0;
}

/* An array's length; 0: it cannot be right. */
static uint32_t length_of(struct csink_interp_walk *walk, uint64_t array)
{
	bool ok = array & TAG;
	uint64_t length = csink_v8_word(walk, array + LENGTH, &ok);

	return ok && !(uint32_t)length && length >> 32 <= MAX_STATES ? (uint32_t)(length >> 32) : 0;
}

static uint64_t item(struct csink_interp_walk *walk, uint64_t array, uint32_t i, bool *ok)
{
	return csink_v8_word(walk, array + ITEMS + 8UL * i, ok);
}

/* The functions of a state, innermost first. Returns how many; 0: they cannot be read, or have no room. */
static int read_state(struct csink_interp_walk *walk, const struct csink_v8_version *version, uint64_t states,
		      uint32_t index, struct csink_v8_inlined *inlined)
{
	bool ok = true;
	uint64_t bytes = item(walk, states, 0, &ok), literals = item(walk, states, version->literals, &ok);
	struct reader r = {.walk = walk,
			   .bytes = bytes + ITEMS,
			   .is_old = version->major < FIRST_COMPRESSED,
			   .nr_operations = version->nr_operations,
			   .nr_operands = csink_v8_operand_counts(version)};
	uint32_t nr_frames, nr_literals = ok ? length_of(walk, literals) : 0;
	int nr = 0;

	r.nr = ok ? length_of(walk, bytes) : 0;
	r.ok = r.nr > 0;
	nr_frames = begin_state(&r, version, index);
	for (uint32_t i = 0; nr_frames && r.ok && i < MAX_OPERATIONS; i++) {
		uint32_t operation = next_operation(&r);
		bool is_function = operation >= version->frame && operation <= version->last_frame;

		nr_frames -= operation - version->frame <= version->last_frame - version->frame + NR_CONTINUATIONS + 0U;
		if (is_function) {
			int32_t offset = signed_operand(&r), literal = signed_operand(&r);
			struct csink_v8_inlined f = {.offset = (uint32_t)CSINK_MAX(offset, 0)};

			r.ok = r.ok && nr < CSINK_V8_MAX_INLINED && (uint32_t)literal < nr_literals;
			f.shared = r.ok ? item(walk, literals, (uint32_t)literal, &r.ok) & ~(uint64_t)WEAK : 0;
			r.ok = r.ok && csink_v8_type(walk, &f.shared) == csink_v8_layout(walk)->type_shared;
			if (!r.ok)
				return 0;
			memmove(inlined + 1, inlined, (size_t)nr++ * sizeof(*inlined));
			inlined[0] = f;
		}
		skip(&r, operation, is_function ? 2 : 0, operands_at(&r));
	}
	return r.ok && !nr_frames ? nr : 0;
}

struct code {
	uintptr_t start;
	uint64_t object, states; /* what describes it, and its list of states; that is 0 if there is none */
	uint32_t size, kind;
};

/* Returns 0: no code begins there, or -1: nor does any before it, as memory ends there that can be read. */
static int read_code(struct csink_interp_walk *walk, const struct csink_v8_version *version, uintptr_t start,
		     struct code *to)
{
	const struct csink_v8_layout *layout = csink_v8_layout(walk);
	uint64_t object = start - version->header + TAG, code = object, begin = start;
	bool ok = true;
	uint64_t map = csink_v8_word(walk, start - version->header, &ok);

	*to = (struct code){.start = start};
	/* Nearly all that is no such object is not even an address; of one that was moved, the word is its new place.
	 */
	if (!ok)
		return -1;
	if ((map & 7 & ~(uint64_t)TAG) || map >> 47 || !(map >> 12) ||
	    csink_v8_type(walk, &object) != layout->type_instructions)
		return 0;
	code = version->code_back ? code : object;
	if (version->code_back)
		code = csink_v8_word(walk, start - version->code_back, &ok);
	if (!ok || csink_v8_type(walk, &code) != layout->type_code)
		return 0;
	if (!version->is_code_inside)
		begin = csink_v8_word(walk, code - TAG + version->code_start, &ok);
	to->size = (uint32_t)csink_v8_word(walk, code - TAG + version->code_size, &ok);
	to->kind = csink_v8_word(walk, code - TAG + version->code_flags, &ok) & KIND_MASK;
	to->object = code;
	to->states = csink_v8_word(walk, code - TAG + version->code_states, &ok);
	return ok && (begin == start || begin == object - TAG + version->header);
}

/* The code that an address is in. False: it is in none. */
static bool find_code(struct csink_interp_walk *walk, const struct csink_v8_version *version, uintptr_t pc,
		      uint32_t max, struct code *code)
{
	uintptr_t at = pc & ~(uintptr_t)(ALIGNMENT - 1);
	int found = 0;

	for (; pc - at < max && !found && !walk->is_broken; at -= ALIGNMENT)
		found = read_code(walk, version, at, code);
	return found > 0 && pc - code->start <= code->size;
}

static uint64_t bytes_at(struct csink_interp_walk *walk, uintptr_t at, uint32_t nr, bool *ok)
{
	return csink_v8_word(walk, at, ok) & ((1UL << 8 * nr) - 1);
}

/*
 * The operations of a return address's state: an index in the bytes of them all. -1: it has none. Behind the
 * instructions is a table of calls: how many there are, the sizes of its fields, and for each one its offset, the
 * number of its state plus one, and the offset plus one of the code that is returned to instead if the caller's code is
 * not valid any more.
 */
static int64_t find_state(struct csink_interp_walk *walk, const struct csink_v8_version *version,
			  const struct code *code, uint64_t offset)
{
	bool ok = true, is_maglev = code->kind == version->maglev;
	uintptr_t table = code->start + code->size;
	uint64_t states = code->states;
	uint32_t nr = (uint32_t)csink_v8_word(walk, table + version->table_header - 8U, &ok);
	uint32_t sizes = (uint32_t)csink_v8_word(walk, table + version->table_header - 4U, &ok);
	uint32_t registers = sizes >> 1 & 7, of_offset = sizes >> 4 & 7, of_number = sizes >> 7 & 7;
	uintptr_t at = table + version->table_header + (is_maglev ? 4 : 0);
	uint32_t bytes = registers + is_maglev;
	uint64_t number = 0;

	if (!(sizes & 1) || nr > MAX_STATES)
		return -1;
	for (uint32_t i = 0; ok && i < nr && !number; i++) {
		bool is = bytes_at(walk, at, of_offset, &ok) == offset ||
			  bytes_at(walk, at + of_offset + of_number, of_offset, &ok) == offset + 1;

		number = is ? bytes_at(walk, at + of_offset, of_number, &ok) : 0;
		at += 2UL * of_offset + of_number + bytes;
	}
	if (!ok || !number || version->first_state + number * STATE_WORDS > length_of(walk, states))
		return -1;
	number = item(walk, states, (uint32_t)(version->first_state + (number - 1) * STATE_WORDS + 1), &ok) >> 32;
	return ok ? (int64_t)number : -1;
}

bool csink_v8_is_regexp(struct csink_interp_walk *walk, uintptr_t pc)
{
	const struct csink_v8_version *version = csink_v8_version(csink_v8_layout(walk));
	struct code code;

	return version && csink_v8_layout(walk)->type_instructions && find_code(walk, version, pc, MAX_REGEXP, &code) &&
	       code.kind == version->regexp;
}

/* Is that code still there? */
static bool is_same_code(struct csink_interp_walk *walk, const struct csink_v8_version *version,
			 const struct csink_v8_kept *kept)
{
	bool ok = true, is = csink_v8_word(walk, kept->code - TAG + version->code_states, &ok) == kept->states;

	/* Where the instructions are part of the object that describes them, that is not moved. */
	return ok && is &&
	       (!version->code_back ||
		(csink_v8_word(walk, kept->start - version->code_back, &ok) == kept->code && ok));
}

int csink_v8_find_inlined(struct csink_interp_walk *walk, uintptr_t pc, uint64_t identity, struct csink_v8_kept *kept,
			  struct csink_v8_inlined *inlined)
{
	const struct csink_v8_version *version = csink_v8_version(csink_v8_layout(walk));
	struct code code;
	bool is_found;
	int64_t index;

	if (!version || !csink_v8_layout(walk)->type_instructions)
		return 0;
	if (kept->pc == pc && kept->identity == identity && (!kept->start || is_same_code(walk, version, kept)))
		return -1;
	is_found = find_code(walk, version, pc, MAX_CODE, &code);
	if (walk->is_broken) /* what was not looked at is not kept */
		return 0;
	*kept = (struct csink_v8_kept){.pc = pc,
				       .start = is_found ? code.start : 0,
				       .code = code.object,
				       .states = code.states,
				       .identity = identity,
				       .recording = csink_code_ids_nr_resets};
	index = is_found ? find_state(walk, version, &code, pc - code.start) : -1;
	return index >= 0 ? read_state(walk, version, code.states, (uint32_t)index, inlined) : 0;
}
