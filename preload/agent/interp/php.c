/*
 * PHP's frames: 8.2, builds without thread safety (NTS): the command line, FPM and CGI. Runs in the handler of
 * the thread whose frames are read. PHP links a frame before all of it is stored, and frees functions before it unlinks
 * their last frame, so every load is checked.
 *
 * Sources: PHP's Zend/zend_compile.h, zend_globals.h, zend_generators.c of 8.2. tests/cli/frames.t compares frames with
 * debug_backtrace().
 */
#include <elf.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/interp.h"
#include "preload/core/interpreter_signs.h"

/* Offsets, bytes. */
enum {
	/*
	 * Of executor_globals. Each minor version has another size of it, which identifies the layout. Within 8.2 it
	 * grew from 8.2.32 to 8.2.36; what is read here has the same offsets in both.
	 */
	GLOBALS_BYTES = 1800,
	GLOBALS_BYTES_BEFORE = 1776,
	GLOBALS_NEWEST = 488,
	GLOBALS_BEFORE_EXCEPTION = 880, /* the instruction that threw, while the frame's is one of handling */
	/* Of a frame: */
	FRAME_INSTRUCTION = 0,
	FRAME_FUNCTION = 24,
	FRAME_OBJECT = 32,
	FRAME_FLAGS = 40,
	FRAME_PREVIOUS = 48,
	/* Of a function: */
	FUNCTION_TYPE = 0,
	FUNCTION_NAME = 8,
	FUNCTION_CLASS = 16,
	FUNCTION_NR_INSTRUCTIONS = 80,
	FUNCTION_INSTRUCTIONS = 88,
	FUNCTION_FILE = 152,
	FUNCTION_FIRST_LINE = 160,
	CLASS_NAME = 8,
	/* Of a string: */
	STRING_HASH = 8,
	STRING_BYTES = 16,
	STRING_TEXT = 24,
	INSTRUCTION_LINE = 24,
	INSTRUCTION_BYTES = 32,
	/* Of a generator: */
	GENERATOR_FRAME = 56,
	GENERATOR_PARENT = 152,
	GENERATOR_PLACEHOLDER = 184, /* a frame without a function */
};

enum {
	INTERNAL = 1, /* types of functions: in C */
	USER = 2,
	EVALUATED = 4,      /* code of eval() */
	CALL_TOP = 1 << 17, /* flag of a frame: a call of execute_ex() begins with it */
	MAX_FRAMES = 4096,  /* links that are followed, and generators that delegate to each other: */
	MAX_DELEGATES = 64,
	HASHED_TEXT = 64, /* bytes of a name without a hash that identify it */
	MAX_TEXT = 500,   /* bytes of a name, a class; twice that of a file */
};

enum { DATA_GLOBALS };

static int find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
{
	uint64_t bytes = 0, evaluator_bytes = 0;
	uintptr_t evaluator = csink_elf_look(object, CSINK_SIGN_PHP, STT_FUNC, &evaluator_bytes), globals;

	if (!evaluator || !csink_elf_look(object, CSINK_SIGN_PHP_TOO, STT_OBJECT, NULL))
		return 0;
	globals = csink_elf_look(object, "executor_globals", STT_OBJECT, &bytes);
	if (!globals || (bytes != GLOBALS_BYTES && bytes != GLOBALS_BYTES_BEFORE)) {
		*why = globals ? "PHP frames are not read: only version 8.2 is supported, with 1776 or 1800 bytes of "
				 "executor_globals"
			       : "PHP frames are not read: builds with thread safety (ZTS) are not supported";
		return -1;
	}
	to->data[DATA_GLOBALS] = globals;
	to->code = to->evaluator = evaluator;
	to->evaluator_end = evaluator + evaluator_bytes;
	return 1;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Copy a string's text. Returns how many bytes; 0: it cannot be read. */
static uint32_t copy_string(struct csink_interp_walk *walk, uintptr_t string, char *to, uint32_t room)
{
	uint64_t bytes;

	if (!csink_interp_load(walk, string + STRING_BYTES, &bytes))
		return 0;
	return (uint32_t)CSINK_MAX(csink_interp_text(walk, string + STRING_TEXT, bytes, to, room), 0);
}

/* "class::name", as debug_backtrace() has them; code outside functions has the name that PHP's own traces print. */
static uint32_t names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to, uint32_t room)
{
	static const char outside[] = "{main}", internal[] = "[internal function]";
	uint64_t name, class;
	uint32_t nr = 0, file;

	if (room < 4 * MAX_TEXT + 4 || !csink_interp_load(walk, source->name + FUNCTION_NAME, &name) ||
	    !csink_interp_load(walk, source->name + FUNCTION_CLASS, &class))
		return 0;
	if (name && class) {
		if (!csink_interp_load(walk, class + CLASS_NAME, &class))
			return 0;
		nr = copy_string(walk, class, to, MAX_TEXT);
		if (!nr)
			return 0;
		memcpy(to + nr, "::", 2);
		nr += 2;
	}
	if (name) {
		uint32_t more = copy_string(walk, name, to + nr, MAX_TEXT);

		if (!more)
			return 0;
		nr += more;
		to[nr++] = 0;
	} else {
		memcpy(to, outside, sizeof(outside));
		nr = sizeof(outside);
	}
	if (!source->file) {
		memcpy(to + nr, internal, sizeof(internal));
		return nr + (uint32_t)sizeof(internal);
	}
	file = copy_string(walk, source->file, to + nr, 2 * MAX_TEXT);
	to[nr + file] = 0;
	return file ? nr + file + 1 : 0;
}

