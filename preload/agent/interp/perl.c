/*
 * Perl's frames: 5.36, builds with threads (as Debian has them; MULTIPLICITY and USE_ITHREADS). Runs in the handler of
 * the thread whose frames are read. Perl reserves a context before it stores into it, so every load is checked.
 *
 * Sources: perl's cop.h, cv.h, intrpvar.h, sv.h of 5.36. tests/cli/frames.t compares frames with caller().
 */
#include <elf.h>
#include <pthread.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/interp.h"
#include "preload/core/interpreter_signs.h"

/* Offsets, bytes. */
enum {
	/* Of an interpreter. Each version has another size of it, which identifies the layout. */
	INTERPRETER_BYTES = 3768,
	INTERPRETER_STATEMENT = 208, /* the one that runs: a struct cop */
	INTERPRETER_STACK = 224,     /* the newest struct stackinfo */
	/* Of a stackinfo: */
	STACK_CONTEXTS = 8,
	STACK_PREVIOUS = 16,
	STACK_NEWEST = 32,    /* index of the newest context, 32 bits */
	STACK_TYPE_WORD = 40, /* the type is its upper half */
	/* Of a context: */
	CONTEXT_BYTES = 104,
	CONTEXT_TYPE = 0,
	CONTEXT_STATEMENT = 16, /* of the caller */
	CONTEXT_RETURN = 48,
	CONTEXT_CODE = 72,
	/* Of a statement: */
	STATEMENT_LINE_WORD = 32, /* the line is its upper half */
	STATEMENT_FILE = 48,
	OP_TYPE_WORD = 32,
	/* Of a value (SV), a code value's body, a glob's and a hash's: */
	VALUE_BODY = 0,
	VALUE_FLAGS_WORD = 8, /* the flags are its upper half */
	CODE_PACKAGE = 32,
	CODE_START = 40,
	CODE_NAME = 56,
	CODE_FLAGS_WORD = 88, /* the flags are its upper half */
	CODE_DEPTH = 96,
	GLOB_NAME = 32,
	GLOB_PACKAGE = 40,
	HASH_NAME = 32,
	HASH_NR_NAMES_WORD = 56, /* the number is its upper half */
	/* Of a shared key: */
	KEY_BYTES_WORD = 0, /* the number is its upper half */
	KEY_TEXT = 8,
	KEY_FLAGS = 1, /* behind the text: a NUL, and a byte of flags */
};

enum {
	VERSION = 36,
	/* Types of contexts: */
	TYPE_MASK = 15,
	SUB = 9,
	FORMAT = 10,
	EVAL = 11,
	SUB_OF_REGEX = 0x80, /* flag: code in a pattern, which runs in the frame around it */
	MAIN_STACK = 1,      /* type of a stackinfo: the outermost */
	CODE_IS_NAMED = 0x8000,
	VALUE_TYPE = 0xff, /* of a value's flags */
	CODE_VALUE = 13,
	NEXT_STATE = 195, /* ops that are statements */
	DEBUG_STATE = 196,
	MAX_STACKS = 512,
	MAX_CONTEXTS = 4096,
	MAX_UNFINISHED = 16, /* newest contexts that may be left out: the frames of others can be read */
	KEY_IS_UTF8 = 1,     /* flag of a key; else each byte is a character of Latin-1 */
	MAX_TEXT = 500,
	HASHED_TEXT = 1024, /* bytes of a file's name that identify it: all that is kept of it */
};

enum { DATA_CURRENT, DATA_KEY };

