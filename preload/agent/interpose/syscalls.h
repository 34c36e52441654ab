/* System calls by number, that programs make through syscall(2). */
#ifndef CSINK_SYSCALLS_H
#define CSINK_SYSCALLS_H

/**
 * What syscall() does for the numbers that its assembly picks out: exec, fork, exit, and what confines the process.
 * Context: thread.
 */
long csink_syscall_watched(long number, long a, long b, long c, long d, long e, long f);

#endif
