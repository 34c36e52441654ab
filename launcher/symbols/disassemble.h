/* What a function's lines and instructions cost. */
#ifndef CSINK_DISASSEMBLE_H
#define CSINK_DISASSEMBLE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/profile/rows.h"

struct csink_annotated_line {
	csink_str_t file; /* of the profile; 0 not known */
	int64_t line;     /* 0 not known */
	int64_t self, total;
};

/* Of code that the function is in, be it inlined into others. */
struct csink_annotated_address {
	uint32_t mapping;
	uint64_t address; /* in the object's file, as its headers count */
	uint64_t offset;  /* in the file, bytes */
	int64_t self, total;
};

struct csink_annotation {
	struct csink_annotated_line *lines; /* by file, then line */
	uint32_t nr_lines, cap_lines;
	struct csink_annotated_address *addresses; /* by mapping, then offset; address is 0 until it is looked up */
	uint32_t nr_addresses, cap_addresses;
	int64_t self, total; /* of the functions */
	int64_t sum;         /* of the profile */
};

/**
 * Add up the samples of picked functions (by row of rows, which are functions of p) by line and by address.
 * Returns 0 (csink_annotation_free it) or -ENOMEM. Context: thread.
 */
int csink_annotation_build(struct csink_annotation *a, const struct csink_profile *p, const struct csink_rows *rows,
			   uint32_t type, const bool *picked);
void csink_annotation_free(struct csink_annotation *a);

/* An instruction range of a file. */
struct csink_code_range {
	uint64_t start, end; /* addresses as the file's headers count */
};

/** The address, as the headers count, at an offset of a file. Returns false if it is in no segment: *address is as it
 * was. */
bool csink_code_address(Elf *elf, uint64_t offset, uint64_t *address);

/**
 * Find the function of the symbol table that is at an offset of a file, and the address that the offset has there.
 * @build_id  lower-case hexadecimal, "": not checked
 * Returns 0, -ESTALE (another build), -ENOENT (no such symbol; *address is set), -ENOEXEC, or what opening gave.
 */
int csink_code_find(const char *path, const char *build_id, uint64_t offset, uint64_t *address,
		    struct csink_code_range *range);

#endif
