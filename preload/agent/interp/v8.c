/*
 * JavaScript's frames: V8 of node 18 to 26 on x86-64, without pointer compression. Runs in the handler of the thread
 * whose frames are read.
 *
 * Every JavaScript frame, interpreted or compiled by whatever compiler, has the caller's frame pointer, below it a
 * context, and below that its function. So there is no list of frames: those of the native walk are looked at, where
 * their code has no unwind tables. A frame of another kind has a number in place of the context.
 *
 * The thread runs its isolate, or waits for its collector: what its frames refer to is whole. While objects are moved,
 * the first word of an old copy is the new one's address. An address that is kept from one sample to the next serves to
 * find what is known of the object that was there: words of what is there now are compared first (load_compared()).
 *
 * V8 exports where its fields are, for debuggers (v8dbg_*). Sources: V8's tools/gen-postmortem-metadata.py,
 * src/execution/frame-constants.h, src/objects/scope-info.tq, shared-function-info.tq and string.tq of 10.2 to 13.6.
 * tests/cli/frames_v8.t compares frames with Error.stack, also of 14.1 and 14.6 (node 25 and 26), whose sources were
 * not read.
 */
#include <elf.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/interp/v8_impl.h"
#include "preload/agent/unwind/cfi_row.h"
#include "preload/agent/unwind/code_copies.h"
#include "preload/core/interpreter_signs.h"
#include "preload/core/private_memory.h"

/* Offsets, bytes, that are equal in all these versions; from the end of a frame, and from a tagged pointer. */
enum {
	TAG = CSINK_V8_TAG,
	FRAME_CONTEXT = -24,
	FRAME_FUNCTION = -32,
	OBJECT_MAP = 0 - TAG,
	TYPE_OF_MAP = 12 - TAG, /* 16 bits */
	SCRIPT_SOURCE = 8 - TAG,
	SCRIPT_NAME = 16 - TAG,
	SCRIPT_ID = 64 - TAG,
	ID_SHIFT = 32,            /* in the word of a function's flags: its number in its script */
	STRING_HASH = 8 - TAG,    /* 32 bits, before the length */
	STRING_LENGTH = 12 - TAG, /* 32 bits */
	STRING_TEXT = 16 - TAG,
	STRING_FIRST = 16 - TAG, /* of a concatenation; what a slice or another reference is of */
	STRING_SECOND = 24 - TAG,
	STRING_OUTSIDE = 24 - TAG, /* where the text of an external string is */
	SCOPE_SLOTS = 8 - TAG,     /* of 8 bytes: flags, number of parameters, number of locals ... */
	SCOPE_LOCALS = SCOPE_SLOTS + 16,
};

enum {
	/* Types of strings: */
	NOT_STRING = 0x80,
	ONE_BYTE = 8,
	FORM_MASK = 7,
	SEQUENTIAL = 0,
	CONCATENATED = 1,
	EXTERNAL = 2,
	SLICED = 3,
	REFERENCE = 5,
	/* Flags of a scope: */
	SCOPE_TYPE_MASK = 15,
	SCOPE_HAS_CLASS_VARIABLE = 1 << 10,
	SCOPE_HAS_NAME = 3 << 12,
	SCOPE_HAS_INFERRED_NAME = 1 << 14,
	MAX_LISTED_LOCALS = 75, /* more have a table elsewhere */
	MAX_LINKS = 16,         /* from string to string */
	MAX_TEXT = 900,         /* bytes of a name, a path */
	HASHED_TEXT = 64,       /* bytes of a name that identify a function without a script */
	MAX_MISSES = 64,        /* frames without a function, before the first one that has one */
};

/*
 * What V8 exports, in the order of struct csink_v8_layout: of each value the names that versions have for it, and an
 * empty one. The last values may be missing. In one text, since the loader would have to relocate pointers in every
 * program.
 */
