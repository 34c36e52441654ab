/* See python_layout.h. */
#include "preload/core/python_layout.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"

const char csink_python_unsupported[] = "Python frames are not read: only CPython 3.6 to 3.13 is supported";

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
		const char *name;
		int minor;
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

static bool is_free_threaded(const struct csink_elf_view *object, uintptr_t runtime)
{
	uint64_t head[3];

	/* From 3.13: a cookie, the version, and a word that is not 0 if there is no GIL. */
	return copy(object, head, runtime, sizeof(head)) && !memcmp(head, "xdebugpy", 8) && head[2];
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
	to->layout = csink_python_layout_of(minor);
	/* The names of functions alone may be those of another implementation, whose functions do other things. */
	if (!to->layout || !to->evaluator || !to->code_type || (minor >= 7 && !to->runtime)) {
		*why = minor ? csink_python_unsupported
			     : "Python frames are not read: the interpreter is older than CPython 3.6";
		return -1;
	}
	if (minor >= 13 && is_free_threaded(object, to->runtime)) {
		*why = "Python frames are not read: free-threaded builds are not supported";
		return -1;
	}
	return 1;
}

uint32_t csink_python_put_char(char *to, uint32_t c)
{
	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	if (c < 0x80) {
		to[0] = (char)(c ? c : '?');
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}
