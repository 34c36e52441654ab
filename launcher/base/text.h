/*
 * The printers for foreign text: names of functions, files, threads and events, command lines, notes of a recording,
 * all that another program or another user chose. One printer an output format; no other file writes such a text itself
 * (tests/cli/foreign_text.t holds that).
 *
 * What is shown as it is, and what as \xNN, is one rule (text_char.h). A format with a lossless escape of its
 * own (JSON) uses that for characters, and \xNN for bytes that are no UTF-8.
 */
#ifndef CSINK_TEXT_H
#define CSINK_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "include/internal/text_char.h"

enum csink_text_form {
	CSINK_TEXT_LINE,            /* a part of a line of text: a terminal, a comment of TAP */
	CSINK_TEXT_FOLDED,          /* a frame of folded stacks: ';' ends one */
	CSINK_TEXT_CALLGRIND,       /* a value in a line of callgrind's: a number in '()' comes before a name */
	CSINK_TEXT_TAP,             /* a description: '#' begins a directive */
	CSINK_TEXT_YAML,            /* between double quotes */
	CSINK_TEXT_XML,             /* content, or a value between double quotes; HTML too */
	CSINK_TEXT_MARKDOWN,        /* inline: no mark-up, no mention, no reference, no link of its own */
	CSINK_TEXT_GITHUB,          /* the message of a workflow command */
	CSINK_TEXT_GITHUB_PROPERTY, /* a property's value */
	CSINK_NR_TEXT_FORMS
};

/** Write a text in a form. Context: thread. */
void csink_text_put(FILE *out, enum csink_text_form form, const char *text);

/**
 * Write a text as a cell of comma-separated values: quoted where it must be, and with "'" before what a spreadsheet
 * would compute. Numbers are written as numbers by the caller; a text that looks like a negative one is a text.
 */
void csink_text_put_csv(FILE *out, const char *text);

/**
 * printf, in which every %s and %c is a foreign text and printed by CSINK_TEXT_LINE's rule; the format's own text
 * stays. A precision of %s counts bytes of the text, a width counts characters of what is printed. Supported: d i u x X
 * o c s p f e g a %, with flags, width, precision and lengths. Returns what is written, in bytes. Context: thread.
 */
__attribute__((format(printf, 2, 3))) size_t csink_text_print(FILE *out, const char *fmt, ...);

/** The same in another form than a line's. Widths and precisions of %s are as above, counted in what a line would be.
 */
__attribute__((format(printf, 3, 4))) void csink_text_print_as(FILE *out, enum csink_text_form form, const char *fmt,
							       ...);

/**
 * The same into a buffer: what does not fit is cut between characters and ends in "...".
 * Returns the length of what is there, less than size. Context: thread.
 */
size_t csink_text_vformat(char *buf, size_t size, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/**
 * A text of len bytes, with a NUL behind them, as valid UTF-8: bytes that are none become "\xNN", all others stay.
 * @buf  receives it, without a NUL; NULL: it is only measured.
 * Returns its length: len where the text is valid as it is. Context: thread.
 */
size_t csink_text_utf8(char *buf, const char *text, size_t len);

/** Undo %NN, as in URLs, in place. Returns the new length; "%00" becomes a NUL within the text. Context: thread. */
size_t csink_text_undo_percent(char *text);

#endif
