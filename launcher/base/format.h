/* Numbers and texts for people. */
#ifndef CSINK_FORMAT_H
#define CSINK_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* How a column of values is written: divided by scale, with that many decimals, and the unit behind. */
struct csink_scale {
	double divisor;
	int decimals;
	const char *unit; /* "ms"; "" none */
};

/** The scale at which `largest`, in a pprof unit ("nanoseconds", "bytes", "count", ...), has one to three digits. */
struct csink_scale csink_scale_for(int64_t largest, const char *unit);

/** Write a value at a scale, "12.345 ms". Returns what snprintf does. */
int csink_format_value(char *buf, size_t size, int64_t value, const struct csink_scale *scale);

/* A value as text, for the expression that asks for it: csink_amount(n, "bytes").text. */
struct csink_amount {
	char text[64];
};

/** A value at a scale, "12.345 ms"; at the scale that fits it, the unit as above. */
struct csink_amount csink_amount_at(int64_t value, const struct csink_scale *scale);
struct csink_amount csink_amount(int64_t value, const char *unit);

/** Write a whole number with a comma between thousands, "1,234,567". */
int csink_format_count(char *buf, size_t size, uint64_t value);

/**
 * Copy a foreign text as csink_text_print does it (text.h); longer than `columns` characters (0: no limit), or than the
 * buffer, it is cut between characters, and ends in "...".
 * @size  at least 4.
 * Returns the number of characters (not bytes).
 */
uint32_t csink_format_text(char *buf, size_t size, const char *text, uint32_t columns);

/**
 * The same for a function's name: where it is too long, template arguments give way first, "sort<...>" (of Rust whole,
 * "fold"), then its front, for the last part says most.
 */
uint32_t csink_format_function(char *buf, size_t size, const char *name, uint32_t columns);

/** Append a word as a shell reads it: between quotes where it must be. What does not fit is cut. */
void csink_append_word(char *buf, size_t size, const char *word);

/** Append to the text that is in a buffer; what does not fit is cut. Returns the text's length. */
__attribute__((format(printf, 3, 4))) size_t csink_append(char *buf, size_t size, const char *fmt, ...);

#endif
