/*
 * Frames of Java: OpenJDK's HotSpot, on x86-64. Shared by its files in this directory and included by no other.
 *
 * hotspot_tables.c finds where HotSpot has its fields, which libjvm exports for debuggers. hotspot_blobs.c finds the
 * piece of code (a blob) that an address is in. hotspot_step.c steps over frames of such code, for the native walk.
 * hotspot.c names them, hotspot_scopes.c those that were inlined. Context of everything here: signal.
 */
#ifndef CSINK_HOTSPOT_H
#define CSINK_HOTSPOT_H

#include <string.h>

#include "preload/agent/interp/interp.h"
#include "preload/agent/unwind/made_code.h"

/*
 * What is read of libjvm's tables: X(field, whether all versions have it, type, name). SAME: the type of the nearest
 * row above that names one, so that no row of another type may come between. No name: the size of the type. Some
 * versions have a field elsewhere, or another one instead of it: hotspot_tables.c.
 */
#define CSINK_HOTSPOT_FIELDS(X)                                                                                        \
	/* Static variables. */                                                                                        \
	X(HEAPS, NEEDED, "CodeCache", "_heaps")                                                                        \
	X(CODE_LOW, NEEDED, SAME, "_low_bound")                                                                        \
	X(CODE_HIGH, NEEDED, SAME, "_high_bound")                                                                      \
	X(VERSION, NEEDED, "Abstract_VM_Version", "_vm_major_version")                                                 \
	X(INTERPRETER, NEEDED, "AbstractInterpreter", "_code")                                                         \
	X(RETURN_PC, OPTIONAL, "ContinuationEntry", "_return_pc")             /* of Continuation.enterSpecial() */     \
	X(CALL_RETURN, OPTIONAL, "StubRoutines", "_call_stub_return_address") /* where Java returns to native code */  \
	X(ARCHIVE_LOW, OPTIONAL, "MetaspaceObj", "_shared_metaspace_base") /* archived classes, which stay mapped */   \
	X(ARCHIVE_HIGH, OPTIONAL, SAME, "_shared_metaspace_top")                                                       \
	X(COUNTERS, OPTIONAL, "PerfMemory", "_start") /* where the virtual machine counts what it does */              \
	X(REDEFINES, OPTIONAL, "JvmtiExport", "_can_hotswap_or_post_breakpoint") /* an agent may change methods */     \
	/* Fields. */                                                                                                  \
	X(ARRAY_NR, NEEDED, "GrowableArrayBase", "_len")                                                               \
	X(ARRAY_DATA, NEEDED, "GrowableArray<int>", "_data")                                                           \
	X(HEAP_MEMORY, NEEDED, "CodeHeap", "_memory")                                                                  \
	X(HEAP_MAP, NEEDED, SAME, "_segmap")                                                                           \
	X(HEAP_SHIFT, NEEDED, SAME, "_log2_segment_size")                                                              \
	X(SPACE_LOW, NEEDED, "VirtualSpace", "_low")                                                                   \
	X(SPACE_HIGH, NEEDED, SAME, "_high")                                                                           \
	X(BLOCK_HEADER, NEEDED, "HeapBlock", "_header")                                                                \
	X(BLOCK_USED, NEEDED, "HeapBlock::Header", "_used")                                                            \
	X(BLOB_NAME, NEEDED, "CodeBlob", "_name")                                                                      \
	X(BLOB_FRAME_WORDS, NEEDED, SAME, "_frame_size")                                                               \
	X(BLOB_COMPLETE, NEEDED, SAME, "_frame_complete_offset")                                                       \
	X(BLOB_CODE, OPTIONAL, SAME, "_code_begin")         /* either this ... */                                      \
	X(BLOB_CODE_OFFSET, OPTIONAL, SAME, "_code_offset") /* ... or this */                                          \
	X(BLOB_RELOCATION_BYTES, OPTIONAL, SAME, "_relocation_size")                                                   \
	X(BLOB_MUTABLE, OPTIONAL, SAME, "_mutable_data")                                                               \
	X(BLOB_DATA_OFFSET, OPTIONAL, SAME, "_data_offset")                                                            \
	X(COMPILED_METHOD, NEEDED, "nmethod", "_method")                                                               \
	X(COMPILED_ID, NEEDED, SAME, "_compile_id")                                                                    \
	X(COMPILED_PCS_OFFSET, NEEDED, SAME, "_scopes_pcs_offset")                                                     \
	X(COMPILED_PCS_END, OPTIONAL, SAME, "_dependencies_offset") /* of what is behind them */                       \
	X(COMPILED_SCOPES, OPTIONAL, "CompiledMethod", "_scopes_data_begin")                                           \
	X(COMPILED_SCOPES_OFFSET, OPTIONAL, "nmethod", "_scopes_data_offset")                                          \
	X(COMPILED_IMMUTABLE, OPTIONAL, SAME, "_immutable_data")                                                       \
	X(COMPILED_METADATA_OFFSET, OPTIONAL, SAME, "_metadata_offset")                                                \
	X(COMPILED_DEOPT, OPTIONAL, "CompiledMethod", "_deopt_handler_begin")                                          \
	X(COMPILED_DEOPT_OFFSET, OPTIONAL, "nmethod", "_deopt_handler_offset")                                         \
	X(COMPILED_ORIGINAL_PC, OPTIONAL, SAME, "_orig_pc_offset")                                                     \
	X(METHOD_CONST, NEEDED, "Method", "_constMethod")                                                              \
	X(CONST_POOL, NEEDED, "ConstMethod", "_constants")                                                             \
	X(CONST_NAME, NEEDED, SAME, "_name_index")                                                                     \
	X(CONST_FLAGS, NEEDED, SAME, "_flags")                                                                         \
	X(CONST_CODE_BYTES, NEEDED, SAME, "_code_size")                                                                \
	X(POOL_HOLDER, NEEDED, "ConstantPool", "_pool_holder")                                                         \
	X(POOL_LENGTH, NEEDED, SAME, "_length")                                                                        \
	X(POOL_FILE, OPTIONAL, SAME, "_source_file_name_index")             /* either this ... */                      \
	X(CLASS_FILE, OPTIONAL, "InstanceKlass", "_source_file_name_index") /* ... or this */                          \
	X(CLASS_NAME, NEEDED, "Klass", "_name")                                                                        \
	X(SYMBOL_LENGTH, NEEDED, "Symbol", "_length")                                                                  \
	X(SYMBOL_TEXT, NEEDED, SAME, "_body")                                                                          \
	X(QUEUE_BUFFER, NEEDED, "StubQueue", "_stub_buffer")                                                           \
	X(QUEUE_BEGIN, NEEDED, SAME, "_queue_begin")                                                                   \
	X(QUEUE_NR, NEEDED, SAME, "_number_of_stubs")                                                                  \
	X(CODELET_BYTES, NEEDED, "InterpreterCodelet", "_size")                                                        \
	X(CODELET_TEXT, NEEDED, SAME, "_description")                                                                  \
	X(PC_OFFSET, NEEDED, "PcDesc", "_pc_offset")                                                                   \
	X(PC_SCOPE, NEEDED, SAME, "_scope_decode_offset")                                                              \
	X(THREAD_ANCHOR, NEEDED, "JavaThread", "_anchor")                                                              \
	X(THREAD_OS, NEEDED, SAME, "_osthread")                                                                        \
	X(OS_PTHREAD, NEEDED, "OSThread", "_pthread_id")                                                               \
	X(ANCHOR_SP, NEEDED, "JavaFrameAnchor", "_last_Java_sp")                                                       \
	X(ANCHOR_PC, NEEDED, SAME, "_last_Java_pc")                                                                    \
	X(ANCHOR_FP, NEEDED, SAME, "_last_Java_fp")                                                                    \
	/* Sizes of types: the last rows. */                                                                           \
	X(BLOCK_BYTES, NEEDED, "HeapBlock", "")                                                                        \
	X(POOL_BYTES, NEEDED, "ConstantPool", "")                                                                      \
	X(CONST_BYTES, NEEDED, "ConstMethod", "")                                                                      \
	X(PC_BYTES, NEEDED, "PcDesc", "")

