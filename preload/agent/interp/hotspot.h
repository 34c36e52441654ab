/*
 * Frames of Java: OpenJDK's HotSpot, on x86-64. Shared by its files in this directory and included by no other.
 *
 * hotspot_tables.c finds where HotSpot has its fields, which libjvm exports for debuggers. hotspot_blobs.c finds the
 * piece of code (a blob) that an address is in. hotspot_step.c steps over frames of such code, for the native walk.
 * hotspot.c names them, hotspot_scopes.c those that were inlined. Context of everything here: signal.
 */
#ifndef CSINK_HOTSPOT_H
#define CSINK_HOTSPOT_H

#include "preload/agent/interp/interp.h"
#include "preload/agent/unwind/made_code.h"

/* What is read, in the order of hotspot_tables.c's table. HAS_: not all versions have it. */
enum csink_hotspot_field {
	/* Static variables. */
	HOTSPOT_HEAPS,
	HOTSPOT_CODE_LOW,
	HOTSPOT_CODE_HIGH,
	HOTSPOT_VERSION,
	HOTSPOT_INTERPRETER,
	HOTSPOT_RETURN_PC,   /* optional: of Continuation.enterSpecial() */
	HOTSPOT_CALL_RETURN, /* optional: where Java returns to native code */
	HOTSPOT_ARCHIVE_LOW, /* optional: of an archive of classes, which stays mapped */
	HOTSPOT_ARCHIVE_HIGH,
	HOTSPOT_COUNTERS, /* optional: where the virtual machine counts what it does */
	/* Fields. */
	HOTSPOT_ARRAY_NR,
	HOTSPOT_ARRAY_DATA,
	HOTSPOT_HEAP_MEMORY,
	HOTSPOT_HEAP_MAP,
	HOTSPOT_HEAP_SHIFT,
	HOTSPOT_SPACE_LOW,
	HOTSPOT_SPACE_HIGH,
	HOTSPOT_BLOCK_HEADER,
	HOTSPOT_BLOCK_USED,
	HOTSPOT_BLOB_NAME,
	HOTSPOT_BLOB_FRAME_WORDS,
	HOTSPOT_BLOB_COMPLETE,
	HOTSPOT_BLOB_CODE,             /* either this ... */
	HOTSPOT_BLOB_CODE_OFFSET,      /* ... or this */
	HOTSPOT_BLOB_RELOCATION_BYTES, /* optional, as what follows up to METHOD_CONST */
	HOTSPOT_BLOB_MUTABLE,
	HOTSPOT_BLOB_DATA_OFFSET,
	HOTSPOT_COMPILED_METHOD,
	HOTSPOT_COMPILED_ID,
	HOTSPOT_COMPILED_PCS_OFFSET,
	HOTSPOT_COMPILED_PCS_END, /* of what is behind them */
	HOTSPOT_COMPILED_SCOPES,
	HOTSPOT_COMPILED_SCOPES_OFFSET,
	HOTSPOT_COMPILED_IMMUTABLE,
	HOTSPOT_COMPILED_METADATA_OFFSET,
	HOTSPOT_COMPILED_DEOPT,
	HOTSPOT_COMPILED_DEOPT_OFFSET,
	HOTSPOT_COMPILED_ORIGINAL_PC,
	HOTSPOT_METHOD_CONST,
	HOTSPOT_CONST_POOL,
	HOTSPOT_CONST_NAME,
	HOTSPOT_CONST_FLAGS,
	HOTSPOT_CONST_CODE_BYTES,
	HOTSPOT_POOL_HOLDER,
	HOTSPOT_POOL_LENGTH,
	HOTSPOT_POOL_FILE,  /* either this ... */
	HOTSPOT_CLASS_FILE, /* ... or this */
	HOTSPOT_CLASS_NAME,
	HOTSPOT_SYMBOL_LENGTH,
	HOTSPOT_SYMBOL_TEXT,
	HOTSPOT_QUEUE_BUFFER,
	HOTSPOT_QUEUE_BEGIN,
	HOTSPOT_QUEUE_NR,
	HOTSPOT_CODELET_BYTES,
	HOTSPOT_CODELET_TEXT,
	HOTSPOT_PC_OFFSET,
	HOTSPOT_PC_SCOPE,
	HOTSPOT_THREAD_ANCHOR,
	HOTSPOT_THREAD_OS,
	HOTSPOT_OS_PTHREAD,
	HOTSPOT_ANCHOR_SP,
	HOTSPOT_ANCHOR_PC,
	HOTSPOT_ANCHOR_FP,
	/* Sizes of types. */
	HOTSPOT_BLOCK_BYTES,
	HOTSPOT_POOL_BYTES,
	HOTSPOT_CONST_BYTES,
	HOTSPOT_PC_BYTES,
	HOTSPOT_NR_FIELDS
};

