/*
 * Ruby's frames: 3.1 for x86-64, where its interpreter is a shared library. Runs in the handler of the thread whose
 * frames are read. Frames of methods in C are left out: their native frames stay.
 *
 * The newest frame can be unfinished: all that it refers to is read with checks. Older frames are whole, and their code
 * objects live. But compaction makes pages of objects unreadable for a while, and then moves the objects. So the first
 * word of each object is always checked. A thread without the interpreter's lock may run while another one compacts:
 * there, each object is copied by a call, which fails where a load would end the program. What is outside of objects
 * stays where it is.
 *
 * Sources: Ruby's vm_core.h, iseq.h and iseq.c of 3.1. tests/cli/frames.t compares frames with caller_locations().
 */
#include <elf.h>
#include <pthread.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/interp.h"
#include "preload/core/cfi/cfi.h"
#include "preload/core/interpreter_signs.h"

/* Offsets, bytes. */
enum {
	/* Of an execution context: */
	CONTEXT_STACK = 0,
	CONTEXT_WORDS = 8, /* of the stack */
	CONTEXT_NEWEST = 16,
	CONTEXT_THREAD = 48,
	THREAD_RACTOR = 24,
	THREAD_ID = 80,
	RACTOR_OWNER = 336, /* the thread that has the lock */
	/* Of a frame: */
	FRAME_BYTES = 64,
	FRAME_INSTRUCTION = 0, /* the next one */
	FRAME_CODE = 16,
	FRAME_FLAGS_AT = 32, /* where the word with its flags is */
	CODE_BODY = 16,      /* of a code object */
	/* Of its body: */
	BODY_NR_WORD = 0, /* number of words of its instructions: the upper half */
	BODY_INSTRUCTIONS = 8,
	BODY_FILE = 64,
	BODY_NAME = 80,
	BODY_FIRST_LINE = 88, /* a number as an object: 2 * line + 1 */
	BODY_LINES = 120,
	BODY_NR_LINES = 136, /* 32 bits */
	BODY_INDEX = 144,
	LINE_BYTES = 12, /* of an entry of its lines, which begins with the line, 32 bits */
	/* Of the index, by position: the number of entries up to it. Seven bits a position, then blocks of 512: */
	INDEX_BLOCKS = 48,
	BLOCK_BYTES = 80,
	BLOCK_RANK = 0,  /* of its beginning, 32 bits */
	BLOCK_RANKS = 8, /* of its words but the first, nine bits each */
	BLOCK_BITS = 16,
	/* Of a string and an array: */
	EMBEDDED = 16,
	STRING_BYTES = 16,
	STRING_TEXT = 24,
	ARRAY_ITEMS = 32,
};

enum {
	OBJECT_WORDS = 5,
	TYPE_MASK = 0x1f, /* of an object's flags */
	TYPE_STRING = 5,
	TYPE_ARRAY = 7,
	CODE_MASK = 0xf01f,
	TYPE_CODE = 0x701a,
	STRING_IS_OUTSIDE = 1 << 13,
	STRING_BYTES_SHIFT = 14,
	ARRAY_IS_EMBEDDED = 1 << 13,
	BEGINS_CALL = 0x20, /* flag of a frame: a call of the evaluator begins with it */
	MAGIC_MASK = 0x7fff0000,
	DUMMY = 0x79990000,
	INDEX_FIRST = 54,  /* positions before the blocks */
	LOOP_BYTES = 8192, /* of the function with the loop over instructions, at least; it has some 17 KB */
	MAX_FRAMES = 20000,
	MAX_TEXT = 1000,
	HASHED_TEXT = 64, /* last bytes of a text that identify it, beside its length */
};

enum { DATA_VARIABLE };