static int find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
{
	uint64_t bytes = 0;
	uintptr_t evaluator = csink_elf_look(object, CSINK_SIGN_PERL, STT_FUNC, &bytes), version, size;
	uint16_t interpreter_bytes = 0;
	uint8_t minor = 0;

	if (!evaluator)
		return 0;
	version = csink_elf_look(object, "PL_version", STT_OBJECT, NULL);
	size = csink_elf_look(object, "PL_interp_size", STT_OBJECT, NULL);
	to->data[DATA_CURRENT] = csink_elf_look(object, "PL_curinterp", STT_OBJECT, NULL);
	to->data[DATA_KEY] = csink_elf_look(object, "PL_thr_key", STT_OBJECT, NULL);
	if (version)
		object->copy(&minor, (void *)version, sizeof(minor));
	if (size)
		object->copy(&interpreter_bytes, (void *)size, sizeof(interpreter_bytes));
	if (!to->data[DATA_CURRENT] || !to->data[DATA_KEY] || minor != VERSION ||
	    interpreter_bytes != INTERPRETER_BYTES) {
		*why = "Perl frames are not read: only version 5.36 with threads is supported";
		return -1;
	}
	to->code = to->evaluator = evaluator;
	to->evaluator_end = evaluator + bytes;
	return 1;
}

static bool load_upper(struct csink_interp_walk *walk, uintptr_t at, uint32_t *value)
{
	uint64_t word;

	if (!csink_interp_load(walk, at, &word))
		return false;
	*value = (uint32_t)(word >> 32);
	return true;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Text of Latin-1 as UTF-8, in its place; what has no room is cut. Returns how many bytes. */
static uint32_t widen(char *text, uint32_t bytes)
{
	uint32_t nr = bytes, room, high = 0, end;

	for (uint32_t i = 0; i < bytes; i++)
		high += (unsigned char)text[i] >> 7;
	end = room = bytes + high;
	while (nr-- > 0) {
		unsigned char c = (unsigned char)text[nr];
		uint32_t size = c >> 7 ? 2 : 1;

		room -= size;
		if (room + size > MAX_TEXT) {
			end = room;
			continue;
		}
		text[room + size - 1] = (char)(c >> 7 ? 0x80 | (c & 0x3f) : c);
		if (size == 2)
			text[room] = (char)(0xc0 | c >> 6);
	}
	return end;
}

/* Copy a shared key's text, as UTF-8. Returns how many bytes; 0: it cannot be read. */
static uint32_t copy_key(struct csink_interp_walk *walk, uintptr_t key, char *to)
{
	int32_t nr, nr_flags;
	uint32_t bytes;
	char flags = 0;

	if (!key || !load_upper(walk, key + KEY_BYTES_WORD, &bytes))
		return 0;
	nr = csink_interp_text(walk, key + KEY_TEXT, bytes, to, MAX_TEXT);
	nr_flags = csink_interp_text(walk, key + KEY_TEXT + bytes + KEY_FLAGS, 1, &flags, 1);
	if (nr <= 0 || nr_flags < 0)
		return 0;
	return flags & KEY_IS_UTF8 ? (uint32_t)nr : widen(to, (uint32_t)nr);
}

/* Copy a package's name: that of a hash, which has one name or an array of names. */
static uint32_t copy_package(struct csink_interp_walk *walk, uintptr_t package, char *to)
{
	uint64_t body, name;
	uint32_t nr;

	if (!package || !csink_interp_load(walk, package + VALUE_BODY, &body) ||
	    !csink_interp_load(walk, body + HASH_NAME, &name) || !load_upper(walk, body + HASH_NR_NAMES_WORD, &nr) ||
	    (nr && !csink_interp_load(walk, name, &name)))
		return 0;
	return copy_key(walk, name, to);
}

/* The key and the package of a code value's name, from its body. The key is 0 if it has none. False: not readable. */
static bool load_name(struct csink_interp_walk *walk, uintptr_t body, uintptr_t *name, uintptr_t *package)
{
	uint64_t glob;
	uint32_t flags;

	if (!load_upper(walk, body + CODE_FLAGS_WORD, &flags) || !csink_interp_load(walk, body + CODE_NAME, name))
		return false;
	if (flags & CODE_IS_NAMED || !*name)
		return csink_interp_load(walk, body + CODE_PACKAGE, package);
	return csink_interp_load(walk, *name + VALUE_BODY, &glob) && csink_interp_load(walk, glob + GLOB_NAME, name) &&
	       csink_interp_load(walk, glob + GLOB_PACKAGE, package);
}

/* "Package::name" of a code value's body, as caller() has it. Returns how many bytes with the NUL; 0: not readable. */
static uint32_t copy_sub(struct csink_interp_walk *walk, uintptr_t body, char *to)
{
	static const char nameless[] = "main::__ANON__";
	uintptr_t package, name;
	uint32_t nr, more;

	if (!load_name(walk, body, &name, &package))
		return 0;
	if (!name) {
		memcpy(to, nameless, sizeof(nameless));
		return sizeof(nameless);
	}
	nr = copy_package(walk, package, to);
	if (!nr)
		return 0;
	memcpy(to + nr, "::", 2);
	more = copy_key(walk, name, to + nr + 2);
	to[nr + 2 + more] = 0;
	return more ? nr + 2 + more + 1 : 0;
}

/* A frame's function, for describe(). */
struct function {
	uintptr_t code; /* the body of a code value; below NR_FIXED: an index of fixed[] */
	uintptr_t start, file;
};

/* Frames that are no subs. caller() says "(eval)", too. */
static const char fixed[][9] = {"(main)", "(eval)", "(format)"};
enum { NAME_MAIN, NAME_EVAL, NAME_FORMAT, NR_FIXED };

static uint32_t names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to, uint32_t room)
{
	uint32_t nr;
	int32_t file;

	if (room < 4 * MAX_TEXT + 4)
		return 0;
	if (source->name < NR_FIXED) {
		nr = (uint32_t)strlen(fixed[source->name]) + 1;
		memcpy(to, fixed[source->name], nr);
	} else {
		nr = copy_sub(walk, source->name, to);
	}
	if (!nr)
		return 0;
	file = csink_interp_text(walk, source->file, 2 * MAX_TEXT, to + nr, 2 * MAX_TEXT);
	if (file < 0)
		return 0;
	nr += (uint32_t)file;
	to[nr] = 0;
	return nr + 1;
}

