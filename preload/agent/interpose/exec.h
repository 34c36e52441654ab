/* Exec by a way that libc has no function for. */
#ifndef CSINK_EXEC_H
#define CSINK_EXEC_H

#include <stdint.h>

/**
 * execve(2) or execveat(2) by its number, with the arguments as they were given: what the functions of that name do.
 * Returns as they do. Context: thread; also in a vfork child.
 */
long csink_exec_by_number(long number, long a, long b, long c, long d, long e);

enum { CSINK_IGNORED_BYTES = 40 };

/**
 * An environment that names the signals of the agent that a program is to find ignored (csink_signals_ignored): our
 * fork hooks do not run in children that libc forks internally.
 * @room  for two pointers more than @envp has
 * @text  CSINK_IGNORED_BYTES
 * Context: thread.
 */
char *const *csink_exec_with_ignored(char *const *envp, uint64_t ignored, char **room, char *text);

#endif