enum { HOTSPOT_MAX_HEAPS = 8, HOTSPOT_MAX_ENTRIES = 96 };

/* The virtual machine of this process: written once, before it is published. */
struct csink_hotspot {
	uint64_t at[HOTSPOT_NR_FIELDS];   /* address of a variable, offset of a field, or size of a type */
	uint8_t bytes[HOTSPOT_NR_FIELDS]; /* of the variable or field; 0: this version does not have it */
	uint32_t version;
	uint32_t nr_heaps, nr_entries;
	uintptr_t heaps[HOTSPOT_MAX_HEAPS];
	uintptr_t low, high;              /* all code is between these */
	bool is_read;                     /* the fields are known, and none is missing */
	uintptr_t unloaded;               /* where unloaded classes are counted; 0: nowhere */
	uintptr_t archive, archive_bytes; /* methods in it are never freed; 0, 0: there is no archive */
	/* Where each of the interpreter's pieces of code that methods are entered by begins; then where the last ends.
	 */
	uintptr_t entries[HOTSPOT_MAX_ENTRIES];
};

/** The virtual machine; NULL: none is known yet. Context: signal. */
const struct csink_hotspot *csink_hotspot_get(void);

/** Look for it. NULL: it is not there yet, or is refused. Context: signal. */
const struct csink_hotspot *csink_hotspot_look(struct csink_interp_walk *walk);

/** The language's find(). */
int csink_hotspot_find(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why);

/** Cut a field out of the eight bytes that begin at its address. */
static inline uint64_t csink_hotspot_cut(const struct csink_hotspot *vm, enum csink_hotspot_field field, uint64_t word)
{
	unsigned int bits = 8u * vm->bytes[field];

	return bits < 64 ? word & ((1ULL << bits) - 1) : word;
}

/** A field of what is known to be readable: a blob, a code heap. */
static inline uint64_t csink_hotspot_known(const struct csink_hotspot *vm, uintptr_t object,
					   enum csink_hotspot_field field)
{
	return csink_hotspot_cut(vm, field, csink_load_known(object + vm->at[field]));
}

/** The same, signed. */
static inline int64_t csink_hotspot_signed(const struct csink_hotspot *vm, uintptr_t object,
					   enum csink_hotspot_field field)
{
	unsigned int bits = 64 - 8u * vm->bytes[field];

	return (int64_t)(csink_load_known(object + vm->at[field]) << bits) >> bits;
}

