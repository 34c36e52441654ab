/*
 * Looks like V8 to those who read its frames: it exports where V8 has its fields, and "runs" functions whose objects
 * lie at these places, in code without unwind tables. Fields of VERSION (tests/rules.mk) are those of the V8 of that
 * node.
 *
 *   v8_VERSION MS   works that long in code that a chain of functions calls, one for each kind of name
 *
 * Macros: VERSION (default: 20); TAGGED: bytes of a tagged word; TYPE: added to the types of functions, in frames only.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default"), used))

#ifndef VERSION
#define VERSION 20
#endif
#ifndef TAGGED
#define TAGGED 8
#endif
#ifndef TYPE
#define TYPE 0
#endif

enum {
	IS_22 = VERSION >= 22,
	IS_24 = VERSION >= 24,
	SHARED = IS_22 ? 32 : 24,
	NAME = IS_24 ? 24 : 16,
	SCRIPT = IS_24 ? 40 : 32,
	FLAGS = IS_24 ? 56 : 48,
	FIRST_SLOT = IS_24 ? 5 : 3,
	TYPE_SHARED = VERSION == 18   ? 257
		      : VERSION == 20 ? 262
		      : VERSION == 22 ? 274
				      : 282,
	TYPE_SCRIPT = VERSION == 18 ? 170 : 167,
	TYPE_SCOPE = VERSION == 18   ? 256
		     : VERSION == 20 ? 261
		     : VERSION == 22 ? 272
				     : 280,
	TYPE_FUNCTION = VERSION == 18 || IS_24 ? 2065 : 2066,
	TYPE_OTHER = 131,
	/* Of strings: */
	ONE_BYTE = 8,
	TWO_BYTES = 0,
	CONCATENATED = 1,
	EXTERNAL = 2,
	SLICED = 3,
	REFERENCE = 5,
	/* Of scopes: */
	HAS_CLASS_VARIABLE = 1 << 10,
	HAS_NAME = 1 << 12,
	HAS_INFERRED_NAME = 1 << 14,
	MODULE = IS_24 ? 5 : 4,
};

SHOWN int v8dbg_SmiTagMask = 1, v8dbg_TaggedSize = TAGGED, v8dbg_off_fp_function = -16;
SHOWN int v8dbg_class_JSFunction__shared__SharedFunctionInfo = SHARED;
SHOWN int v8dbg_class_SharedFunctionInfo__flags__int = FLAGS, v8dbg_scopeinfo_idx_first_vars = FIRST_SLOT;
SHOWN int v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE = TYPE_SHARED;
SHOWN int v8dbg_type_Script__SCRIPT_TYPE = TYPE_SCRIPT, v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE = TYPE_SCOPE;
SHOWN int v8dbg_type_JSFunction__JS_FUNCTION_TYPE = TYPE_FUNCTION;
#if VERSION >= 24
SHOWN int v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_ = NAME;
#elif VERSION >= 22
SHOWN int v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_ = NAME;
#else
SHOWN int v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object = NAME;
#endif
#if VERSION >= 22
SHOWN int v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_ = SCRIPT;
SHOWN int v8dbg_FirstJSFunctionType = TYPE_FUNCTION, v8dbg_LastJSFunctionType = TYPE_FUNCTION + 16;
#else
SHOWN int v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject = SCRIPT;
#endif

/* ---- objects ----------------------------------------------------------------------------------------------------- */

#define SMI(value) ((uint64_t)(value) << 32)

static char heap[1 << 16];
static size_t used;

static void put(uint64_t object, size_t offset, uint64_t value)
{
	memcpy((void *)(object - 1 + offset), &value, sizeof(value));
}

/* A tagged pointer to a new object with a map of its own. */
static uint64_t new_object(size_t bytes, uint16_t type)
{
	uint64_t map = (uint64_t)(heap + used) + 1, object = map + 80;

	used += 80 + ((bytes + 15) & ~(size_t)15);
	memcpy((void *)(map - 1 + 12), &type, sizeof(type));
	put(object, 0, map);
	return object;
}

static uint64_t new_string(uint16_t type, uint32_t length, const void *text, size_t bytes)
{
	uint64_t string = new_object(16 + bytes, type);

	memcpy((void *)(string - 1 + 12), &length, sizeof(length));
	memcpy((void *)(string - 1 + 16), text, bytes);
	return string;
}

static uint64_t ascii(const char *text)
{
	return new_string(ONE_BYTE, (uint32_t)strlen(text), text, strlen(text));
}

/* A string that refers to one or two others. */
static uint64_t linked(uint16_t type, uint32_t length, uint64_t first, uint64_t second)
{
	uint64_t words[] = {first, second};

	return new_string(type, length, words, sizeof(words));
}

