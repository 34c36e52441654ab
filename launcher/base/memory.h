/* How much memory a reader of files may use. Context: thread. */
#ifndef CSINK_MEMORY_H
#define CSINK_MEMORY_H

#include <stdint.h>

/**
 * Bytes that this process may have: the machine's memory, or less where its control group (of the root that it sees) or
 * RLIMIT_AS or RLIMIT_DATA allow less. Never 0.
 */
uint64_t csink_memory_bytes(void);

#endif
