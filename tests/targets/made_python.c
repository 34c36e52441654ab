/*
 * Looks like CPython 3.MINOR to those who read its frames: it has the interpreter's symbols and records at the offsets
 * of that version, as CPython's headers have them, written down here once more. It "runs" first(), which calls C, which
 * calls second() and third() of /made/made.py, at the lines 12, 22 and 32.
 *
 *   python_MINOR MS   works that long in third()
 *
 * Macros (tests/rules.mk): MINOR; NO_GIL: a build without a global lock; COOKIE, NEWEST, TYPE: other words in what 3.14
 * says of itself; LIBRARY: an object without main(); PROGRAM: only main(), for that object.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default"), used))

void made_python(long ms);

#ifndef PROGRAM

/* Offsets, bytes: of the thread's state, a CFrame, a frame, a code object, a str's text if it is ASCII. */
struct offsets {
	unsigned int thread_id, newest, chunk, cframe_frame, cframe_previous, previous, code, position, owner,
		first_line, file, name, table, bytecode, version, ascii;
};

static const struct offsets at =
#if MINOR == 6
	{152, 24, 0, 0, 0, 24, 32, 120, 0, 36, 96, 104, 112, 48, 0, 48};
#elif MINOR == 7
	{176, 24, 0, 0, 0, 24, 32, 104, 0, 36, 96, 104, 112, 48, 0, 48};
#elif MINOR == 8 || MINOR == 9
	{176, 24, 0, 0, 0, 24, 32, 104, 0, 40, 104, 112, 120, 48, 0, 48};
#elif MINOR == 10
	{176, 48, 0, 0, 8, 24, 32, 96, 0, 40, 104, 112, 120, 48, 0, 48};
#elif MINOR == 11
	{152, 56, 296, 8, 16, 48, 32, 56, 68, 72, 112, 128, 136, 184, 0, 48};
#elif MINOR == 12
	{136, 56, 232, 0, 8, 8, 0, 56, 70, 68, 112, 128, 136, 192, 92, 40};
#elif MINOR == 13
	{152, 72, 232, 0, 0, 8, 0, 56, 70, 68, 112, 128, 136, 200, 92, 40};
#else
	{152, 72, 232, 0, 0, 8, 0, 56, 74, 68, 112, 128, 136, 208, 92, 40};
#endif

enum { IS_INLINED = MINOR >= 11, HAS_SHIM = MINOR >= 12, TAG = MINOR >= 14 };

#define WORD_AT(from, offset) (*(uintptr_t *)((char *)(from) + (offset)))
#define HALF_AT(from, offset) (*(uint32_t *)((char *)(from) + (offset)))

/* ---- what the interpreter exports ---- */

#ifndef COOKIE
#define COOKIE 0x7970677562656478UL /* xdebugpy */
#endif
#ifndef NEWEST
#define NEWEST 72 /* offset in the thread's state */
#endif
#ifndef TYPE
#define TYPE 8 /* offset in an object */
#endif
#define RUNTIME_WORDS 1024
#define STATES 512      /* the word that refers to the list of thread states, from 3.11 on */
#define INTERPRETER 600 /* the main interpreter, from 3.11 on */

SHOWN char PyCode_Type[416];

SHOWN uintptr_t _PyRuntime[RUNTIME_WORDS] = {
#if MINOR >= 13
	[0] = COOKIE,
	[1] = 0x030000f0 | MINOR << 16,
#ifdef NO_GIL
	[2] = 1,
#endif
#endif
#if MINOR >= 14
	/* struct _Py_DebugOffsets of 3.14: what is read, and some of what is not. */
	[22] = 800,
	[23] = 0,
	[24] = 8,
	[25] = 16,
	[26] = NEWEST,
	[27] = 152,
	[28] = 160,
	[29] = 232,
	[30] = 32,
	[31] = 88,
	[32] = 8,
	[33] = 0,
	[34] = 56,
	[35] = 80,
	[36] = 74,
	[37] = 64,
	[39] = 216,
	[40] = 112,
	[41] = 120,
	[42] = 128,
	[43] = 136,
	[44] = 68,
	[45] = 52,
	[46] = 96,
	[47] = 104,
	[48] = 208,
	[50] = 16,
	[51] = TYPE,
	[74] = 40,
	[75] = 16,
	[76] = 32,
	[77] = 64,
	[78] = 32,
	[79] = 16,
	[80] = 40,
#endif
};

#if MINOR >= 11
SHOWN const unsigned long Py_Version = 0x030000f0 | MINOR << 16;
#else
SHOWN void PyOS_FSPath(void)
{
}
#if MINOR >= 7
SHOWN void PyImport_GetModule(void)
{
}
#endif
#if MINOR >= 8
SHOWN void PyConfig_InitPythonConfig(void)
{
}
#endif
#if MINOR >= 9
SHOWN void PyModule_AddType(void)
{
}
#endif
#if MINOR >= 10
SHOWN void PyModule_AddObjectRef(void)
{
}
#endif
#endif

static __thread void *volatile own_state;
static char state[1024], interpreter[256];

SHOWN void *PyGILState_GetThisThreadState(void)
{
	return own_state;
}

#if MINOR < 12
SHOWN void *_PyThreadState_UncheckedGet(void)
{
	return state;
}
#endif

/* ---- objects and frames ---- */

static char memory[16384] __attribute__((aligned(16))), *used = memory;

static void *take(size_t bytes)
{
	void *object = used;

	used += (bytes + 15) & ~(size_t)15;
	return object;
}

