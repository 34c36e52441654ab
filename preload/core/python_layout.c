/* See python_layout.h. Any thread; async-signal-safe. */
#include "preload/core/python_layout.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"

const char csink_python_unsupported[] = "Python frames are not read: only CPython 3.6 to 3.14 is supported";

const char csink_python_unknown[] =
	"Python frames are not read: this CPython 3.14 does not keep them as its releases do";

/* clang-format off */
static const struct csink_python_layout layouts[] = {
	{6, CSINK_PYTHON_COUNT, CSINK_CODE_PYTHON_LNOTAB, 152, 24, 0, 0, 0, 24, 32, 120, 0, 36, 96, 104, 112, 48, 0, 48, 72},
	{7, CSINK_PYTHON_COUNT, CSINK_CODE_PYTHON_LNOTAB, 176, 24, 0, 0, 0, 24, 32, 104, 0, 36, 96, 104, 112, 48, 0, 48, 72},
	{8, CSINK_PYTHON_COUNT, CSINK_CODE_PYTHON_LNOTAB, 176, 24, 0, 0, 0, 24, 32, 104, 0, 40, 104, 112, 120, 48, 0, 48, 72},
	{9, CSINK_PYTHON_COUNT, CSINK_CODE_PYTHON_LNOTAB, 176, 24, 0, 0, 0, 24, 32, 104, 0, 40, 104, 112, 120, 48, 0, 48, 72},
	{10, CSINK_PYTHON_CFRAME, CSINK_CODE_PYTHON_LINES, 176, 48, 0, 0, 8, 24, 32, 96, 0, 40, 104, 112, 120, 48, 0, 48, 72},
	{11, CSINK_PYTHON_ENTRY, CSINK_CODE_PYTHON_LOCATIONS, 152, 56, 296, 8, 16, 48, 32, 56, 68, 72, 112, 128, 136, 184, 0, 48, 72},
	{12, CSINK_PYTHON_SHIM, CSINK_CODE_PYTHON_LOCATIONS, 136, 56, 232, 0, 8, 8, 0, 56, 70, 68, 112, 128, 136, 192, 92, 40, 56},
	{13, CSINK_PYTHON_SHIM, CSINK_CODE_PYTHON_LOCATIONS, 152, 72, 232, 0, 0, 8, 0, 56, 70, 68, 112, 128, 136, 200, 92, 40, 56},
};
/* clang-format on */

static bool copy(const struct csink_elf_view *object, void *to, uintptr_t from, size_t bytes)
{
	if (object->copy)
		return object->copy(to, (const void *)from, bytes);
	memcpy(to, (const void *)from, bytes);
	return true;
}

/* The minor version of CPython 3; older than 3.6 or unknown: 0. */
static int minor_of(const struct csink_elf_view *object)
{
	/* Functions that are new in a version, and in all later ones. */
	static const struct {
		char name[26];
		uint8_t minor;
	} firsts[] = {{"PyModule_AddObjectRef", 10},
		      {"PyModule_AddType", 9},
		      {"PyConfig_InitPythonConfig", 8},
		      {"PyImport_GetModule", 7},
		      {"PyOS_FSPath", 6}};
	uintptr_t at = csink_elf_look(object, "Py_Version", STT_OBJECT, NULL); /* 3.11 on */
	unsigned long version;

	if (at)
		return copy(object, &version, at, sizeof(version)) && version >> 24 == 3 ? (int)(version >> 16 & 0xff)
											 : 0;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(firsts); i++) {
		if (csink_elf_look(object, firsts[i].name, STT_FUNC, NULL))
			return firsts[i].minor;
	}
	return 0;
}

/*
 * The offsets that 3.14 gives. Code objects are copied as far as CODE_BYTES (launcher/attach/codes.c); a frame, a state
 * and the rest of a code object are read by words near their beginning.
 */
enum { CODE_BYTES = 144, FRAME_BYTES = 256, BYTECODE_MAX = 4096, MAX_READ = 4 };

