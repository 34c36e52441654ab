/*
 * The terminal of `countersink top`: keys without echo, a screen that is drawn as a whole, and all as it was at the
 * end, by whatever signal. Sequences that every terminal of today has, by ECMA-48 and xterm; no library.
 */
#ifndef CSINK_TOP_TERMINAL_H
#define CSINK_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

/* Keys that are no character. */
enum csink_top_key {
	CSINK_KEY_NONE = 0,
	CSINK_KEY_ENTER = '\r',
	CSINK_KEY_ERASE = 0x7f,
	CSINK_KEY_UP = 0x100,
	CSINK_KEY_DOWN,
	CSINK_KEY_RIGHT,
	CSINK_KEY_LEFT,
	CSINK_KEY_HOME,
	CSINK_KEY_END,
	CSINK_KEY_PAGE_UP,
	CSINK_KEY_PAGE_DOWN,
};

/* Where a key's sequence has been read to. */
struct csink_top_keys {
	enum { CSINK_KEYS_PLAIN, CSINK_KEYS_ESCAPE, CSINK_KEYS_SEQUENCE } at;
	int number; /* the sequence's first */
	bool is_modified;
};

struct csink_top_terminal {
	struct termios before;
	bool is_open;    /* the terminal is ours: to be given back */
	bool has_styles; /* bold and reverse video may be used */
	uint32_t columns, rows;
};

/** Is there a terminal for it? Returns 0, or -ENOTTY and why, one line. */
int csink_top_terminal_find(struct csink_top_terminal *terminal, char *why, size_t why_len);

/** Take the terminal: its own screen, no echo, no cursor; and give it back as it was. Each may be called again. */
void csink_top_terminal_enter(struct csink_top_terminal *terminal);
void csink_top_terminal_leave(struct csink_top_terminal *terminal);

/** Ask for its size. */
void csink_top_terminal_measure(struct csink_top_terminal *terminal);

/** Write a whole picture. Returns 0 or -errno. */
int csink_top_terminal_write(const char *text, size_t bytes);

/** What a byte of input completes: a character, or enum csink_top_key; CSINK_KEY_NONE: nothing yet. Context: any. */
int csink_top_keys_feed(struct csink_top_keys *keys, unsigned char byte);

#endif