static bool describe(struct csink_interp_walk *walk, uintptr_t function, struct csink_code_source *to)
{
	uint64_t type, file = 0, first_line = 0;

	if (!csink_interp_load(walk, function + FUNCTION_TYPE, &type))
		return false;
	/* A function in C has a name, and no lines. */
	if ((uint8_t)type != INTERNAL && (!csink_interp_load(walk, function + FUNCTION_FILE, &file) ||
					  !csink_interp_load(walk, function + FUNCTION_FIRST_LINE, &first_line)))
		return false;
	*to = (struct csink_code_source){.kind = CSINK_CODE_PHP,
					 .first_line = (uint32_t)first_line,
					 .names = names,
					 .name = function,
					 .file = file};
	return true;
}

/* The hash of a string, or the beginning of its text where no hash was needed yet. */
static bool mix_string(struct csink_interp_walk *walk, uintptr_t string, uint64_t *identity)
{
	uint64_t hash, bytes;

	if (!csink_interp_load(walk, string + STRING_HASH, &hash) ||
	    !csink_interp_load(walk, string + STRING_BYTES, &bytes))
		return false;
	*identity = csink_interp_mix(csink_interp_mix(*identity, hash), bytes);
	return hash ||
	       csink_interp_mix_text(walk, string + STRING_TEXT, CSINK_MIN(bytes, (uint64_t)HASHED_TEXT), identity);
}

/* Identified by name: closures of a function in C are copies of it, and some calls have a function made for them. */
static bool take_internal(struct csink_interp_walk *walk, uintptr_t function, uint64_t name, uint64_t class)
{
	uint64_t identity = csink_interp_mix(walk->interpreter->module, class);

	if (!mix_string(walk, name, &identity)) {
		walk->is_broken = true;
		return false;
	}
	return csink_interp_frame(walk, identity, function, 0);
}

/* The registers in which execute_ex() keeps the frame and its next instruction, where the compiler can be asked to. */
static bool instruction_in_register(const struct csink_interp_walk *walk, uintptr_t frame, uintptr_t *instruction)
{
	uintptr_t pc = csink_context_pc(walk->context);

	if (!csink_interp_is_evaluator(walk->interpreter, pc))
		return false;
#if defined(__x86_64__)
	*instruction = (uintptr_t)walk->context->uc_mcontext.gregs[REG_R15];
	return (uintptr_t)walk->context->uc_mcontext.gregs[REG_R14] == frame;
#elif defined(__aarch64__)
	*instruction = walk->context->uc_mcontext.regs[28];
	return walk->context->uc_mcontext.regs[27] == frame;
#else
	(void)frame;
	(void)instruction;
	return false;
#endif
}

/* The line that a frame is in; 0: not known. */
static uint32_t line_of(struct csink_interp_walk *walk, uintptr_t frame, uintptr_t first, uint64_t bytes)
{
	uintptr_t candidates[3] = {0};
	uint64_t line;

	if (!walk->nr_frames)
		instruction_in_register(walk, frame, &candidates[0]);
	csink_interp_load(walk, frame + FRAME_INSTRUCTION, &candidates[1]);
	csink_interp_load(walk, walk->interpreter->data[DATA_GLOBALS] + GLOBALS_BEFORE_EXCEPTION, &candidates[2]);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(candidates); i++) {
		if (candidates[i] - first < bytes && csink_interp_load(walk, candidates[i] + INSTRUCTION_LINE, &line))
			return (uint32_t)line;
	}
	return 0;
}

