/*
 * How CPython is recognized, and where it keeps what a stack needs: 3.6 to 3.13, release builds with a GIL. For the
 * agent, which reads its own process, and for the launcher, which reads others.
 *
 * Sources: CPython's Include/cpython, Include/internal and Python/ceval.c of each minor version, whose patch releases
 * have equal offsets. tests/cli/frames.t and attach_frames.t compare frames with the interpreter's own account of them
 * in each version that is installed. Context of everything here: signal.
 */
#ifndef CSINK_PYTHON_LAYOUT_H
#define CSINK_PYTHON_LAYOUT_H

#include <stdint.h>

#include "include/internal/recording_format.h"
#include "preload/core/elf_symbol.h"

/* Which frames one call of the evaluator runs, and what lies in its native frame. */
enum csink_python_chain {
	CSINK_PYTHON_COUNT,  /* to 3.9: one frame; no record */
	CSINK_PYTHON_CFRAME, /* 3.10: one frame; the record is a CFrame */
	CSINK_PYTHON_ENTRY,  /* 3.11: frames up to one that is marked as an entry; the record is a CFrame */
	CSINK_PYTHON_SHIM,   /* from 3.12: frames up to a shim, which is a frame without code; the shim is the record */
};

struct csink_python_layout {
	uint8_t minor, chain, kind; /* kind: enum csink_code_kind */
	/* Offsets, bytes. Of the thread's state: */
	uint16_t thread_id, newest, chunk; /* newest: of the newest frame or CFrame, as the chain has it */
	/* Of a CFrame: */
	uint16_t cframe_frame, cframe_previous;
	/* Of a frame: */
	uint16_t previous, code, position, owner;
	/* Of a code object: */
	uint16_t first_line, file, name, table, bytecode, version;
	/* Of a str: its text, if it is ASCII, or another compact one. */
	uint16_t ascii, compact;
};

enum {
	CSINK_PYTHON_STATE_PREVIOUS = 0, /* of a thread's state: a newer one of the same interpreter */
	CSINK_PYTHON_STATE_NEXT = 8,     /* an older one */
	CSINK_PYTHON_STATE_INTERPRETER = 16,
	CSINK_PYTHON_STATE_FRAME = 24,     /* up to 3.10: its newest frame */
	CSINK_PYTHON_STATE_BYTES = 512,    /* the root CFrame is at an offset below this */
	CSINK_PYTHON_OBJECT_TYPE = 8,      /* of an object: its type */
	CSINK_PYTHON_VAR_SIZE = 16,        /* of a bytes or str: its length */
	CSINK_PYTHON_BYTES_TEXT = 32,      /* of a bytes: its content */
	CSINK_PYTHON_STR_HASH = 24,        /* of a str */
	CSINK_PYTHON_STR_STATE = 32,       /* of a str: flags */
	CSINK_PYTHON_STR_ASCII = 1 << 6,   /* one of these; bits 2 to 4: bytes of a character */
	CSINK_PYTHON_OWNED_BY_C_STACK = 3, /* from this owner on a frame is a shim */
	CSINK_PYTHON_OWNER_MAX = 4,
	CSINK_PYTHON_NEAR = 1024,      /* between local variables of the evaluator */
	CSINK_PYTHON_MAX_CHAIN = 2048, /* links in a row that are followed: frames of a group, groups */
	CSINK_PYTHON_MAX_TEXT = 1000,  /* bytes of a name or a file that are kept, with a NUL */
	CSINK_PYTHON_TABLE_SEEN =
		64, /* bytes at the beginning of a line table that identify its function, with the last word */
};

/* An object that is a CPython. */
struct csink_python {
	const struct csink_python_layout *layout;
	uintptr_t code_type; /* PyCode_Type */
	uintptr_t evaluator, evaluator_end;
	uintptr_t runtime, runtime_bytes; /* _PyRuntime; before 3.7: 0 */
};

/** What csink_python_find() gives as the reason for a version that is not known. */
extern const char csink_python_unsupported[];

/**
 * Is the object a CPython? Returns 1: yes, *to is set; 0: no; -1: an interpreter whose frames cannot be read, and *why
 * is the reason, a constant.
 */
int csink_python_find(const struct csink_elf_view *object, struct csink_python *to, const char **why);

/** The layout of CPython 3.minor; NULL: not known. */
const struct csink_python_layout *csink_python_layout_of(int minor);

/** Byte offset in a function's code, of what a frame has as its position; CSINK_CODE_NOT_BEGUN before the first. */
static inline uint32_t csink_python_position(const struct csink_python_layout *layout, uintptr_t code,
					     uint64_t position)
{
	int64_t at = layout->minor >= 11 ? (int64_t)(position - code - layout->bytecode) : (int32_t)position;

	if (layout->minor == 10)
		at *= 2;
	return at < 0 || at >= UINT32_MAX ? CSINK_CODE_NOT_BEGUN : (uint32_t)at;
}

/** Whether a frame of that owner ends its group; a shim is no frame of a function. Chains ENTRY and SHIM. */
static inline bool csink_python_is_last(const struct csink_python_layout *layout, uint64_t owner)
{
	return layout->chain == CSINK_PYTHON_ENTRY ? (uint8_t)owner : (uint8_t)owner >= CSINK_PYTHON_OWNED_BY_C_STACK;
}

/** Write a character as UTF-8, at most 4 bytes; half of a pair, as Python has for bytes that are no UTF-8, as U+FFFD.
 */
uint32_t csink_python_put_char(char *to, uint32_t c);

#endif