#define CSINK_HOTSPOT_ID(field, ...) HOTSPOT_##field,
enum csink_hotspot_field { CSINK_HOTSPOT_FIELDS(CSINK_HOTSPOT_ID) HOTSPOT_NR_FIELDS };

enum { HOTSPOT_MAX_HEAPS = 8, HOTSPOT_MAX_ENTRIES = 96 };

/* What HotSpot counts: unloaded classes; safepoints, as one begins; and the time until all threads have stopped for it,
 * which is added before anything is done there. */
enum csink_hotspot_counter { HOTSPOT_UNLOADED, HOTSPOT_SAFEPOINTS, HOTSPOT_STOP_TIME, HOTSPOT_NR_COUNTERS };

/* The virtual machine of this process: written once, before it is published. */
struct csink_hotspot {
	uint64_t at[HOTSPOT_NR_FIELDS];   /* address of a variable, offset of a field, or size of a type */
	uint8_t bytes[HOTSPOT_NR_FIELDS]; /* of the variable or field; 0: this version does not have it */
	uint32_t version;
	uint32_t nr_heaps, nr_entries;
	uintptr_t heaps[HOTSPOT_MAX_HEAPS];
	uintptr_t low, high;                     /* all code is between these */
	bool is_read;                            /* the fields are known, and none is missing */
	bool is_whole;                           /* nothing of it is looked for any more */
	uintptr_t counters[HOTSPOT_NR_COUNTERS]; /* where HotSpot counts; 0: nowhere */
	uintptr_t archive, archive_bytes;        /* methods in it are never freed; 0, 0: there is no archive */
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

enum { HOTSPOT_THAW_AT = 9 }; /* of "StubRoutines (continuation stubs)": the word by which it is known */

/**
 * Stubs that bring frames of a virtual thread back from the heap. What is between these stubs and the frame that runs
 * the virtual thread is being written; the frame pointer is that frame's.
 */
static inline bool csink_hotspot_is_thaw(const struct csink_hotspot_blob *blob)
{
	uint64_t name = blob->kind == HOTSPOT_STUBS ? csink_load_known(blob->name + HOTSPOT_THAW_AT) : 0;

	return !memcmp(&name, "nes (con", sizeof(name)); /* StubRoutines (continuation */
}

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
