/*
 * How CPython is recognized, and where it keeps what a stack needs: 3.6 to 3.14, release builds with a GIL. For the
 * agent, which reads its own process, and for the launcher, which reads others. 3.14 itself says where: _PyRuntime
 * begins with these offsets. It has not been tried itself yet, only programs with such records.
 *
 * Sources: CPython's Include/cpython, Include/internal and Python/ceval.c of each minor version, whose patch releases
 * have equal offsets. tests/cli/frames.t and attach_frames.t compare frames with the interpreter's own account of them
 * in each version that is installed; made_pythons.t and test_python_stack do so with records of our own. Context of
 * everything here: signal.
 */
#ifndef CSINK_PYTHON_LAYOUT_H
#define CSINK_PYTHON_LAYOUT_H

#include <stdbool.h>
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
	uint8_t minor, chain;
	uint16_t kind; /* enum csink_code_kind */
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
	/* Bytes at the beginning that identify, with the last word: of a line table, of a name without a hash. */
	CSINK_PYTHON_TABLE_SEEN = 64,
	CSINK_PYTHON_NAME_SEEN = 64,
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

/** The reason for a 3.14 that describes its records in another way, or reaches a thread's state in another way. */
extern const char csink_python_unknown[];

/**
 * Is the object a CPython? Returns 1: yes, *to is set; 0: no; -1: an interpreter whose frames cannot be read, and *why
 * is the reason, a constant.
 */
int csink_python_find(const struct csink_elf_view *object, struct csink_python *to, const char **why);

/** The layout of CPython 3.minor, to 3.13; NULL: not known. */
const struct csink_python_layout *csink_python_layout_of(int minor);

/* Words at the beginning of 3.14's _PyRuntime (its struct _Py_DebugOffsets), by index. */
enum csink_python_word_index {
	CSINK_PYTHON_WORD_COOKIE,
	CSINK_PYTHON_WORD_VERSION,       /* as Py_Version has it */
	CSINK_PYTHON_WORD_FREE_THREADED, /* not 0: there is no GIL */
	CSINK_PYTHON_WORD_PREVIOUS = 23, /* offsets from here on: of the thread's state, */
	CSINK_PYTHON_WORD_NEXT,
	CSINK_PYTHON_WORD_INTERPRETER,
	CSINK_PYTHON_WORD_NEWEST,
	CSINK_PYTHON_WORD_THREAD_ID,
	CSINK_PYTHON_WORD_CHUNK = 29,
	CSINK_PYTHON_WORD_FRAME_PREVIOUS = 32, /* of a frame, */
	CSINK_PYTHON_WORD_FRAME_CODE,
	CSINK_PYTHON_WORD_FRAME_POSITION,
	CSINK_PYTHON_WORD_FRAME_OWNER = 36,
	CSINK_PYTHON_WORD_FILE = 40, /* of a code object, */
	CSINK_PYTHON_WORD_NAME = 42,
	CSINK_PYTHON_WORD_TABLE,
	CSINK_PYTHON_WORD_FIRST_LINE,
	CSINK_PYTHON_WORD_VARIABLES = 46, /* the version is before these */
	CSINK_PYTHON_WORD_BYTECODE = 48,
	CSINK_PYTHON_WORD_TYPE = 51,       /* of any object, */
	CSINK_PYTHON_WORD_BYTES_SIZE = 75, /* of a bytes, */
	CSINK_PYTHON_WORD_BYTES_TEXT,
	CSINK_PYTHON_WORD_STR_STATE = 78, /* of a str */
	CSINK_PYTHON_WORD_STR_LENGTH,
	CSINK_PYTHON_WORD_ASCII,
	CSINK_PYTHON_NR_WORDS
};

#define CSINK_PYTHON_COOKIE 0x7970677562656478ULL /* xdebugpy */

/** Take the layout that such words describe. False: there is no cookie, the version is another, or an offset is out of
 * bounds; *to may have been changed. */
bool csink_python_layout_take(const uint64_t *words, struct csink_python_layout *to);

/** The same as a layout that stays; NULL: also if there are already 4 other layouts in this process. One thread at a
 * time. */
const struct csink_python_layout *csink_python_layout_read(const uint64_t *words);

/** A str's hash is taken when it is first asked for: 3.11's qualified names of nested functions, for one, have none. */
static inline bool csink_python_has_hash(uint64_t hash)
{
	return hash != UINT64_MAX;
}

/** Where the text of a str is, from its state; *bytes: of its length (characters), becomes bytes. */
static inline uint16_t csink_python_text(const struct csink_python_layout *layout, uint32_t state, uint64_t *bytes)
{
	*bytes *= state >> 2 & 7;
	return state & CSINK_PYTHON_STR_ASCII ? layout->ascii : layout->compact;
}

/** The object that a frame's word refers to: from 3.14 on its lowest bits say whether the frame owns it. */
static inline uint64_t csink_python_untag(uint64_t word)
{
	return word & ~3ULL;
}

/**
 * By an object's first word: whether it is alive. A freed one has no count of references: 0, or a link of its
 * allocator, which is an address. From 3.14 on the upper 16 bits are flags.
 */
static inline bool csink_python_is_alive(uint64_t references)
{
	return (uint32_t)references && !(uint16_t)(references >> 32);
}

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