#define MEMBER(name) offsetof(struct csink_python_layout, name)

static const struct {
	uint8_t word, to;
	uint16_t max;
} given[] = {
	{CSINK_PYTHON_WORD_NEWEST, MEMBER(newest), CSINK_PYTHON_STATE_BYTES},
	{CSINK_PYTHON_WORD_THREAD_ID, MEMBER(thread_id), CSINK_PYTHON_STATE_BYTES},
	{CSINK_PYTHON_WORD_CHUNK, MEMBER(chunk), CSINK_PYTHON_STATE_BYTES},
	{CSINK_PYTHON_WORD_FRAME_PREVIOUS, MEMBER(previous), FRAME_BYTES},
	{CSINK_PYTHON_WORD_FRAME_CODE, MEMBER(code), FRAME_BYTES},
	{CSINK_PYTHON_WORD_FRAME_POSITION, MEMBER(position), FRAME_BYTES},
	{CSINK_PYTHON_WORD_FRAME_OWNER, MEMBER(owner), FRAME_BYTES},
	{CSINK_PYTHON_WORD_FILE, MEMBER(file), CODE_BYTES - 8},
	{CSINK_PYTHON_WORD_NAME, MEMBER(name), CODE_BYTES - 8},
	{CSINK_PYTHON_WORD_TABLE, MEMBER(table), CODE_BYTES - 8},
	{CSINK_PYTHON_WORD_FIRST_LINE, MEMBER(first_line), CODE_BYTES - 8},
	{CSINK_PYTHON_WORD_VARIABLES, MEMBER(version), CODE_BYTES - 8},
	{CSINK_PYTHON_WORD_BYTECODE, MEMBER(bytecode), BYTECODE_MAX},
	{CSINK_PYTHON_WORD_ASCII, MEMBER(ascii), CODE_BYTES},
	{CSINK_PYTHON_WORD_ASCII, MEMBER(compact), CODE_BYTES},
};

/* What is the same in all versions. */
static const uint8_t constants[][2] = {
	{CSINK_PYTHON_WORD_PREVIOUS, CSINK_PYTHON_STATE_PREVIOUS},
	{CSINK_PYTHON_WORD_NEXT, CSINK_PYTHON_STATE_NEXT},
	{CSINK_PYTHON_WORD_INTERPRETER, CSINK_PYTHON_STATE_INTERPRETER},
	{CSINK_PYTHON_WORD_TYPE, CSINK_PYTHON_OBJECT_TYPE},
	{CSINK_PYTHON_WORD_BYTES_SIZE, CSINK_PYTHON_VAR_SIZE},
	{CSINK_PYTHON_WORD_BYTES_TEXT, CSINK_PYTHON_BYTES_TEXT},
	{CSINK_PYTHON_WORD_STR_STATE, CSINK_PYTHON_STR_STATE},
	{CSINK_PYTHON_WORD_STR_LENGTH, CSINK_PYTHON_VAR_SIZE},
};

/* The layout as it is kept, where interpreters have pointers to it; NULL: there are too many. */
static const struct csink_python_layout *keep(const struct csink_python_layout *layout)
{
	static struct csink_python_layout kept[MAX_READ];
	static size_t nr_kept;

	for (size_t i = 0; i < nr_kept; i++) {
		if (!memcmp(&kept[i], layout, sizeof(*layout)))
			return &kept[i];
	}
	if (nr_kept == MAX_READ)
		return NULL;
	kept[nr_kept] = *layout;
	return &kept[nr_kept++];
}