enum { NR_VALUES = sizeof(struct csink_v8_layout) / sizeof(uint16_t), NR_OPTIONAL = 8 };
static const char exports[] = "class_JSFunction__shared__SharedFunctionInfo\0\0"
			      "class_SharedFunctionInfo__name_or_scope_info__Object\0"
			      "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_\0"
			      "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_\0\0"
			      "class_SharedFunctionInfo__script_or_debug_info__HeapObject\0"
			      "class_SharedFunctionInfo__script__Tagged_HeapObject_\0\0"
			      "class_SharedFunctionInfo__flags__int\0\0"
			      "scopeinfo_idx_first_vars\0\0"
			      "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE\0\0"
			      "type_Script__SCRIPT_TYPE\0\0"
			      "type_ScopeInfo__SCOPE_INFO_TYPE\0\0"
			      "FirstJSFunctionType\0"
			      "type_JSFunction__JS_FUNCTION_TYPE\0\0"
			      "LastJSFunctionType\0"
			      "type_JSFunction__JS_FUNCTION_TYPE\0\0"
			      "TaggedSize\0\0"
			      "off_fp_function\0\0"
			      "type_BytecodeArray__BYTECODE_ARRAY_TYPE\0\0"
			      "type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE\0"
			      "type_ByteArray__BYTE_ARRAY_TYPE\0\0"
			      "type_Code__CODE_TYPE\0\0"
			      "class_BytecodeArray__data__uintptr_t\0\0"
			      "_ZN2v88internal7Version6major_E\0\0"
			      "_ZN2v88internal7Version6minor_E\0\0"
			      "type_InstructionStream__INSTRUCTION_STREAM_TYPE\0"
			      "type_Code__CODE_TYPE\0\0"
			      "frametype_WasmFrame\0\0";

enum { MAX_TYPE_DISTANCE = 16 }; /* from the first type of functions to the last, where V8 exports one only */

static const char other_version[] = "JavaScript frames are not read: this V8 has other fields or frames; node 18 to 26 "
				    "is supported";

static uint32_t nr_threads; /* that have run JavaScript; atomic */

/* Its value, or -1. */
static int exported(const struct csink_elf_view *object, const char *name)
{
	char full[80] = "v8dbg_";
	uintptr_t at;
	int value;

	memcpy(full + (name[0] == '_' ? 0 : 6), name, strlen(name) + 1);
	at = csink_elf_look(object, full, STT_OBJECT, NULL);
	return at && object->copy(&value, (void *)at, sizeof(value)) ? value : -1;
}

