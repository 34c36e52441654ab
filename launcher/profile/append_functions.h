/* The functions of a place in a stack, as text. */
#ifndef CSINK_APPEND_FUNCTIONS_H
#define CSINK_APPEND_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

struct csink_profile;

/**
 * Append the functions of a location, the innermost first, with those that are inlined there: "take < work < main".
 * @most  how many of them.
 * Returns how many more may follow, of the location's callers. Context: any.
 */
uint32_t csink_append_functions(const struct csink_profile *p, uint32_t location, uint32_t most, char *text,
				size_t size);

/**
 * Set a text to the innermost functions of a stack, without those of the standard libraries of C++ and Rust that are
 * innermost: of std::lock_guard<std::mutex>, the function that has it. If there are no others, these.
 */
void csink_innermost_functions(const struct csink_profile *p, const uint32_t *locations, uint32_t nr, uint32_t most,
			       char *text, size_t size);

#endif
