/* Lists of words: command lines and names. Context: any; they allocate. */
#ifndef CSINK_SUITE_WORDS_H
#define CSINK_SUITE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* all is ended by NULL, or is NULL where there are none. */
struct csink_suite_words {
	char **all;
	uint32_t nr, cap;
	bool lacked_memory; /* some word is missing */
};

/** Append a word: printed; of len bytes; all of a list that ends in NULL. Lack of memory is remembered. */
__attribute__((format(printf, 2, 3))) void csink_suite_put(struct csink_suite_words *words, const char *fmt, ...);
void csink_suite_put_bytes(struct csink_suite_words *words, const char *text, size_t len);
void csink_suite_put_all(struct csink_suite_words *words, char *const *all);

/** Append a shell that runs a line. */
void csink_suite_put_shell(struct csink_suite_words *words, const char *line);

/** Append a word that becomes the list's: malloc'ed, or NULL for lack of memory. */
void csink_suite_put_own(struct csink_suite_words *words, char *word);

void csink_suite_words_free(struct csink_suite_words *words);

/** A copy in which each byte of `special` has a backslash before it. malloc'ed; NULL without memory. */
char *csink_suite_escape(const char *text, const char *special);

/** A copy in which {case} and {n} stand for a name and a number. malloc'ed; NULL without memory. */
char *csink_suite_fill_in(const char *word, const char *name, uint64_t n);

/**
 * Split a command line into words as csink_gate_command_split() does, in which {case} and {n} may stand.
 * @shell  set to whether it takes a shell: then the result is NULL.
 * Returns one allocation; NULL with errno.
 */
char **csink_suite_split(const char *line, bool *shell);

/** The next line from *at on, without its end; *at is moved behind it. NULL: there is none. */
const char *csink_suite_line(const char **at, size_t *len);

#endif
