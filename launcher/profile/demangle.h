/* Mangled names made readable, whatever the name: what one of them may cost is bounded. Context: thread; not reentrant.
 */
#ifndef CSINK_LAUNCHER_DEMANGLE_H
#define CSINK_LAUNCHER_DEMANGLE_H

#include <stdbool.h>

/* The longest result. 200 bytes of a name can stand for gigabytes, as each part may repeat all that came before. */
#define CSINK_DEMANGLED_BYTES (64 * 1024)

/** A new file's names: what those of the file before cost no longer counts. */
void csink_demangle_begin(void);

/** How many names since then were left mangled because of what they, or those before them, would have cost. */
unsigned csink_demangle_refused(void);

/**
 * The readable form of a name of C++, Rust or D.
 * @options  libiberty's DMGL_*.
 * @refused  NULL, or set where it is mangled but takes more than CSINK_DEMANGLED_BYTES or 0.2 s of processor time.
 * Returns a malloc'ed string, or NULL: not mangled, refused, or no memory.
 */
char *csink_demangle(const char *symbol, int options, bool *refused);

#endif