static uint64_t new_scope(uint32_t flags, uint32_t nr_locals, uint64_t name, uint64_t inferred, uint32_t start)
{
	uint64_t scope = new_object(8 * 200, TYPE_SCOPE);
	size_t slot = FIRST_SLOT;

	put(scope, 8, IS_24 ? flags : SMI(flags));
	put(scope, 24, SMI(nr_locals));
	slot += (flags & 15) == MODULE;
	slot += nr_locals < 75 ? 2 * nr_locals : nr_locals + 1;
	slot += (flags & HAS_CLASS_VARIABLE) != 0;
	if (flags & HAS_NAME) {
		put(scope, 8 + 8 * slot, name);
		slot += 2;
	}
	if (flags & HAS_INFERRED_NAME)
		put(scope, 8 + 8 * slot++, inferred);
	slot = IS_24 ? 3 : slot;
	put(scope, 8 + 8 * slot, SMI(start));
	return scope;
}

static uint64_t new_script(uint64_t name, uint32_t id)
{
	uint64_t script = new_object(128, TYPE_SCRIPT);

	put(script, 8, ascii("made up source"));
	put(script, 16, name);
	put(script, 64, SMI(id));
	return script;
}

static uint64_t new_function(uint64_t name, uint64_t script)
{
	static uint32_t nr;
	uint64_t shared = new_object(96, TYPE_SHARED), function = new_object(64, TYPE_FUNCTION + TYPE);
	uint32_t ids[2] = {nr, 1000 + nr};

	nr++;
	put(shared, NAME, name);
	put(shared, SCRIPT, script);
	memcpy((void *)(shared - 1 + FLAGS + 4), ids, sizeof(ids));
	put(function, SHARED, shared);
	return function;
}

/* As the collector leaves an object that it has moved: its first word is the new one's address. */
static uint64_t moved(uint64_t object)
{
	uint64_t old = new_object(96, TYPE_OTHER);

	put(old, 0, object - 1);
	return old;
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static long until_ms;

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Calls the next function of the chain, or works. */
static uint64_t functions[32];
static size_t nr_functions, next;
static void (*code)(uint64_t function, uint64_t context, void (*then)(void));

static void go_on(void)
{
	volatile uint64_t sum = 0;

	if (next < nr_functions) {
		code(functions[next++], functions[0], go_on);
		__asm__ volatile(""); /* no jump in place of the call */
		return;
	}
	while (now_ms() < until_ms)
		for (int i = 0; i < 10000; i++)
			sum += (uint64_t)i;
}

/* push %rbp; mov %rsp, %rbp; push %rsi; push %rdi; call *%rdx; leave; ret */
static void make_code(void)
{
	static const unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0xff, 0xd2, 0xc9, 0xc3};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		exit(2);
	memcpy(page, bytes, sizeof(bytes));
	code = (void (*)(uint64_t, uint64_t, void (*)(void)))page;
}

static void add(uint64_t function)
{
	functions[nr_functions++] = function;
}

int main(int argc, char **argv)
{
	static const uint16_t wide[] = {0xfc, 0x6e, 0xef}, outside[] = {'o', 'u', 't', 0x540d};
	uint64_t script = new_script(ascii("/made/made.js"), 1), other, undefined = new_object(16, TYPE_OTHER), name;

	until_ms = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
	make_code();
	/* Outermost first: a module's name and locals, what was inferred, no name, and strings of all kinds. */
	add(new_function(new_scope(MODULE | HAS_NAME, 3, ascii("module"), 0, 0), script));
	add(new_function(new_scope(HAS_NAME | HAS_INFERRED_NAME, 80, ascii(""), ascii("inferred"), 0), script));
	add(new_function(new_scope(HAS_CLASS_VARIABLE | HAS_NAME, 0, ascii("classy"), 0, 0), script));
	add(new_function(new_scope(HAS_NAME | HAS_INFERRED_NAME, 74, SMI(0), undefined, 0), script));
	add(new_function(new_scope(HAS_NAME, 75, new_string(TWO_BYTES, 3, wide, sizeof(wide)), 0, 0), script));
	name = linked(ONE_BYTE | CONCATENATED, 9, ascii("left"), ascii("Right"));
	add(new_function(new_scope(HAS_NAME, 1, name, 0, 0), script));
	name = linked(ONE_BYTE | SLICED, 5, ascii("a sliced name"), SMI(2));
	add(new_function(new_scope(HAS_NAME, 1, name, 0, 0), script));
	name = linked(ONE_BYTE | REFERENCE, 6, ascii("thinly"), 0);
	add(new_function(new_scope(HAS_NAME, 1, name, 0, 0), script));
	name = linked(TWO_BYTES | EXTERNAL, 4, 0, (uint64_t)outside);
	add(new_function(new_scope(HAS_NAME, 1, name, 0, 0), script));
	add(moved(new_function(moved(new_scope(HAS_NAME, 1, moved(ascii("moved")), 0, 0)), script)));
	other = new_script(undefined, 2);
	add(new_function(new_scope(HAS_NAME, 1, ascii("evaluated"), 0, 0), other));
	add(new_function(ascii("builtin"), undefined));
	go_on();
	return 3;
}
