/* How an input of fuzz_lines begins; then text_bytes of .debug_line_str, then .debug_line. Written by lines_corpus. */
#ifndef CSINK_TESTS_FUZZ_LINES_H
#define CSINK_TESTS_FUZZ_LINES_H

#include <stdint.h>

struct fuzz_lines_head {
	uint64_t first; /* the addresses that are wanted: from here, `step` apart */
	uint16_t step;
	uint16_t text_bytes;
	uint16_t others; /* bit i: want i is of another unit, and its line none of this table's */
	uint16_t flags;  /* 1: the unit does not say where it was compiled */
};

#endif
