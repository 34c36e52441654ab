/* Demangling with bounded time and memory for each name and file. Context: thread; not reentrant. */
#ifndef CSINK_DEMANGLE_H
#define CSINK_DEMANGLE_H

#include <stdbool.h>

/* The longest result. 200 bytes of a name can stand for gigabytes, as each part may repeat all that came before. */
#define CSINK_DEMANGLED_BYTES (64 * 1024)

/** Begin with the names of a new file: what the names of the last file cost no longer counts. */
void csink_demangle_begin(void);

/** How many names since then were left mangled, because they or those before them exceeded a limit. */
unsigned csink_demangle_refused(void);

/**
 * The readable form of a name of C++, Rust or D.
 * @options  libiberty's DMGL_*.
 * @refused  NULL, or set where it is mangled but takes more than CSINK_DEMANGLED_BYTES or 0.2 s of processor time.
 * Returns a malloc'ed string, or NULL: not mangled, refused, or no memory.
 */
char *csink_demangle(const char *symbol, int options, bool *refused);

#endif