static bool take_user(struct csink_interp_walk *walk, uintptr_t frame, uintptr_t function, uint64_t name,
		      uint64_t class)
{
	uint64_t instructions, nr, file, first_line, identity;
	uint32_t line;

	if (!csink_interp_load(walk, function + FUNCTION_INSTRUCTIONS, &instructions) ||
	    !csink_interp_load(walk, function + FUNCTION_NR_INSTRUCTIONS, &nr) ||
	    !csink_interp_load(walk, function + FUNCTION_FILE, &file) ||
	    !csink_interp_load(walk, function + FUNCTION_FIRST_LINE, &first_line)) {
		walk->is_broken = true;
		return false;
	}
	/*
	 * Closures are copies of one function, with the same instructions. Other code may have been at the address, and
	 * been freed: then its names have other hashes.
	 */
	identity = csink_interp_mix(csink_interp_mix(walk->interpreter->module, instructions), (uint32_t)first_line);
	identity = csink_interp_mix(identity, class);
	if (!mix_string(walk, file, &identity) || (name && !mix_string(walk, name, &identity))) {
		walk->is_broken = true;
		return false;
	}
	line = line_of(walk, frame, instructions, (uint64_t)(uint32_t)nr * INSTRUCTION_BYTES);
	return csink_interp_frame(walk, identity, function, line);
}

/* Add a frame's function. False: it cannot be read. */
static bool take_frame(struct csink_interp_walk *walk, uintptr_t frame, uintptr_t function, bool *is_user)
{
	uint64_t type, name, class;

	if (!csink_interp_load(walk, function + FUNCTION_TYPE, &type) ||
	    !csink_interp_load(walk, function + FUNCTION_NAME, &name) ||
	    !csink_interp_load(walk, function + FUNCTION_CLASS, &class) ||
	    ((uint8_t)type != USER && (uint8_t)type != INTERNAL && (uint8_t)type != EVALUATED)) {
		walk->is_broken = true;
		return false;
	}
	*is_user = (uint8_t)type != INTERNAL;
	return *is_user ? take_user(walk, frame, function, name, class)
			: !name || take_internal(walk, function, name, class);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/*
 * `yield from`: the generator at the end of the delegation runs, and those that wait for it are not in the list, which
 * has a placeholder instead: in the outermost of them. Their frames, innermost first.
 */
static bool take_delegates(struct csink_interp_walk *walk, uintptr_t placeholder)
{
	uint64_t at = placeholder - GENERATOR_PLACEHOLDER, parent = 0, object, frame, function;
	uintptr_t chain[MAX_DELEGATES];
	uint32_t nr = 0;
	bool is_user;

	if (!csink_interp_load(walk, placeholder + FRAME_OBJECT, &object) || object != at)
		return true; /* another frame without a function, of which nothing is shown */
	/* The outermost parent is the generator that runs. */
	while (csink_interp_load(walk, at + GENERATOR_PARENT, &parent) && parent && nr < MAX_DELEGATES) {
		chain[nr++] = at;
		at = parent;
	}
	/* Of more, those next to the one that runs are not in the chain. */
	if (nr == MAX_DELEGATES && parent)
		return false;
	while (nr-- > 0) {
		if (!csink_interp_load(walk, chain[nr] + GENERATOR_FRAME, &frame) ||
		    !csink_interp_load(walk, frame + FRAME_FUNCTION, &function) ||
		    !take_frame(walk, frame, function, &is_user))
			return false;
	}
	return true;
}

static void walk_php(struct csink_interp_walk *walk)
{
	uint64_t frame, function, flags, previous;
	bool is_rooted = true;

	/* The globals are the process's, which may have other threads. */
	if (!csink_interp_may_run(walk) ||
	    !csink_interp_load(walk, walk->interpreter->data[DATA_GLOBALS] + GLOBALS_NEWEST, &frame))
		return;
	for (uint32_t nr = 0; frame; nr++, frame = previous) {
		bool is_user = false;

		if (nr == MAX_FRAMES || !csink_interp_load(walk, frame + FRAME_FUNCTION, &function) ||
		    !csink_interp_load(walk, frame + FRAME_FLAGS, &flags) ||
		    !csink_interp_load(walk, frame + FRAME_PREVIOUS, &previous) ||
		    !(function ? take_frame(walk, frame, function, &is_user) : take_delegates(walk, frame))) {
			is_rooted = false;
			break;
		}
		if (function)
			is_rooted = flags & CALL_TOP;
		if (is_user && flags & CALL_TOP)
			csink_interp_group(walk, 0);
	}
	/* The outermost frame begins a call, unless the chain broke off: a generator's is linked while it runs. */
	walk->is_broken |= !is_rooted;
	/* Frames whose outer end is missing: they are below all others. */
	csink_interp_group(walk, 0);
}

const struct csink_language csink_php = {"php", find, walk_php, describe};
