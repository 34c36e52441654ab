/* Limits of what a file that names come from may cost: it may be anybody's. Context: thread. */
#ifndef CSINK_LAUNCHER_SYMBOLS_LIMITS_H
#define CSINK_LAUNCHER_SYMBOLS_LIMITS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

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
 * Whether a file that another file names is there, and is something else than a regular file, or unpacks to too much:
 * libdw would open it as it is, and wait for the other end of a FIFO.
 * @folder  that a relative name is counted from
 */
bool csink_is_trap(const char *folder, const char *name);

/** The same of a name that is counted from where `file` is. */
bool csink_is_trap_beside(const char *file, const char *name);

#endif
