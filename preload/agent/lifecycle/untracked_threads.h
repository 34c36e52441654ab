/*
 * Threads that are not sampled because the agent did not see their creation: made by clone(2) itself, as some
 * languages' runtimes do, or older than the library, which was opened late. They are counted, and the report names
 * them.
 */
#ifndef CSINK_UNTRACKED_THREADS_H
#define CSINK_UNTRACKED_THREADS_H

#include <stdint.h>

/** Look whether there are any as the library starts, and note them in the recording. Context: init. */
void csink_untracked_threads_at_start(void);

/**
 * At the end of an image, when all threads that are known have been flushed: note CPU time that was spent by
 * others, if it is more than the agent itself used.
 * @cpu_ns  what the process has used since the library began, or since its main thread was sampled.
 * Context: thread; allocates nothing.
 */
void csink_untracked_threads_at_end(uint64_t cpu_ns);

#endif
