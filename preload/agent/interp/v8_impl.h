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

/* Where a frame's function is. All zero: its line is not known. */
struct csink_v8_place {
	uint64_t bytecodes, positions; /* objects: the function's bytecodes, and the table of their places */
	uint64_t code, offsets;        /* objects: compiled code, a bytecode after the other, and its table; or 0 */
	uint32_t nr_bytecodes, nr_positions, nr_offsets; /* bytes */
	uint32_t position;                               /* in the bytecodes; in the code if there is such */
};

/* V8's own code, in its place or in a copy: the interpreter, where the frame of a function has bytecodes. v8_lines.c */
bool csink_v8_is_own_code(const struct csink_interp_walk *walk, uintptr_t pc);

/* Where the function of this frame is; what describes the function is @shared. v8_lines.c */
void csink_v8_find_place(struct csink_interp_walk *walk, const struct csink_v8_frame *frame, uint64_t shared,
			 struct csink_v8_place *place);

/* Add the tables that the place's line is found by to a function's line table. v8_lines.c */
void csink_v8_add_tables(struct csink_interp_walk *walk, const struct csink_v8_place *place,
			 struct csink_code_source *to);

#endif
