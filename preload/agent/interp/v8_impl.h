/* What the files about V8 share: where its fields are, and loads of its objects. All of it runs in handlers. */
#ifndef CSINK_V8_IMPL_H
#define CSINK_V8_IMPL_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/agent/interp/interp.h"

enum { CSINK_V8_TAG = 1 }; /* set in pointers to objects; numbers (Smi) have their value in the upper half */

/* Values that V8 exports, in the order of exports[] in v8.c. */
struct csink_v8_layout {
	uint16_t shared, name, script, flags, first_slot, type_shared, type_script, type_scope, type_first, type_last;
	uint16_t tagged_bytes, fp_function;
	/* Of lines alone; 0: not exported. */
	uint16_t type_bytecodes, type_bytes, type_code, bytecodes; /* the last: where an array's bytecodes begin */
	uint16_t version, minor;                                   /* of V8 */
	uint16_t type_instructions;                                /* what compiled code lies in; 0: not exported */
	uint16_t frame_wasm; /* the number in frames of WebAssembly; 0: not exported */
};

/* What no version exports: offsets, bytes, from the beginning of an object, but where another unit is given. */
struct csink_v8_version {
	uint16_t major, minor;
	uint16_t positions;                    /* in an array of bytecodes: their places */
	uint16_t code_bytecodes, code_offsets; /* in code: what it was made of, how much of it each bytecode became */
	uint16_t code_start, code_size;
	bool is_code_inside; /* the code begins there; else its address is there */
	/* Of optimized code: see v8_inlines.c. */
	uint8_t header;            /* of the object that the instructions lie in, before them */
	uint8_t code_back;         /* before the instructions: their code; 0: the object that they lie in is it */
	uint8_t code_states;       /* in code: the states in which its calls return */
	uint8_t first_state;       /* where they begin there; an index, as the next one */
	uint8_t literals;          /* where what they refer to is */
	uint8_t frame, last_frame; /* operations that begin the frame of a function: from, to */
	uint8_t begin;             /* the operation that a state begins with */
	uint8_t table_header;      /* bytes of the table of calls before its first entry */
	uint8_t code_flags;        /* in code: its flags, with its kind */
	uint8_t maglev, regexp;    /* the kinds of code that Maglev makes, and that regular expressions become */
	uint8_t nr_operations, operand_counts; /* the latter: see csink_v8_operand_counts() */
};

static inline const struct csink_v8_layout *csink_v8_layout(const struct csink_interp_walk *walk)
{
	return (const struct csink_v8_layout *)walk->interpreter->data;
}

/* A word; *ok becomes false if it cannot be read, and nothing is read if it is false. */
static inline uint64_t csink_v8_word(struct csink_interp_walk *walk, uintptr_t at, bool *ok)
{
	uint64_t value = 0;

	*ok = *ok && csink_interp_load(walk, at, &value);
	return value;
}

/* The type of an object, which *object is the address of: of its new copy if it was moved. -1: it is none. */
int csink_v8_type(struct csink_interp_walk *walk, uint64_t *object);

/* A frame of the native stack. */
struct csink_v8_frame {
	uintptr_t begin, end; /* of its memory: from the stack pointer to behind its return address */
	uintptr_t pc;
	bool is_exact;     /* pc is the instruction itself, else a return address */
	bool is_innermost; /* nothing else is above it than a frame of V8's own code, if any */
};

/* Where a frame's function is. No positions, and position 0: its line is not known. */
struct csink_v8_place {
	uint64_t stored; /* what the frame has for the bytecodes; of an object that was moved its old place */
	uint64_t bytecodes, positions; /* objects: the function's bytecodes, and the table of their places */
	uint64_t code, offsets;        /* objects: compiled code, a bytecode after the other, and its table; or 0 */
	uint32_t nr_bytecodes, nr_positions, nr_offsets; /* bytes */
	uint32_t position;                               /* in the bytecodes; in the code if there is such */
};

/* V8's own code, in its place or in a copy: the interpreter, where the frame of a function has bytecodes. v8_lines.c */
bool csink_v8_is_own_code(const struct csink_interp_walk *walk, uintptr_t pc);

/* What a thread keeps of a function's tables. All zero: nothing is known. */
struct csink_v8_tables {
	uint64_t not_code;      /* what describes the function had this in place of code that is not optimized */
	uint64_t not_code_walk; /* the number of the walk in which that was read last */
	uint64_t walk;          /* that in which the bytecodes were read or compared last */
	uint64_t words[2];      /* of the bytecodes: compared */
	struct csink_v8_place found;
};

/**
 * Where the function of this frame is; what describes the function is @shared.
 * @tables  what earlier frames of the function had; set for later ones.
 * v8_lines.c
 */
void csink_v8_find_place(struct csink_interp_walk *walk, const struct csink_v8_frame *frame, uint64_t shared,
			 struct csink_v8_tables *tables, struct csink_v8_place *place);

/* What this version of V8 does not export. NULL: not known. v8_lines.c */
const struct csink_v8_version *csink_v8_version(const struct csink_v8_layout *layout);

/* How many operands each operation has, a digit. v8_lines.c */
const char *csink_v8_operand_counts(const struct csink_v8_version *version);

/* Where the bytecode at an offset is, of the function that @shared describes. v8_lines.c */
void csink_v8_place_at(struct csink_interp_walk *walk, uint64_t shared, uint32_t offset, struct csink_v8_place *place);

enum { CSINK_V8_MAX_INLINED = 16 }; /* functions that one native frame runs, which are kept */

/* A native frame of optimized code, as its thread keeps it. */
struct csink_v8_kept {
	uintptr_t pc, start;       /* a return address, and where its code begins; 0: it is in none */
	uint64_t code;             /* an object: what describes that code */
	uint64_t states, identity; /* an object of that code, and of the function that was compiled: compared */
	uint32_t nr;               /* 0: no functions are known of it */
	uint32_t recording;        /* csink_code_ids_nr_resets then */
	uint64_t frames[CSINK_V8_MAX_INLINED]; /* as in stacks, innermost first */
};

/* A function that runs in a frame of optimized code. */
struct csink_v8_inlined {
	uint64_t shared; /* what describes it */
	uint32_t offset; /* in its bytecodes */
};

/**
 * The functions that a native frame of optimized code runs, innermost first, the compiled one last.
 * @kept  what the thread keeps of this frame. Where it is of another one, it is set, but for the functions.
 * Returns how many, 0: not known; -1: they are in @kept. v8_inlines.c
 */
int csink_v8_find_inlined(struct csink_interp_walk *walk, uintptr_t pc, uint64_t identity, struct csink_v8_kept *kept,
			  struct csink_v8_inlined *inlined);

/* Is the address in code that a regular expression was compiled to? v8_inlines.c */
bool csink_v8_is_regexp(struct csink_interp_walk *walk, uintptr_t pc);

/* Add the tables that the place's line is found by to a function's line table. v8_lines.c */
void csink_v8_add_tables(struct csink_interp_walk *walk, const struct csink_v8_place *place,
			 struct csink_code_source *to);

#endif