static void *make_str(const char *text)
{
	char *str = take(96);

	WORD_AT(str, 0) = 1;
	WORD_AT(str, 16) = strlen(text);
	WORD_AT(str, 24) = (uintptr_t)text[0] * 7919;
	HALF_AT(str, 32) = 1 << 2 | 1 << 5 | 1 << 6; /* one byte a character, compact, ASCII */
	strcpy(str + at.ascii, text);
	return str;
}

/* Lines: the first one, and those of the third and the fifth byte one and two more. */
static void *make_table(void)
{
	static const unsigned char lnotab[] = {2, 1, 2, 1}, ranges[] = {2, 0, 2, 1, 2, 1},
				   locations[] = {0xe8, 0, 0xe8, 2, 0xe8, 2};
	const unsigned char *from = MINOR < 10 ? lnotab : MINOR == 10 ? ranges : locations;
	size_t bytes = MINOR < 10 ? sizeof(lnotab) : sizeof(ranges);
	char *table = take(64);

	WORD_AT(table, 0) = 1;
	WORD_AT(table, 16) = bytes;
	memcpy(table + 32, from, bytes);
	return table;
}

static void *make_code(const char *name, uint32_t first_line)
{
	char *code = take(256);

	WORD_AT(code, 0) = MINOR >= 14 ? 1UL << 48 | 1 : 1; /* flags, and a count of references */
	WORD_AT(code, 8) = (uintptr_t)PyCode_Type;
	HALF_AT(code, at.first_line) = first_line;
	WORD_AT(code, at.file) = (uintptr_t)make_str("/made/made.py");
	WORD_AT(code, at.name) = (uintptr_t)make_str(name);
	WORD_AT(code, at.table) = (uintptr_t)make_table();
	if (at.version && name[0] != 's')
		HALF_AT(code, at.version) = first_line;
	return code;
}

/* A frame at its code's fifth byte. */
static void *make_frame(void *code, void *previous)
{
	char *frame = take(160);

	WORD_AT(frame, at.previous) = (uintptr_t)previous;
	WORD_AT(frame, at.code) = (uintptr_t)code | TAG;
	if (MINOR >= 11)
		WORD_AT(frame, at.position) = (uintptr_t)code + at.bytecode + 4;
	else
		HALF_AT(frame, at.position) = MINOR == 10 ? 2 : 4;
	return frame;
}

static void *codes[3];
static long work_ms;
static void *newest_frame, *newest_cframe;

/* ---- the evaluator ---- */

SHOWN __attribute__((noinline)) void _PyEval_EvalFrameDefault(int function);

static __attribute__((noinline)) void through_c(int function)
{
	_PyEval_EvalFrameDefault(function);
	__asm__ volatile("");
}

/* Run a function, and third() in the same call of the evaluator if it is inlined. */
SHOWN void _PyEval_EvalFrameDefault(int function)
{
	char shim[128] __attribute__((aligned(16))) = {0}, cframe[64] = {0};
	void *frame = newest_frame, *volatile next = NULL; /* instruction: the evaluator has its address, too */
	struct timespec now, end;

	if (HAS_SHIM) {
		WORD_AT(shim, at.previous) = (uintptr_t)frame;
		shim[at.owner] = 3;
		frame = shim;
	}
	frame = make_frame(codes[function], frame);
	if (MINOR == 11)
		((char *)frame)[at.owner] = 1; /* is_entry */
	if (IS_INLINED && function == 1)
		frame = make_frame(codes[++function], frame);
	newest_frame = frame;
	if (MINOR >= 11)
		next = (char *)codes[function] + at.bytecode + 6;
	(void)next;
	if (MINOR >= 10 && MINOR <= 12) {
		WORD_AT(cframe, at.cframe_previous) = (uintptr_t)newest_cframe;
		if (MINOR > 10)
			WORD_AT(cframe, at.cframe_frame) = (uintptr_t)frame;
		newest_cframe = cframe;
		WORD_AT(state, at.newest) = (uintptr_t)cframe;
	}
	if (MINOR <= 10)
		WORD_AT(state, 24) = (uintptr_t)frame;
	else if (MINOR >= 13)
		WORD_AT(state, at.newest) = (uintptr_t)frame;
	__asm__ volatile("" : : "r"(shim), "r"(cframe) : "memory");
	if (function < 2) {
		through_c(function + 1);
		return;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	end.tv_nsec += work_ms % 1000 * 1000000;
	end.tv_sec += work_ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	do {
		for (volatile int i = 0; i < 1000000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

void made_python(long ms)
{
	static const char *const names[] = {"first", "second", "third"};
	uintptr_t *chunk = take(32); /* frames lie in it, so all is in one */

	chunk[1] = sizeof(memory);
	for (int i = 0; i < 3; i++)
		codes[i] = make_code(names[i], 10 * (i + 1));
	WORD_AT(state, 16) = MINOR >= 11 ? (uintptr_t)&_PyRuntime[INTERPRETER] : (uintptr_t)interpreter;
	WORD_AT(interpreter, 8) = (uintptr_t)state;
	_PyRuntime[STATES] = MINOR >= 11 ? (uintptr_t)state : (uintptr_t)interpreter;
	WORD_AT(state, at.thread_id) = (uintptr_t)pthread_self();
	if (at.chunk)
		WORD_AT(state, at.chunk) = (uintptr_t)chunk;
	newest_cframe = state + 400; /* the root */
	own_state = state;
	work_ms = ms;
	_PyEval_EvalFrameDefault(0);
	own_state = NULL;
}
#endif

#ifndef LIBRARY
int main(int argc, char **argv)
{
	made_python(argc > 1 ? atol(argv[1]) : 500);
	return 3;
}
#endif