/** A field of other memory; 0 and *ok false if it cannot be read. */
static inline uint64_t csink_hotspot_load(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
					  uintptr_t object, enum csink_hotspot_field field, bool *ok)
{
	uintptr_t at = object + vm->at[field];
	uint64_t word = 0;

	/* The word that it lies in: what follows the object may be unreadable. */
	*ok = *ok && csink_interp_load(walk, at & ~(uintptr_t)7, &word);
	return csink_hotspot_cut(vm, field, word >> 8 * (at & 7));
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

enum csink_hotspot_kind {
	HOTSPOT_COMPILED,
	HOTSPOT_WRAPPER, /* of a native method: compiled, without scopes */
	HOTSPOT_CODE_OF_INTERPRETER,
	HOTSPOT_STUBS, /* many in one blob: of some, frames have a frame pointer */
	HOTSPOT_BARE,  /* no frames */
	HOTSPOT_ADAPTER,
	HOTSPOT_OTHER,
};

struct csink_hotspot_blob {
	uintptr_t at, code; /* where its code begins */
	uintptr_t name;
	enum csink_hotspot_kind kind;
	uint32_t frame_bytes; /* return address and frame pointer are the last two words; 0: no fixed size */
	uintptr_t complete;   /* from here on in its code, its frame is there; 0: not known */
	uintptr_t end;        /* of readable code */
};

/** The blob that an address is in. False: it is in none. */
bool csink_hotspot_blob(const struct csink_hotspot *vm, uintptr_t pc, struct csink_hotspot_blob *blob);

/**
 * The caller of a frame may not be valid any more: then the frame returns to where compiled code @blob ends, and
 * interpreted frames are made of it. Is @ra that address?
 */
bool csink_hotspot_is_deopt(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob, uintptr_t ra);

/** Where a frame of compiled code goes on: @pc, or what @pc has replaced. @sp: where the frame begins. */
uintptr_t csink_hotspot_original_pc(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
				    const struct csink_hotspot_blob *blob, uintptr_t pc, uintptr_t sp);

/** The code at an address in a blob; zeroes before the blob and behind the end of readable code. */
void csink_hotspot_code(const struct csink_hotspot_blob *blob, uintptr_t at, uint8_t *to, uint32_t bytes);

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* Offsets in interpreted frames, from the frame pointer. */
enum { HOTSPOT_SENDER_SP = -8, HOTSPOT_METHOD = -24, HOTSPOT_BYTECODE = -64 };

enum csink_hotspot_way {
	HOTSPOT_WHOLE,   /* of fixed size */
	HOTSPOT_NONE,    /* the return address is on top of the stack */
	HOTSPOT_PUSHED,  /* the frame pointer is, then the return address */
	HOTSPOT_UNSAVED, /* of fixed size, but the frame pointer is in its register */
	HOTSPOT_BY_FP,   /* as frame pointers lead */
	HOTSPOT_INTERPRETED,
	HOTSPOT_POPPED, /* the return address is in a register, and the frame is gone or not there yet */
	HOTSPOT_LOST,
};

/* An innermost frame. */
struct csink_hotspot_leaf {
	enum csink_hotspot_way way;
	uintptr_t cfa, fp, ra; /* of its caller */
	uint64_t method; /* of the interpreter's code: what is being entered; 0: what the frame has, if it is there */
};

/** How the caller of an innermost frame is found. False: it is not known. */
bool csink_hotspot_leaf(const struct csink_hotspot *vm, const struct csink_hotspot_blob *blob,
			const struct csink_made_frame *frame, struct csink_hotspot_leaf *leaf);

/** Is there a call before a return address in a blob? Context: signal. */
bool csink_hotspot_is_called(const struct csink_hotspot_blob *blob, uintptr_t ra);

/** One frame, for the native walk. */
enum csink_made_step csink_hotspot_step(struct csink_made_frame *frame);

/* A method that has a frame, and where it is in it. */
struct csink_hotspot_place {
	uint64_t method;
	uint32_t bci; /* CSINK_CODE_NOT_BEGUN: not known */
};

/**
 * List the methods of a compiled frame, innermost first: those that were inlined, and the one that was compiled.
 * Returns how many, at most @max; 0: they cannot be read.
 */
uint32_t csink_hotspot_scopes(struct csink_interp_walk *walk, const struct csink_hotspot *vm,
			      const struct csink_hotspot_blob *blob, uintptr_t pc, struct csink_hotspot_place *places,
			      uint32_t max);

#endif
