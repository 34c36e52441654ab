/*
 * What a program file is, and whether the library can be injected into it. The launcher asks before it starts its
 * command, the library before the program starts another one: also in a vfork child, so nothing here allocates, and the
 * kernel is called directly.
 */
#ifndef CSINK_PROGRAM_FILE_H
#define CSINK_PROGRAM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "include/internal/recording_format.h"

enum csink_program_kind {
	CSINK_PROGRAM_OWN,     /* as we are, as far as one can see: a file that cannot be read is taken for one */
	CSINK_PROGRAM_STATIC,  /* no loader, so nothing is preloaded; or no C library that could be interposed */
	CSINK_PROGRAM_BITS,    /* of another word size: its loader complains about our library on stderr */
	CSINK_PROGRAM_MACHINE, /* of another machine, run by an emulator: the same */
	CSINK_PROGRAM_LIBC,    /* of another C library: its loader fails on ours */
	CSINK_PROGRAM_OLDER,   /* of a glibc that is older than our library: the same */
	CSINK_NR_PROGRAM_KINDS,
};

/**
 * Open the file that the kernel is going to load for @path, through "#!" lines to the interpreter.
 * @dirfd  where a relative path begins, or AT_FDCWD.
 * @kind   is set in any case.
 * Returns an fd, close-on-exec, which the caller closes; -ENOEXEC for what is no program, else what open(2) gave.
 * Context: thread; also in a vfork child.
 */
int csink_program_open(int dirfd, const char *path, enum csink_program_kind *kind);

/**
 * The same, for a name that is looked for in PATH, as execvp(3) does it.
 * @path  PATH's value; NULL: the default.
 */
int csink_program_search(const char *path, const char *name, enum csink_program_kind *kind);

/** Find an executable file of that name in the directories of $PATH. Context: thread. */
bool csink_program_in_path(const char *name, char *path, size_t size);

/**
 * Does the kernel raise the caller's rights when it runs this file? Then the loader ignores LD_PRELOAD (AT_SECURE).
 * @ask_capabilities  look at the file's capabilities, too: that takes a call that few programs make, and which a
 * seccomp filter may kill for.
 * Context: thread; also in a vfork child.
 */
bool csink_program_raises_rights(int fd, const struct stat *st, bool ask_capabilities);

/** The path of an open file, "/proc/self/fd/3", in @link, of 32 bytes. Context: any. */
void csink_program_fd_link(char *link, int fd);

/** What that link leads to. Returns its length, less than @size; 0 and "" where that is not known. Context: any. */
size_t csink_program_fd_path(int fd, char *path, size_t size);

/** Why a program of a kind cannot be injected; 0 if it can. Context: any. */
enum csink_spawn_reason csink_program_reason(enum csink_program_kind kind);

/** May our entry in LD_PRELOAD be given to a program that cannot be injected for that reason (0: it can be)? False if
 * its loader would complain, or refuse the program. Context: any. */
bool csink_program_supports_preload(enum csink_spawn_reason reason);

#endif
