/*
 * The table that every program by Go has loaded (.gopclntab): functions with their names, files, lines, inlined calls,
 * and how far the stack pointer is from where it was when the function was called. Go 1.16 to 1.26, stripped or not.
 *
 * The table belongs to a foreign file, so it is untrusted: every offset is checked, every loop has an end, and what
 * makes no sense is no information. Nothing here allocates, locks or calls libc but for functions of
 * <string.h>. Context: signal.
 *
 *   go_table.c    the header, functions, values by address
 *   go_rule.c     how frames are left
 *   go_inlines.c  inlined calls, and where their base is
 */
#ifndef CSINK_GO_TABLE_H
#define CSINK_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the program, by the program's own addresses. */
struct csink_go_bytes {
	uint64_t vaddr;
	const uint8_t *at;
	uint64_t nr;
};

struct csink_go_program {
	const struct csink_go_bytes *parts; /* of the file: its loaded segments, as far as they are at hand */
	uint32_t nr_parts;
};

enum csink_go_form { CSINK_GO_1_16, CSINK_GO_1_18, CSINK_GO_1_20 };

struct csink_go_table {
	struct csink_go_bytes all; /* from the header on */
	enum csink_go_form form;
	uint8_t quantum, word; /* bytes of an instruction at least, of a pointer */
	uint64_t nr_functions;
	uint64_t text; /* what functions' starts are relative to; 0 where they are addresses */
	/* Of parts of the table, from the header. */
	uint64_t names, units, files, values, functions;
	/* Where inlined calls are counted from; they are not looked for unless has_inlines is set. */
	struct csink_go_bytes inlines;
	bool has_inlines;
};

struct csink_go_function {
	uint64_t start, end;
	uint64_t data; /* of what there are values for, from the header */
	uint32_t name, sp, file, line, unit, start_line, nr_values, nr_data;
	uint8_t id, flag;
};

/** Is that where a table's header is? Bytes are those that follow. For finding one in a program without sections. */
bool csink_go_is_header(const uint8_t *at, uint64_t bytes);

/**
 * Open the table whose header is at an address of the program.
 * The program's bytes stay as long as the table. False: there is none that is understood.
 */
bool csink_go_open(struct csink_go_table *table, const struct csink_go_program *program, uint64_t header);

/**
 * Open a table that csink_go_open() has opened before, by what it found then.
 * @all   the program's bytes from the header on, @text the table's. False: it is not there any more.
 */
bool csink_go_reopen(struct csink_go_table *table, const struct csink_go_bytes *all, uint64_t text);

/** The function that an address is in. */
bool csink_go_find(const struct csink_go_table *table, uint64_t pc, struct csink_go_function *function);

/** The function by its number, below nr_functions. */
bool csink_go_nth(const struct csink_go_table *table, uint64_t nr, struct csink_go_function *function);

/** Its name, which ends in the table; NULL: it has none. */
const char *csink_go_name(const struct csink_go_table *table, uint32_t name);

/** Bytes between the stack pointer and the return address, before the instruction at pc. False: not known. */
bool csink_go_sp_offset(const struct csink_go_table *table, const struct csink_go_function *function, uint64_t pc,
			int32_t *bytes);

/* How a frame of a function is left. */
enum csink_go_role {
	CSINK_GO_OUTERMOST = 1,  /* nothing called the function: a goroutine or a thread begins with it */
	CSINK_GO_SWITCHES = 2,   /* the function may have gone to another stack meanwhile */
	CSINK_GO_SCHEDULES = 4,  /* what ran on that stack may run on another thread by now */
	CSINK_GO_INTERRUPTS = 8, /* the return address is that of an interrupted instruction, not one behind a call */
	CSINK_GO_CALLS_C = 16,   /* it has gone from a goroutine's stack to the thread's, for functions of C */
	CSINK_GO_GROWS = 32,     /* the same, to make the stack of the function larger that has called it */
	CSINK_GO_HANDLES = 64,   /* a signal's handler: outermost on its stack, unless one knows what it interrupted */
	CSINK_GO_RETURNS = 128,  /* a signal's handler returns there, and it to what the signal interrupted */
};

struct csink_go_rule {
	uint64_t start; /* of the function */
	int32_t offset; /* bytes from the stack pointer to the return address */
	uint32_t role;  /* bits of enum csink_go_role */
};

/** The rule at an address. False: no function of Go is there, or its frame is not known. */
bool csink_go_rule_at(const struct csink_go_table *table, uint64_t pc, struct csink_go_rule *rule);

/* A call at an address: innermost first. */
struct csink_go_frame {
	const char *name, *file; /* NULL: not known */
	int32_t line;            /* of file; 0: not known */
	uint32_t start_line;     /* of the function; 0: not known */
};

/** Look for the base of inlined calls in the program. */
void csink_go_find_inlines(struct csink_go_table *table, const struct csink_go_program *program);

/** The calls that are at an address of the function: those that are inlined, then the function. Returns how many. */
uint32_t csink_go_frames(const struct csink_go_table *table, const struct csink_go_function *function, uint64_t pc,
			 struct csink_go_frame *frames, uint32_t max_frames);

/* ---- what go_*.c share ---- */

/** A value that a function has for an address; its table is at an offset. False: none. */
bool csink_go_value(const struct csink_go_table *table, const struct csink_go_function *function, uint32_t at,
		    uint64_t pc, int32_t *value);

/** A number of four bytes, or of a pointer, where it is in the part; false: beyond its end. */
bool csink_go_load(const struct csink_go_bytes *part, uint64_t at, uint32_t bytes, uint64_t *value);

/** The table of numbered values of a function (PCDATA); 0: none. */
uint32_t csink_go_values_of(const struct csink_go_table *table, const struct csink_go_function *function,
			    uint32_t number);

/** What a function has beside values (FUNCDATA), by number: an offset from their base, or an address. False: none. */
bool csink_go_data_of(const struct csink_go_table *table, const struct csink_go_function *function, uint32_t number,
		      uint64_t *data);

/** The name of a file, by a function's number of it; NULL: none. */
const char *csink_go_file(const struct csink_go_table *table, const struct csink_go_function *function, int32_t file);

/** The part that has an address, from there on. False: none has. */
bool csink_go_part(const struct csink_go_program *program, uint64_t vaddr, struct csink_go_bytes *part);

/** The record of the runtime that leads to the table (moduledata). False: it was not found. */
bool csink_go_module(const struct csink_go_table *table, const struct csink_go_program *program,
		     struct csink_go_bytes *module);

enum {
	CSINK_GO_WORD_FTAB = 16, /* of the module: the table of functions, then how many they are */
	CSINK_GO_WORD_TEXT = 22,
};

#endif