/* The line of a sub's first statement; 0: it is not known. */
static uint32_t first_line_of(struct csink_interp_walk *walk, uintptr_t start)
{
	uint64_t op;
	uint32_t line;

	if (!start || !csink_interp_load(walk, start + OP_TYPE_WORD, &op) ||
	    ((op & 0x1ff) != NEXT_STATE && (op & 0x1ff) != DEBUG_STATE) ||
	    !load_upper(walk, start + STATEMENT_LINE_WORD, &line))
		return 0;
	return line;
}

/*
 * The name: closures of one sub can be given different ones, and code can be evaluated under the file and line of freed
 * code. The first word of a key is its text's hash and length.
 */
static bool mix_name(struct csink_interp_walk *walk, uintptr_t body, uint64_t *identity)
{
	uintptr_t name, package;
	uint64_t head = 0;

	if (!load_name(walk, body, &name, &package) || (name && !csink_interp_load(walk, name + KEY_BYTES_WORD, &head)))
		return false;
	*identity = csink_interp_mix(csink_interp_mix(*identity, head), package);
	return true;
}

/*
 * Evaluated code gets a number as its file, "(eval 12)", so the file's name identifies code at an address used again.
 * Whole words are read, as far as the text goes: its first one without what is before the text.
 */
static bool mix_file(struct csink_interp_walk *walk, uintptr_t file, uint64_t *identity)
{
	uint64_t before = (1ULL << file % 8 * 8) - 1, word, zero;

	for (uintptr_t at = file & ~(uintptr_t)7; at < file + HASHED_TEXT; at += 8, before = 0) {
		if (!csink_interp_load(walk, at, &word))
			return false;
		word |= before;
		zero = (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL;
		/* The first byte that is 0 ends the text: the lowest bit of zero is in it. */
		*identity = csink_interp_mix(*identity, zero ? word & ((zero & -zero) - 1) : word);
		if (zero)
			break;
	}
	return true;
}

static bool describe(struct csink_interp_walk *walk, uintptr_t function, struct csink_code_source *to)
{
	const struct function *of = (const struct function *)function;

	*to = (struct csink_code_source){.kind = CSINK_CODE_PERL,
					 .first_line = first_line_of(walk, of->start),
					 .names = names,
					 .name = of->code,
					 .file = of->file,
					 .is_path = true};
	return true;
}

/* Add a frame: a function, and a statement in it. A function with statements of several files is several functions. */
static bool take(struct csink_interp_walk *walk, uintptr_t code, uint64_t start, uintptr_t statement)
{
	struct function function = {code, start, 0};
	uint64_t identity = csink_interp_mix(walk->interpreter->module, code < NR_FIXED ? code : start);
	uint32_t line;

	if (!load_upper(walk, statement + STATEMENT_LINE_WORD, &line) ||
	    !csink_interp_load(walk, statement + STATEMENT_FILE, &function.file) || !function.file) {
		walk->is_broken = true;
		return false;
	}
	identity = csink_interp_mix(identity, first_line_of(walk, start));
	if ((code >= NR_FIXED && !mix_name(walk, code, &identity)) || !mix_file(walk, function.file, &identity)) {
		walk->is_broken = true;
		return false;
	}
	return csink_interp_frame(walk, identity, (uintptr_t)&function, line);
}

/* The first op of a context's sub; 0: it cannot be read. */
static uintptr_t start_of(struct csink_interp_walk *walk, uintptr_t context)
{
	uint64_t code, body, start;

	return csink_interp_load(walk, context + CONTEXT_CODE, &code) && code &&
			       csink_interp_load(walk, code + VALUE_BODY, &body) &&
			       csink_interp_load(walk, body + CODE_START, &start)
		       ? start
		       : 0;
}

/*
 * The statement of the newest context, of a sub: that of its caller until its own first one begins. A sub that calls
 * itself can be in the same statement as its caller. @contexts: the outermost one.
 */
static uintptr_t statement_of(struct csink_interp_walk *walk, uintptr_t context, uintptr_t contexts, uintptr_t now)
{
	uintptr_t start, outer = context;
	uint64_t caller, type;

	if (!csink_interp_load(walk, context + CONTEXT_STATEMENT, &caller) || CSINK_LIKELY(caller != now))
		return now;
	start = start_of(walk, context);
	if (!first_line_of(walk, start))
		return now;
	while (outer > contexts) {
		outer -= CONTEXT_BYTES;
		if (!csink_interp_load(walk, outer + CONTEXT_TYPE, &type))
			return now;
		if ((type & TYPE_MASK) == SUB)
			return start_of(walk, outer) == start ? now : start;
	}
	return start;
}

/*
 * A sub. Closures are copies of one code value, with the same ops and name. The newest context may not be whole yet, or
 * not any more: then the sub's depth is 0, and the time is the caller's.
 */
static bool take_sub(struct csink_interp_walk *walk, uintptr_t context, uintptr_t statement, bool *is_left_out)
{
	uint64_t code, body, start, depth;
	uint32_t flags;

	if (!csink_interp_load(walk, context + CONTEXT_CODE, &code) || !code ||
	    !load_upper(walk, code + VALUE_FLAGS_WORD, &flags) || (flags & VALUE_TYPE) != CODE_VALUE ||
	    !csink_interp_load(walk, code + VALUE_BODY, &body) || !csink_interp_load(walk, body + CODE_START, &start) ||
	    !csink_interp_load(walk, body + CODE_DEPTH, &depth) || !(uint32_t)depth) {
		*is_left_out = !walk->nr_frames;
		walk->is_broken = !*is_left_out;
		return *is_left_out;
	}
	return take(walk, body, start, statement);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/*
 * The contexts of one stackinfo, innermost first. *statement is the one that runs in the newest, and afterwards the one
 * that runs outside of all of them. False: they cannot be read.
 */
static bool walk_contexts(struct csink_interp_walk *walk, uintptr_t stack, uintptr_t *statement, uint32_t *nr)
{
	uint64_t contexts, newest, type, returns, caller;

	if (!csink_interp_load(walk, stack + STACK_CONTEXTS, &contexts) ||
	    !csink_interp_load(walk, stack + STACK_NEWEST, &newest))
		return false;
	for (int32_t i = (int32_t)newest; i >= 0; i--) {
		uintptr_t context = contexts + (uintptr_t)i * CONTEXT_BYTES;
		bool is_left_out = false, is_sub;

		if (++*nr > MAX_CONTEXTS)
			walk->is_full = true;
		if (walk->is_full || !csink_interp_load(walk, context + CONTEXT_TYPE, &type))
			return false;
		is_sub = (type & TYPE_MASK) == SUB;
		if ((!is_sub && (type & TYPE_MASK) != EVAL && (type & TYPE_MASK) != FORMAT) ||
		    (is_sub && type & SUB_OF_REGEX))
			continue;
		if (!csink_interp_load(walk, context + CONTEXT_STATEMENT, &caller) ||
		    !csink_interp_load(walk, context + CONTEXT_RETURN, &returns))
			return false;
		if (is_sub && !walk->nr_frames)
			*statement = statement_of(walk, context, contexts, *statement);
		if (!(is_sub ? take_sub(walk, context, *statement, &is_left_out)
			     : take(walk, (type & TYPE_MASK) == EVAL ? NAME_EVAL : NAME_FORMAT, 0, *statement)) &&
		    (walk->nr_frames || *nr > MAX_UNFINISHED))
			return false;
		*statement = caller;
		if (is_sub && !returns && !is_left_out)
			csink_interp_group(walk, 0); /* called from C */
	}
	return true;
}

/* The frames of one interpreter. An interpreter that starts has no statement yet: it has none. */
static void walk_interpreter(struct csink_interp_walk *walk, uintptr_t interpreter)
{
	uint64_t stack, statement, type;
	uint32_t nr = 0;

	if (!csink_interp_load(walk, interpreter + INTERPRETER_STATEMENT, &statement) ||
	    !csink_interp_load(walk, interpreter + INTERPRETER_STACK, &stack))
		return;
	for (uint32_t nr_stacks = 0; stack; nr_stacks++) {
		if (nr_stacks == MAX_STACKS)
			walk->is_full = true;
		if (walk->is_full || !walk_contexts(walk, stack, &statement, &nr) ||
		    !csink_interp_load(walk, stack + STACK_TYPE_WORD, &type) ||
		    !csink_interp_load(walk, stack + STACK_PREVIOUS, &stack)) {
			walk->is_broken = true;
			break;
		}
		if (type >> 32 == MAIN_STACK) {
			/* Before the program runs, while it is compiled, and after its end this frame is there, too. */
			if (walk->nr_frames || csink_interp_may_run(walk))
				take(walk, NAME_MAIN, 0, statement);
			break;
		}
	}
	if (!walk->nr_frames && !nr)
		walk->is_broken = false;
	csink_interp_group(walk, 0);
}

/*
 * While a thread makes an interpreter for a new thread (perl_clone), ends one (join) or uses that of shared variables,
 * that is its current one, and has no frames. The one that runs is then the one that had frames in this thread before.
 */
static void walk_perl(struct csink_interp_walk *walk)
{
	uint64_t first, key;
	uintptr_t interpreter, *own = &walk->room->own;

	/* The key is made with the first interpreter. */
	if (!csink_interp_load(walk, walk->interpreter->data[DATA_CURRENT], &first) || !first ||
	    !csink_interp_load(walk, walk->interpreter->data[DATA_KEY], &key))
		return;
	interpreter = pthread_getspecific ? (uintptr_t)pthread_getspecific((pthread_key_t)key) : 0;
	if (!interpreter)
		return;
	walk_interpreter(walk, interpreter);
	if ((walk->nr_frames && interpreter == *own) || !csink_interp_may_run(walk))
		return;
	if (walk->nr_frames) {
		/* The thread of the first interpreter ends those of other threads, and runs their destructors. */
		*own = *own == first || walk->native->end != CSINK_WALK_COMPLETE ? *own : interpreter;
		return;
	}
	if (*own && interpreter != *own)
		walk_interpreter(walk, *own);
	walk->is_broken = !walk->nr_frames;
}

const struct csink_language csink_perl = {"perl", find, walk_perl, describe};
