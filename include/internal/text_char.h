/*
 * How foreign text is shown, which another program or another user chose: one rule for all messages and formats.
 *
 * Well-formed, visible UTF-8 is shown unchanged. Control characters, invisible and direction-changing ones
 * (Unicode's bidirectional controls, zero-width characters, line separators) and bytes that are no UTF-8 are written as
 * \xNN, each byte of them. A backslash stays as it is: a text may pass twice.
 */
#ifndef CSINK_INTERNAL_TEXT_CHAR_H
#define CSINK_INTERNAL_TEXT_CHAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSINK_TEXT_ESCAPED 16 /* bytes that one character takes at most */

/* One character of a text, or one byte of it that belongs to no well-formed character. */
struct csink_text_char {
	uint32_t bytes;
	uint32_t code; /* its code point; of an invalid byte, the byte */
	bool is_valid; /* well-formed UTF-8 */
	bool is_shown; /* and shown as it is */
};

/** The character at `at`, which is no NUL, within `text`. Context: any. */
struct csink_text_char csink_text_next(const char *text, const char *at);

/**
 * The number of bytes at the beginning of a text that are printable ASCII and that no output form escapes, up to the
 * first character of `special`. Context: any.
 */
size_t csink_text_plain(const char *text, const char *special);

/**
 * What a character takes when printed: itself, or "\xNN" for each byte. At most 16 bytes, and no NUL
 * behind them. Returns the number of bytes. Context: any.
 */
uint32_t csink_text_escape(char *buf, const char *at, const struct csink_text_char *c);

/** Copy a text into a line of a message; if it does not fit, cut it between characters. Returns its length in bytes.
 * Context: any. */
size_t csink_text_line(char *buf, size_t size, const char *text);

#endif