static int find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
{
	uintptr_t version = csink_elf_look(object, CSINK_SIGN_RUBY, STT_OBJECT, NULL), evaluator;
	uint64_t bytes = 0;
	int numbers[2] = {0};

	if (!version)
		return 0;
	object->copy(numbers, (void *)version, sizeof(numbers));
	evaluator = csink_elf_look(object, "rb_vm_exec", STT_FUNC, &bytes);
	to->data[DATA_VARIABLE] = csink_elf_thread_local(object, "ruby_current_ec");
	if (!CSINK_INTERP_HAS_THREAD_LOCAL || numbers[0] != 3 || numbers[1] != 1 || !evaluator ||
	    !to->data[DATA_VARIABLE]) {
		*why = "Ruby frames are not read: only version 3.1 for x86-64, as a shared library, is supported";
		return -1;
	}
	to->code = to->evaluator = evaluator;
	to->evaluator_end = evaluator + bytes;
	return 1;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* What identifies a function. */
struct function {
	uintptr_t name, file; /* strings */
	uint32_t first_line;
};

/* The word at an address; 0, and not *ok any more, if it cannot be read. */
static uint64_t word_at(struct csink_interp_walk *walk, uintptr_t at, bool *ok)
{
	uint64_t value = 0;

	*ok = csink_interp_load(walk, at, &value) && *ok;
	return value;
}

/*
 * Where an object's words can be read: in place, after a check, or in @copy if another thread may be moving objects.
 * @copy[0] has the first word. 0: they cannot be read.
 */
static uintptr_t find_object(struct csink_interp_walk *walk, uintptr_t object, uint64_t copy[OBJECT_WORDS])
{
	if (walk->is_unsure)
		return csink_interp_copy(walk, object, copy, OBJECT_WORDS * sizeof(*copy)) ? (uintptr_t)copy : 0;
	return csink_interp_load_checked(walk, object, copy) ? object : 0;
}

/* A string's text, which may be in @copy. */
static bool load_string(struct csink_interp_walk *walk, uintptr_t string, uint64_t copy[OBJECT_WORDS], uintptr_t *text,
			uint64_t *bytes)
{
	bool ok = true;

	string = find_object(walk, string, copy);
	if (!string || (copy[0] & TYPE_MASK) != TYPE_STRING)
		return false;
	*text = string + EMBEDDED;
	*bytes = copy[0] >> STRING_BYTES_SHIFT & 31;
	if (copy[0] & STRING_IS_OUTSIDE) {
		*text = word_at(walk, string + STRING_TEXT, &ok);
		*bytes = word_at(walk, string + STRING_BYTES, &ok);
	}
	return ok;
}

/* The path of a file as it was given: a string, or the first item of an array, which has the real path, too. */
static bool load_path(struct csink_interp_walk *walk, uintptr_t *file)
{
	uint64_t copy[OBJECT_WORDS];
	uintptr_t array = find_object(walk, *file, copy);
	bool ok = array != 0;

	if (ok && (copy[0] & TYPE_MASK) == TYPE_ARRAY)
		*file = word_at(
			walk, copy[0] & ARRAY_IS_EMBEDDED ? array + EMBEDDED : word_at(walk, array + ARRAY_ITEMS, &ok),
			&ok);
	return ok;
}

/* Copy a string's text with a NUL. Returns how many bytes; 0: it cannot be read. */
static uint32_t copy_string(struct csink_interp_walk *walk, uintptr_t string, char *to)
{
	uint64_t bytes, copy[OBJECT_WORDS];
	uintptr_t text;
	int32_t nr;

	if (!load_string(walk, string, copy, &text, &bytes))
		return 0;
	nr = csink_interp_text(walk, text, bytes, to, MAX_TEXT);
	if (nr < 0)
		return 0;
	to[nr] = 0;
	return (uint32_t)nr + 1;
}

/* As caller_locations() has them: "name", "block in name", "<class:Name>", "<main>". */
static uint32_t names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to, uint32_t room)
{
	uint32_t nr, file;

	if (room < 2 * (MAX_TEXT + 1))
		return 0;
	nr = copy_string(walk, source->name, to);
	file = nr ? copy_string(walk, source->file, to + nr) : 0;
	return file ? nr + file : 0;
}

static bool describe(struct csink_interp_walk *walk, uintptr_t function, struct csink_code_source *to)
{
	const struct function *of = (const struct function *)function;

	(void)walk;
	*to = (struct csink_code_source){.kind = CSINK_CODE_RUBY,
					 .first_line = of->first_line,
					 .names = names,
					 .name = of->name,
					 .file = of->file,
					 .is_path = true};
	return true;
}

