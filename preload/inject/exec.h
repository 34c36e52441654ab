/* Exec by a way that libc has no function for. */
#ifndef CSINK_INJECT_EXEC_H
#define CSINK_INJECT_EXEC_H

/**
 * execve(2) or execveat(2) by its number, with the arguments as they were given: what the functions of that name do.
 * Returns as they do. Context: thread; also in a vfork child.
 */
long csink_exec_by_number(long number, long a, long b, long c, long d, long e);

#endif
