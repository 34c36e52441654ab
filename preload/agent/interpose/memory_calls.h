/* Calls on the program's memory that are made by their number: see memory_calls.c. */
#ifndef CSINK_MEMORY_CALLS_H
#define CSINK_MEMORY_CALLS_H

/** mmap, munmap, mprotect, pkey_mprotect or mremap by number, as syscall(2) returns it. Context: any. */
long csink_memory_call(long number, long a, long b, long c, long d, long e, long f);

#endif
