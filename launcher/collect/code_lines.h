/* Lines of interpreted functions, from the tables that their compilers left. */
#ifndef CSINK_CODE_LINES_H
#define CSINK_CODE_LINES_H

#include <stdint.h>

#include "include/internal/recording.h"

/** The line of a position in a function: 0: its compiler gave none, or the table is damaged. Context: any. */
int64_t csink_code_line(const struct csink_rec_code *code, uint32_t position);

#endif