static int find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why)
{
	uint16_t values[NR_VALUES];
	struct csink_v8_layout *layout = (struct csink_v8_layout *)to->data;
	const char *name = exports;

	_Static_assert(sizeof(values) <= sizeof(to->data), "one a value");
	*why = other_version;
	if (!csink_elf_look(object, CSINK_SIGN_V8_TOO, STT_OBJECT, NULL))
		return csink_elf_look(object, CSINK_SIGN_V8, STT_FUNC, NULL) ? -1 : 0;
	for (size_t i = 0; i < NR_VALUES; i++, name++) {
		int value = -1;

		for (; *name; name += strlen(name) + 1)
			value = value == -1 ? exported(object, name) : value;
		if (value == -1 && i + NR_OPTIONAL >= NR_VALUES)
			value = 0;
		if (value == -1)
			return -1;
		values[i] = (uint16_t)value;
	}
	memcpy(to->data, values, sizeof(values));
	layout->type_last += layout->type_last == layout->type_first ? MAX_TYPE_DISTANCE : 0;
	to->code = to->start;
#if defined(__x86_64__)
	*why = "JavaScript frames are not read: V8 with compressed pointers is not supported";
	return layout->tagged_bytes == 8 && layout->fp_function == (uint16_t)-16 ? 1 : -1;
#else
	*why = "JavaScript frames are not read: only x86-64 is supported";
	return -1;
#endif
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

int csink_v8_type(struct csink_interp_walk *walk, uint64_t *object)
{
	bool ok = *object & TAG;
	uint64_t map = csink_v8_word(walk, *object + OBJECT_MAP, &ok);

	if (ok && !(map & TAG)) {
		*object = map + TAG;
		map = csink_v8_word(walk, *object + OBJECT_MAP, &ok);
	}
	map = csink_v8_word(walk, map + TYPE_OF_MAP, &ok);
	return ok ? (uint16_t)map : -1;
}

/* What describes a function: shared by its closures. 0: the object is no function. */
static uint64_t shared_of(struct csink_interp_walk *walk, uint64_t function)
{
	const struct csink_v8_layout *layout = csink_v8_layout(walk);
	int type = csink_v8_type(walk, &function);
	bool ok = type >= layout->type_first && type <= layout->type_last;
	uint64_t shared = csink_v8_word(walk, function - TAG + layout->shared, &ok);

	return ok && csink_v8_type(walk, &shared) == layout->type_shared ? shared : 0;
}

/* A function's script; 0: it has none. */
static uint64_t script_of(struct csink_interp_walk *walk, uint64_t shared)
{
	bool ok = true;
	uint64_t script = csink_v8_word(walk, shared - TAG + csink_v8_layout(walk)->script, &ok);

	return ok && csink_v8_type(walk, &script) == csink_v8_layout(walk)->type_script ? script : 0;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

struct text {
	char *to;
	uint32_t nr, room;
};

static void put(struct text *text, uint32_t byte)
{
	if (text->nr < text->room)
		text->to[text->nr++] = (char)byte;
}

/* A character in UTF-8. The halves of a surrogate pair are written one by one: names hardly have them. */
static void put_char(struct text *text, uint32_t c)
{
	if (!c || text->nr + 3 > text->room)
		return;
	if (c < 0x80) {
		put(text, c);
		return;
	}
	if (c < 0x800) {
		put(text, 0xc0 | c >> 6);
	} else {
		put(text, 0xe0 | c >> 12);
		put(text, 0x80 | (c >> 6 & 63));
	}
	put(text, 0x80 | (c & 63));
}

/* Characters of a string that has them itself, or refers to memory of the program. */
static bool put_chars(struct csink_interp_walk *walk, uint64_t string, int type, uint32_t skip, uint32_t nr,
		      struct text *text)
{
	uint32_t bytes = type & ONE_BYTE ? 1 : 2;
	bool ok = true;
	uintptr_t at = string + STRING_TEXT;

	nr = CSINK_MIN(nr, text->room); /* NULs are left out, and would be read without end */
	if ((type & FORM_MASK) == EXTERNAL)
		at = csink_v8_word(walk, string + STRING_OUTSIDE, &ok);
	for (uint32_t i = skip * bytes; ok && i < (skip + nr) * bytes && text->nr < text->room; i += bytes) {
		uint64_t word = csink_v8_word(walk, (at + i) & ~7UL, &ok) >> 8 * ((at + i) & 7);

		put_char(text, bytes == 1 ? (uint8_t)word : (uint16_t)word);
	}
	return ok;
}

/* A string, whatever it is made of. False: it cannot be read. */
static bool put_string(struct csink_interp_walk *walk, uint64_t string, struct text *text)
{
	uint64_t rest[MAX_LINKS];
	uint32_t nr_rest = 0, skip = 0, nr = UINT32_MAX;

	for (int i = 0; i < 2 * MAX_LINKS; i++) {
		int type = csink_v8_type(walk, &string), form = type & FORM_MASK;
		bool ok = type >= 0 && type < NOT_STRING;
		uint32_t length = (uint32_t)csink_v8_word(walk, string + STRING_LENGTH, &ok);

		nr = CSINK_MIN(nr, length);
		if (form == CONCATENATED && nr_rest < MAX_LINKS)
			rest[nr_rest++] = csink_v8_word(walk, string + STRING_SECOND, &ok);
		if (form == SLICED)
			skip += (uint32_t)(csink_v8_word(walk, string + STRING_SECOND, &ok) >> 32);
		if (form == CONCATENATED || form == SLICED || form == REFERENCE) {
			string = csink_v8_word(walk, string + STRING_FIRST, &ok);
			nr = form == CONCATENATED ? UINT32_MAX : nr;
			if (!ok)
				return false;
			continue;
		}
		if (!ok || !put_chars(walk, string, type, skip, nr, text))
			return false;
		if (!nr_rest)
			return true;
		string = rest[--nr_rest];
		skip = 0;
		nr = UINT32_MAX;
	}
	return false;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* What a scope has of its function. */
struct scope {
	uint64_t name, inferred; /* strings; 0: none */
	uint32_t start;          /* of the function in its script's source, in characters */
};

static bool read_scope(struct csink_interp_walk *walk, uint64_t object, struct scope *scope)
{
	uint32_t slot = csink_v8_layout(walk)->first_slot, flags, nr, module;
	bool is_new = slot > 3, ok = true; /* V8 13: positions are before the locals, and flags are no Smi */
	uint64_t word = csink_v8_word(walk, object + SCOPE_SLOTS, &ok);

	flags = (uint32_t)(is_new ? word : word >> 32);
	nr = (uint32_t)(csink_v8_word(walk, object + SCOPE_LOCALS, &ok) >> 32);
	module = is_new ? 5 : 4;
	slot += (flags & SCOPE_TYPE_MASK) == module;
	slot += nr < MAX_LISTED_LOCALS ? 2 * nr : 1 + nr;
	slot += !!(flags & SCOPE_HAS_CLASS_VARIABLE);
	if (flags & SCOPE_HAS_NAME) {
		scope->name = csink_v8_word(walk, object + SCOPE_SLOTS + 8UL * slot, &ok);
		slot += 2;
	}
	if (flags & SCOPE_HAS_INFERRED_NAME)
		scope->inferred = csink_v8_word(walk, object + SCOPE_SLOTS + 8UL * slot++, &ok);
	slot = is_new ? 3 : slot;
	scope->start = (uint32_t)(csink_v8_word(walk, object + SCOPE_SLOTS + 8UL * slot, &ok) >> 32);
	return ok;
}

/* The name of a function, and where its source is. False: they cannot be read. */
static bool read_name(struct csink_interp_walk *walk, uint64_t shared, struct scope *scope)
{
	bool ok = true;
	uint64_t name = csink_v8_word(walk, shared - TAG + csink_v8_layout(walk)->name, &ok);
	int type;

	*scope = (struct scope){0};
	if (!(name & TAG))
		return ok;
	type = csink_v8_type(walk, &name);
	if (type == csink_v8_layout(walk)->type_scope)
		return read_scope(walk, name, scope);
	scope->name = type >= 0 && type < NOT_STRING ? name : 0;
	return ok && type >= 0;
}

/* Where a string can be, V8 has a number or another object if there is none. */
static bool put_if_string(struct csink_interp_walk *walk, uint64_t object, struct text *text)
{
	uint64_t string = object;

	return !(object & TAG) || csink_v8_type(walk, &string) >= NOT_STRING || put_string(walk, string, text);
}

/* Append text, or what stands for an empty one, and a NUL. False: it cannot be read. */
static bool put_name(struct csink_interp_walk *walk, uint64_t string, uint64_t other, const char *none,
		     struct text *text)
{
	uint32_t before = text->nr;

	text->room = text->nr + MAX_TEXT;
	if (!put_if_string(walk, string, text) || (text->nr == before && !put_if_string(walk, other, text)))
		return false;
	if (text->nr == before) {
		memcpy(text->to + text->nr, none, strlen(none));
		text->nr += (uint32_t)strlen(none);
	}
	text->to[text->nr++] = 0;
	return true;
}

/* Compiled code that has no function of JavaScript: numbers in place of the address of what describes one. */
enum { NO_FUNCTION, REGEXP, WASM, NR_OTHERS };
static const char others[NR_OTHERS][9] = {"", "[regexp]", "[wasm]"};

static uint32_t names(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to, uint32_t room)
{
	struct text text = {.to = to};
	struct scope scope = {0};
	uint64_t name = 0;
	bool ok = true, is_other = source->name < NR_OTHERS;

	if (room < 2 * MAX_TEXT + 64 || (!is_other && !read_name(walk, source->name, &scope)) ||
	    !put_name(walk, scope.name, scope.inferred, is_other ? others[source->name] : "(anonymous)", &text))
		return 0;
	if (source->file)
		name = csink_v8_word(walk, source->file + SCRIPT_NAME, &ok);
	if (!put_name(walk, name, 0, source->file ? "[eval]" : "[builtin]", &text))
		return 0;
	return ok ? text.nr : 0;
}

static bool describe(struct csink_interp_walk *walk, uintptr_t shared, struct csink_code_source *to)
{
	uint64_t script = shared < NR_OTHERS ? 0 : script_of(walk, shared), text;
	struct scope scope;
	bool ok = true;

	*to = (struct csink_code_source){.kind = CSINK_CODE_V8, .names = names, .name = shared, .file = script};
	if (shared < NR_OTHERS)
		return true;
	if (!read_name(walk, shared, &scope))
		return false;
	text = script ? csink_v8_word(walk, script + SCRIPT_SOURCE, &ok) : 0;
	/* The launcher finds the line in the script's file, if that has the length of what V8 was given. */
	if (ok && text && csink_v8_type(walk, &text) < NOT_STRING) {
		to->own[0] = scope.start;
		to->own[1] = (uint32_t)csink_v8_word(walk, text + STRING_LENGTH, &ok);
		to->table = (uintptr_t)to->own;
		to->table_bytes = 2 * sizeof(to->own[0]);
		csink_v8_add_tables(walk, walk->own, to);
	}
	return ok;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/*
 * Numbers of scripts start anew in each isolate, which is a thread's, and those of functions in each script. Functions
 * without a script are V8's own, or of native code: their numbers may be equal, so it is their names that identify
 * them.
 */
static bool identify(struct csink_interp_walk *walk, uint64_t shared, uint64_t *identity)
{
	uint64_t script = script_of(walk, shared), id = walk->interpreter->module, word;
	char name[HASHED_TEXT];
	struct text text = {.to = name, .room = sizeof(name)};
	struct scope scope;
	bool ok = true;

	if (script) {
		id = csink_interp_mix(id, csink_v8_word(walk, script + SCRIPT_ID, &ok));
		id = csink_interp_mix(id, walk->room->own);
		word = csink_v8_word(walk, shared - TAG + csink_v8_layout(walk)->flags, &ok);
		id = csink_interp_mix(id, word >> ID_SHIFT);
	} else {
		ok = read_name(walk, shared, &scope) && put_if_string(walk, scope.name, &text);
		for (uint32_t i = 0; i < text.nr; i++)
			id = csink_interp_mix(id, (uint8_t)name[i]);
	}
	*identity = id;
	return ok;
}

/* Not what the frames of all JavaScript code are like: this is another V8 than the one that is described here. */
static void miss(struct csink_interp_walk *walk)
{
	static uint32_t nr_misses;

	if (!walk->room->own && !__atomic_load_n(&nr_threads, __ATOMIC_RELAXED) &&
	    __atomic_add_fetch(&nr_misses, 1, __ATOMIC_RELAXED) == MAX_MISSES)
		csink_interp_refuse(walk, other_version);
}

/*
 * A thread runs JavaScript for the first time: it has an isolate of its own, perhaps with a copy of the builtins. The
 * first one reports what will not be read.
 */
static void begin_thread(struct csink_interp_walk *walk)
{
	walk->room->own = __atomic_add_fetch(&nr_threads, 1, __ATOMIC_RELAXED);
	if (walk->room->own == 1 && !csink_v8_version(csink_v8_layout(walk)))
		csink_recording_note_text(walk->rec, walk->writer,
					  "JavaScript frames are read without lines, inlined functions and regular "
					  "expressions: this V8 is not that of node 18, 20, 22, 24, 25 or 26");
	csink_code_copies_look(walk->rec, walk->writer);
}

/*
 * The function of a frame that is not there yet, or not any more. The caller passes it in a register, which the first
 * instructions leave alone; so does the builtin that makes the frame, which runs above it. Once the frame was taken off
 * the stack, its words are still there.
 */
static uint64_t function_at_edge(struct csink_interp_walk *walk, const struct csink_v8_frame *frame)
{
#if defined(__x86_64__)
	enum { PUSH_FIRST = 0x50, PUSH_LAST = 0x57, POP_RBP = 0x5d, RET = 0xc3 };
	uint64_t code = 0, function = frame->is_innermost && frame->end == frame->begin + 8;
	bool is_bare = false;
	uint16_t word;

	if (frame->begin == csink_context_sp(walk->context)) {
		csink_interp_load(walk, frame->pc, &code);
		word = (uint16_t)code;
		function = (uint8_t)code >= PUSH_FIRST && (uint8_t)code <= PUSH_LAST;
		/* mov %rsp, %rbp; and before the push of %rbp, where code may be invalid: mov, testb, jne or je (over a
		 * jmp, or over a mov to %r10 and a jump) */
		function |= (code & 0xffffff) == 0xe58948 || (code & 0xffffff) == 0x598b48 || word == 0x43f6 ||
			    word == 0x850f || (code & 0xffffff) == 0xe90574 || (uint32_t)code == 0xba490d74;
		/* Most of V8's own code has no frame at all. */
		is_bare = !function && ((uint8_t)code == POP_RBP || frame->end == frame->begin + 8) &&
			  !csink_v8_is_own_code(walk, frame->pc);
		/* Code that is not optimized, before its frame: mov or xor of %ebx, mov to %r12, a call. */
		function |= is_bare && ((uint8_t)code == 0xbb || word == 0xdb33 || word == 0xbc49 ||
					(uint8_t)code == 0xe8 || word == 0xff41);
	}
	if (function)
		return (uint64_t)walk->context->uc_mcontext.gregs[REG_RDI];
	/* The function's own return comes after the removal of arguments. */
	if (is_bare && (uint8_t)code != RET)
		csink_interp_load(walk, frame->end + (uintptr_t)FRAME_FUNCTION, &function);
	return function;
#else
	(void)walk;
	(void)frame;
	return 0;
#endif
}

/* The function of a native frame, if its code can be JavaScript's, else its marker or 0. What has no room for a
 * function has none, or is not there. */
static uint64_t function_of(struct csink_interp_walk *walk, const struct csink_v8_frame *frame)
{
	uint64_t function, context;

	if (frame->end + (uintptr_t)FRAME_FUNCTION < frame->begin)
		return function_at_edge(walk, frame);
	if (!csink_interp_load(walk, frame->end + (uintptr_t)FRAME_CONTEXT, &context) ||
	    !csink_interp_load(walk, frame->end + (uintptr_t)FRAME_FUNCTION, &function))
		return 0;
	return context & TAG ? function : context;
}

/* Add a function at a place. Returns its identity there; 0: no frame may follow. */
static uint64_t take_function(struct csink_interp_walk *walk, uint64_t shared, uint64_t identity,
			      const struct csink_v8_place *place)
{
	/* A function has further entries of the recording once it has tables, since they are copied to each. */
	if (place->nr_positions)
		identity = csink_interp_mix(identity, (uint64_t)place->nr_positions << 32 | place->nr_offsets);
	walk->own = place;
	return csink_interp_frame(walk, identity, shared, place->position) ? identity : 0;
}

/* Words of a function and of what describes it, that are all equal only if both are what they were. */
enum { WORD_NAME = 3, NR_COMPARED = 8 };

/*
 * A function that had a frame of this thread. In the walk in which it had one it is the same: nothing is freed or moved
 * until that ends.
 */
struct seen {
	uint64_t walk;   /* the number of the last one */
	bool has_script; /* else its name identifies it */
	uint64_t function, shared, identity;
	uint64_t words[NR_COMPARED];
	struct csink_v8_tables tables;
};

/* A thread's own memory. */
enum { NR_SEEN = 128, NR_FRAMES = 128 };
struct kept {
	struct seen seen[NR_SEEN];
	struct csink_v8_kept frames[NR_FRAMES];
};

/* Where the thread keeps what it has seen of this function: one of two places, that of another one if neither has it.
 */
static struct seen *seen_at(struct csink_interp_room *room, uint64_t function)
{
	uint32_t hash = (uint32_t)(function * 0x9e3779b97f4a7c15ULL >> 32) % NR_SEEN;
	struct seen *at = &((struct kept *)room->kept)->seen[hash & ~1U], *next = at + 1;

	return at->function == function || (next->function != function && at->walk < next->walk) ? at : next;
}

/* Where the thread keeps what it knows of the frame with this return address; another frame's may be there. */
static struct csink_v8_kept *kept_at(struct csink_interp_room *room, uintptr_t pc)
{
	struct csink_v8_kept *frames = ((struct kept *)room->kept)->frames;

	return &frames[(pc ^ pc >> 7) % NR_FRAMES];
}

/* A forked child has another recording than its parent, whose functions are not in it. */
static bool take_kept(struct csink_interp_walk *walk, const struct csink_v8_kept *kept)
{
	if (kept->recording != csink_code_ids_nr_resets)
		return false;
	walk->is_full |= walk->nr_frames + kept->nr > CSINK_MAX_DEPTH;
	for (uint32_t i = 0; i < kept->nr && walk->nr_frames < CSINK_MAX_DEPTH; i++)
		walk->room->frames[walk->nr_frames++] = kept->frames[i];
	return true;
}

/* Add the functions that a caller's frame of optimized code runs. False: they are not known, and none was added. */
static bool take_inlined(struct csink_interp_walk *walk, const struct csink_v8_frame *frame, uint64_t identity)
{
	struct csink_v8_inlined inlined[CSINK_V8_MAX_INLINED];
	struct csink_v8_kept *kept =
		frame->is_exact || csink_v8_is_own_code(walk, frame->pc) ? NULL : kept_at(walk->room, frame->pc);
	int nr = kept ? csink_v8_find_inlined(walk, frame->pc, identity, kept, inlined) : 0;
	struct csink_v8_place place;
	uint64_t of;

	if (nr < 0) {
		if (take_kept(walk, kept))
			return kept->nr > 0;
		kept->pc = 0;
		nr = csink_v8_find_inlined(walk, frame->pc, identity, kept, inlined);
	}
	if (nr <= 0 || !identify(walk, inlined[nr - 1].shared, &of) || of != identity)
		return false;
	for (int i = 0; i < nr; i++) {
		csink_v8_place_at(walk, inlined[i].shared, inlined[i].offset, &place);
		if (!identify(walk, inlined[i].shared, &of) ||
		    !(of = take_function(walk, inlined[i].shared, of, &place)))
			break;
		kept->frames[i] = walk->room->frames[walk->nr_frames - 1];
		kept->nr = i + 1 == nr ? (uint32_t)nr : 0;
	}
	return true;
}

/* Is a frame with this end one of WebAssembly? */
static bool is_wasm(struct csink_interp_walk *walk, uintptr_t end)
{
	uint64_t wasm = csink_v8_layout(walk)->frame_wasm, marker;

	return wasm && end != UINTPTR_MAX && csink_interp_load(walk, end + (uintptr_t)FRAME_CONTEXT, &marker) &&
	       marker == wasm << 1;
}

/*
 * Add a frame of other compiled code. The innermost frame of WebAssembly may not be there yet, that of its caller is.
 * False: no frame may follow.
 */
static bool take_other(struct csink_interp_walk *walk, const struct csink_v8_frame *frame, uintptr_t record)
{
	uintptr_t other = WASM;

	if (csink_v8_is_own_code(walk, frame->pc))
		return true;
	if (!is_wasm(walk, frame->end) &&
	    !(frame->is_exact && walk->native->nr_frames > 1 && is_wasm(walk, walk->room->cfas[1]))) {
		if (!frame->is_exact || !csink_v8_is_regexp(walk, frame->pc))
			return true;
		other = REGEXP;
	}
	if (!csink_interp_frame(walk, csink_interp_mix(walk->interpreter->module, other), other, 0))
		return false;
	csink_interp_group(walk, record);
	return true;
}

static bool load_compared(struct csink_interp_walk *walk, const struct seen *seen, uint64_t *words)
{
	const struct csink_v8_layout *layout = csink_v8_layout(walk);
	const uintptr_t at[] = {seen->function + OBJECT_MAP,        seen->function - TAG + layout->shared,
				seen->shared + OBJECT_MAP,          seen->shared - TAG + layout->name,
				seen->shared - TAG + layout->flags, seen->shared - TAG + layout->script};
	uint32_t nr = CSINK_ARRAY_SIZE(at);
	bool ok = true;
	uint64_t object;

	_Static_assert(CSINK_ARRAY_SIZE(at) + 2 == NR_COMPARED, "two more are below");
	for (uint32_t i = 0; i < nr; i++)
		words[i] = csink_v8_word(walk, at[i], &ok);
	/* The number of the script, since other functions of eval() come to lie where former ones were; or the hash and
	 * the length of the name. */
	object = seen->has_script ? words[nr - 1] + SCRIPT_ID : words[WORD_NAME] + STRING_HASH;
	words[nr] = object & ~7UL ? csink_v8_word(walk, object, &ok) : 0; /* a number stands for no name */
	words[nr + 1] = walk->room->own;
	return ok;
}

/* Is it still what was seen? */
static bool is_same(struct csink_interp_walk *walk, struct seen *seen)
{
	uint64_t words[NR_COMPARED], differs = 0;

	if (seen->walk == walk->room->nr_walks)
		return true;
	if (!seen->shared || !load_compared(walk, seen, words))
		return false;
	for (uint32_t i = 0; i < NR_COMPARED; i++)
		differs |= words[i] ^ seen->words[i];
	if (differs)
		return false;
	seen->walk = walk->room->nr_walks;
	return true;
}

/* Add the frame of a function. False: no frame may follow. */
static bool take_frame(struct csink_interp_walk *walk, uint64_t function, const struct csink_v8_frame *frame,
		       struct seen *seen, uintptr_t record)
{
	struct csink_v8_place place;

	if (seen->function != function || !is_same(walk, seen)) {
		*seen = (struct seen){
			.walk = walk->room->nr_walks, .function = function, .shared = shared_of(walk, function)};
		if (!walk->room->own && seen->shared)
			begin_thread(walk);
		if (seen->shared && !identify(walk, seen->shared, &seen->identity)) {
			seen->function = 0;
			return true;
		}
		seen->has_script = seen->shared && script_of(walk, seen->shared);
		if (seen->shared && !load_compared(walk, seen, seen->words))
			seen->function = 0; /* of this frame alone */
	}
	if (!seen->shared) {
		miss(walk);
		return take_other(walk, frame, record);
	}
	csink_v8_find_place(walk, frame, seen->shared, &seen->tables, &place);
	if ((place.nr_positions || !take_inlined(walk, frame, seen->identity)) &&
	    !take_function(walk, seen->shared, seen->identity, &place))
		return false;
	csink_interp_group(walk, record);
	return !walk->is_full && !walk->is_broken;
}

static bool has_no_tables(uintptr_t pc, bool is_exact)
{
	csink_row_t row = csink_row_find(pc, is_exact, csink_row_mix(csink_modules_unloads()));

	return csink_row_kind(row) == CSINK_ROW_NO_CFI;
}

static void walk_v8(struct csink_interp_walk *walk)
{
	const struct csink_walk *native = walk->native;
	struct csink_v8_frame frame = {.begin = csink_context_sp(walk->context),
				       .pc = csink_context_pc(walk->context),
				       .is_exact = true,
				       .is_innermost = true};
	struct csink_module module;
	uintptr_t record = frame.begin;
	uint64_t wasm = (uint64_t)csink_v8_layout(walk)->frame_wasm << 1;

	/* The interrupted instruction of a builtin stays, and what called it is named. */
	if (csink_modules_find(frame.pc, &module) || csink_code_copies_have(frame.pc))
		record = 0;
	csink_interp_find_cfas(walk);
	for (uint32_t i = 0; i < native->nr_frames; i++) {
		uint64_t function = 0;
		bool is_function;

		frame.end = walk->room->cfas[i];
		if (frame.end != UINTPTR_MAX && frame.begin != UINTPTR_MAX)
			function = function_of(walk, &frame);
		is_function = function & TAG;
		if (is_function && !walk->room->kept) /* most threads of a program have no functions */
			walk->room->kept = csink_private_get(sizeof(struct kept));
		if (is_function && !walk->room->kept)
			return;
		if ((is_function || !i || (function && function == wasm)) && has_no_tables(frame.pc, frame.is_exact) &&
		    !(is_function ? take_frame(walk, function, &frame, seen_at(walk->room, function), record)
				  : take_other(walk, &frame, record)))
			break;
		frame.is_innermost = !i && !(function & TAG) && csink_v8_is_own_code(walk, frame.pc);
		frame.begin = record = frame.end;
		frame.pc = native->frames[i] & ~CSINK_FRAME_EXACT;
		frame.is_exact = native->frames[i] & CSINK_FRAME_EXACT;
	}
}

const struct csink_language csink_v8 = {"v8", find, walk_v8, describe};
