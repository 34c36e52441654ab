/* Where a position in a function of JavaScript is in its script's source. */
#ifndef CSINK_V8_POSITIONS_H
#define CSINK_V8_POSITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/recording_format.h"

/* In UTF-16 code units of the script's source. */
struct csink_v8_source {
	uint32_t start;  /* of the function */
	uint32_t length; /* of the source; 0: not known */
	uint32_t place;  /* of the position, if is_known */
	bool is_known;   /* false: the function has no table of places, or the position is in none of it */
};

/**
 * @code      a function of kind CSINK_CODE_V8, checked by csink_recorded_read(). Its table may have any content.
 * @position  as struct csink_rec_v8_lines has it.
 * Context: any.
 */
struct csink_v8_source csink_v8_source(const struct csink_rec_code *code, uint32_t position);

#endif
