/* Limits on what reading names from a file may cost. The file is not trusted. Context: thread. */
#ifndef CSINK_SYMBOLS_LIMITS_H
#define CSINK_SYMBOLS_LIMITS_H

#include <libelf.h>
#include <stdbool.h>

/** Names are compared and kept as far as this, in bytes. */
#define CSINK_MAX_SYMBOL_NAME 8192

/** Whether a table of names is compressed, as no tool makes them: libelf would unpack it at the first name. */
bool csink_elf_hides_names(Elf *elf);

/** Whether compressed sections say that they unpack to more than 64 MiB and 32 times what they have in the file. */
bool csink_elf_is_bomb(Elf *elf);

/**
 * From here to the end, reading a mapped file behind its end gives zeros instead of SIGBUS: files may be truncated
 * while they are read. Nests. The launcher's own thread alone.
 */
void csink_cut_guard_begin(void);

/** Returns whether that happened since the outermost begin. */
bool csink_cut_guard_end(void);

/**
 * Whether a file that another file names exists and must not be opened: it is not a regular file, or unpacks to too
 * much. libdw opens such a file by itself, and would wait for the other end of a FIFO.
 * @dir  the directory for a relative name
 */
bool csink_is_trap(const char *dir, const char *name);

/** The same for a name that is relative to the directory of `file`. */
bool csink_is_trap_beside(const char *file, const char *name);

#endif