/* Mix the end of a text, which differs between files of one directory. */
static bool mix_string(struct csink_interp_walk *walk, uintptr_t string, uint64_t *identity)
{
	uintptr_t text;
	uint64_t bytes, nr, copy[OBJECT_WORDS];

	if (!load_string(walk, string, copy, &text, &bytes))
		return false;
	*identity = csink_interp_mix(*identity, bytes);
	nr = CSINK_MIN(bytes, (uint64_t)HASHED_TEXT);
	return csink_interp_mix_text(walk, text + bytes - nr, nr, identity);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static uint32_t count_bits(uint64_t word)
{
	uint32_t nr = 0;

	for (; word; word &= word - 1)
		nr++;
	return nr;
}

/* How many entries of a body's lines are for a position or earlier ones. */
static uint32_t count_lines(struct csink_interp_walk *walk, uintptr_t index, uint32_t position, bool *ok)
{
	uint32_t at = position - INDEX_FIRST, group = at % 512 / 64;
	uintptr_t block = index + INDEX_BLOCKS + (uintptr_t)(at / 512) * BLOCK_BYTES;
	uint64_t bits;

	if (position < INDEX_FIRST)
		return word_at(walk, index + position / 9 * 8, ok) >> position % 9 * 7 & 127;
	bits = word_at(walk, block + BLOCK_BITS + (uintptr_t)group * 8, ok);
	return (uint32_t)word_at(walk, block + BLOCK_RANK, ok) +
	       (group ? word_at(walk, block + BLOCK_RANKS, ok) >> (group - 1) * 9 & 511 : 0) +
	       count_bits(bits << (63 - at % 64));
}

/* The line of a position; 0: not known. */
static uint32_t line_of(struct csink_interp_walk *walk, uintptr_t body, uint32_t position)
{
	bool ok = true;
	uint32_t nr = (uint32_t)word_at(walk, body + BODY_NR_LINES, &ok), entry = 1, line;
	uintptr_t index = word_at(walk, body + BODY_INDEX, &ok);

	/* There is no index yet while the code is being made. */
	if (nr > 1)
		entry = index ? count_lines(walk, index, position, &ok) : 0;
	if (!ok || !entry || entry > nr)
		return 0;
	line = (uint32_t)word_at(walk, word_at(walk, body + BODY_LINES, &ok) + (uintptr_t)(entry - 1) * LINE_BYTES,
				 &ok);
	return ok ? line : 0;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* The file of the frame before: most frames have the same. */
struct last_file {
	uintptr_t of;   /* as the body has it */
	uintptr_t file; /* the string */
	uint64_t identity;
};

/* Add a frame of a code object. False: it cannot be read, or is none. */
static bool take(struct csink_interp_walk *walk, uintptr_t code, uintptr_t instruction, struct last_file *last)
{
	struct function function;
	uint64_t identity, copy[OBJECT_WORDS];
	uintptr_t body, file;
	uint32_t position;
	bool ok = true;

	code = find_object(walk, code, copy);
	if (!code || (copy[0] & CODE_MASK) != TYPE_CODE)
		return false;
	body = word_at(walk, code + CODE_BODY, &ok);
	instruction -= word_at(walk, body + BODY_INSTRUCTIONS, &ok);
	if (!ok || instruction > (word_at(walk, body + BODY_NR_WORD, &ok) >> 32) * sizeof(uint64_t))
		return false;
	file = word_at(walk, body + BODY_FILE, &ok);
	if (last->of != file) {
		*last = (struct last_file){0, file, walk->interpreter->module};
		if (!load_path(walk, &last->file) || !mix_string(walk, last->file, &last->identity))
			return false;
		last->of = file;
	}
	function.name = word_at(walk, body + BODY_NAME, &ok);
	function.file = last->file;
	function.first_line = (uint32_t)(word_at(walk, body + BODY_FIRST_LINE, &ok) >> 1);
	identity = csink_interp_mix(last->identity, function.first_line);
	if (!ok || !mix_string(walk, function.name, &identity))
		return false;
	/* The next instruction is stored: the one before it runs. */
	position = (uint32_t)(instruction / sizeof(uint64_t));
	return csink_interp_frame(walk, identity, (uintptr_t)&function,
				  line_of(walk, body, position ? position - 1 : 0));
}

/* The thread's execution context: a thread-local variable. 0: the thread has none. */
static uintptr_t context_of(struct csink_interp_walk *walk)
{
	uint64_t context, thread, id;

	if (!csink_interp_thread_local(walk, walk->interpreter->data[DATA_VARIABLE], 0, &context) || !context)
		return 0;
	/* The entry may be of a module that had the number before. */
	if (!csink_interp_load(walk, context + CONTEXT_THREAD, &thread) ||
	    !csink_interp_load(walk, thread + THREAD_ID, &id) || id != (uintptr_t)pthread_self())
		return 0;
	return context;
}

/* Does this thread have the interpreter's lock? */
static bool has_lock(struct csink_interp_walk *walk, uintptr_t context)
{
	bool ok = true;
	uintptr_t thread = word_at(walk, context + CONTEXT_THREAD, &ok);

	return word_at(walk, word_at(walk, thread + THREAD_RACTOR, &ok) + RACTOR_OWNER, &ok) == thread && ok;
}

/*
 * rb_vm_exec() calls a function without a symbol, which has the loop over instructions: much larger than all others
 * that rb_vm_exec() calls. Found once, by its entry of .eh_frame.
 */
static void find_loop(const struct csink_interp_walk *walk)
{
	const struct csink_walk *native = walk->native;
	struct csink_cfi_table table;
	struct csink_cfi_fde fde;

	for (uint32_t i = 0; i < native->nr_frames && !csink_interp_loop(walk->interpreter); i++) {
		uintptr_t inner =
			i ? (native->frames[i - 1] & ~CSINK_FRAME_EXACT) - 1 : csink_context_pc(walk->context);

		if (csink_interp_is_evaluator(walk->interpreter, (native->frames[i] & ~CSINK_FRAME_EXACT) - 1) &&
		    csink_cfi_locate(inner, &table) && csink_cfi_find(&table, inner, &fde) &&
		    fde.end - fde.start >= LOOP_BYTES)
			csink_interp_set_loop(walk, fde.start, fde.end);
	}
}

static void walk_ruby(struct csink_interp_walk *walk)
{
	uintptr_t context = context_of(walk), stack, at, end, code, instruction;
	struct last_file last = {0};
	uint64_t flags;
	bool ok = true;

	if (!context)
		return;
	walk->is_unsure = !has_lock(walk, context);
	stack = word_at(walk, context + CONTEXT_STACK, &ok);
	at = word_at(walk, context + CONTEXT_NEWEST, &ok);
	end = stack + word_at(walk, context + CONTEXT_WORDS, &ok) * sizeof(uint64_t);
	if (!ok || !stack || at < stack || at > end || (end - at) % FRAME_BYTES) {
		walk->is_broken = stack != 0;
		return;
	}
	walk->known = stack;
	walk->known_bytes = end - stack - (sizeof(uint64_t) - 1);
	find_loop(walk);
	for (uint32_t nr = 0; at < end && nr < MAX_FRAMES && !walk->is_full; nr++, at += FRAME_BYTES) {
		code = csink_load_known(at + FRAME_CODE);
		instruction = csink_load_known(at + FRAME_INSTRUCTION);
		/* A method in C, or the frame at the outer end, in which nothing runs. */
		if (!code || !instruction || !csink_interp_load(walk, csink_load_known(at + FRAME_FLAGS_AT), &flags) ||
		    (flags & MAGIC_MASK) == DUMMY)
			continue;
		/* The newest frame may not be whole yet: then the time is the caller's. */
		if (!take(walk, code, instruction, &last) && walk->nr_frames) {
			walk->is_broken |= !walk->is_full;
			break;
		}
		walk->is_settled = true;
		if (flags & BEGINS_CALL)
			csink_interp_group(walk, 0);
	}
	csink_interp_group(walk, 0);
}

const struct csink_language csink_ruby = {"ruby", find, walk_ruby, describe};
