/* Lines of interpreted functions, from the line tables that their compilers wrote. */
#ifndef CSINK_CODE_LINES_H
#define CSINK_CODE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "include/internal/recording_format.h"

/**
 * Returns the line of a position in a function; 0 if its compiler gave none, or the table is damaged. Without a table,
 * and at CSINK_CODE_NOT_BEGUN, it is the function's first line.
 * @code  checked by csink_recorded_read().
 * Context: any.
 */
int64_t csink_code_line(const struct csink_rec_code *code, uint32_t position);

/** The language of a function; NULL: none that is known. Context: any. */
const char *csink_code_language(const struct csink_rec_code *code);

/** Has the recording no first line of a function, but its table? Context: any. */
bool csink_code_has_no_first_line(const struct csink_rec_code *code);

#endif