bool csink_python_layout_take(const uint64_t *words, struct csink_python_layout *to)
{
	if (words[CSINK_PYTHON_WORD_COOKIE] != CSINK_PYTHON_COOKIE ||
	    words[CSINK_PYTHON_WORD_VERSION] >> 16 != 0x030e || words[CSINK_PYTHON_WORD_FREE_THREADED])
		return false;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(constants); i++) {
		if (words[constants[i][0]] != constants[i][1])
			return false;
	}
	*to = (struct csink_python_layout){
		.minor = 14, .chain = CSINK_PYTHON_SHIM, .kind = CSINK_CODE_PYTHON_LOCATIONS};
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(given); i++) {
		uint64_t offset = words[given[i].word];

		if (offset > given[i].max)
			return false;
		memcpy((char *)to + given[i].to, &(uint16_t){(uint16_t)offset}, sizeof(uint16_t));
	}
	to->version -= sizeof(uint32_t);
	to->compact += 2 * sizeof(uint64_t); /* the UTF-8 form and its length */
	/* All else of a code object lies before its bytecode: the agent asks whether it can be read that far. */
	return to->version < CODE_BYTES && to->bytecode >= CODE_BYTES;
}

const struct csink_python_layout *csink_python_layout_read(const uint64_t *words)
{
	struct csink_python_layout layout;

	return csink_python_layout_take(words, &layout) ? keep(&layout) : NULL;
}

static const struct csink_python_layout *layout_at(const struct csink_elf_view *object, const struct csink_python *in)
{
	uint64_t words[CSINK_PYTHON_NR_WORDS];

	return in->runtime_bytes >= sizeof(words) && copy(object, words, in->runtime, sizeof(words))
		       ? csink_python_layout_read(words)
		       : NULL;
}

/* From 3.13. */
static bool is_free_threaded(const struct csink_elf_view *object, uintptr_t runtime)
{
	uint64_t head[CSINK_PYTHON_WORD_FREE_THREADED + 1];

	return copy(object, head, runtime, sizeof(head)) && head[CSINK_PYTHON_WORD_COOKIE] == CSINK_PYTHON_COOKIE &&
	       head[CSINK_PYTHON_WORD_FREE_THREADED];
}

const struct csink_python_layout *csink_python_layout_of(int minor)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(layouts); i++) {
		if (layouts[i].minor == minor)
			return &layouts[i];
	}
	return NULL;
}

int csink_python_find(const struct csink_elf_view *object, struct csink_python *to, const char **why)
{
	uint64_t bytes = 0, runtime_bytes = 0;
	int minor;

	if (!csink_elf_look(object, "PyGILState_GetThisThreadState", STT_FUNC, NULL)) {
		if (!csink_elf_look(object, "rpython_startup_code", STT_FUNC, NULL))
			return 0;
		*why = "Python frames are not read: PyPy is not supported";
		return -1;
	}
	minor = minor_of(object);
	*to = (struct csink_python){.evaluator = csink_elf_look(object, "_PyEval_EvalFrameDefault", STT_FUNC, &bytes),
				    .code_type = csink_elf_look(object, "PyCode_Type", STT_OBJECT, NULL),
				    .runtime = csink_elf_look(object, "_PyRuntime", STT_OBJECT, &runtime_bytes)};
	to->evaluator_end = to->evaluator + bytes;
	to->runtime_bytes = runtime_bytes;
	to->layout = minor == 14 && to->runtime ? layout_at(object, to) : csink_python_layout_of(minor);
	if (minor >= 13 && to->runtime && is_free_threaded(object, to->runtime)) {
		*why = "Python frames are not read: free-threaded builds are not supported";
		return -1;
	}
	if (minor == 14 && to->runtime && !to->layout) {
		*why = csink_python_unknown;
		return -1;
	}
	/* The names of functions alone may be those of another implementation, whose functions do other things. */
	if (!to->layout || !to->evaluator || !to->code_type || (minor >= 7 && !to->runtime)) {
		*why = minor ? csink_python_unsupported
			     : "Python frames are not read: the interpreter is older than CPython 3.6";
		return -1;
	}
	return 1;
}

uint32_t csink_python_put_char(char *to, uint32_t c)
{
	static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	uint32_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	c = c >= 0xd800 && c < 0xe000 ? 0xfffd : c ? c & 0x1fffff : '?';
	for (uint32_t i = bytes - 1; i; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(leads[bytes] | c);
	return bytes;
}
