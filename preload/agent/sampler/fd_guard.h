/*
 * Numbers of file descriptors belong to the program. Counters are opened as descriptors and closed at once, which takes
 * some tens of microseconds in which other threads can see their numbers; a program that closes, reuses or duplicates
 * numbers blindly could then hit one of ours, and we, closing it, one of the program's.
 *
 * So as long as a program does nothing of the kind, descriptors are opened where they are needed, and looked at again
 * before they are closed. From the first sign of it on (and while a fork copies the table) they are opened by a thread
 * of ours that lives for that moment and has a table of its own.
 */
#ifndef CSINK_FD_GUARD_H
#define CSINK_FD_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/** May descriptors be opened in the program's own table now? If so, csink_fd_guard_leave() must follow. Context:
 * thread. */
bool csink_fd_guard_enter(void);
void csink_fd_guard_leave(void);

/** The program is about to close or reuse numbers: returns once none of ours is among them. Context: any. */
void csink_fd_guard_alarm(void);

/** True once that has happened. Context: any. */
bool csink_fd_guard_is_alarmed(void);

/** Around a fork; and in its child. Context: thread. */
void csink_fd_guard_before_fork(void);
void csink_fd_guard_after_fork(void);
void csink_fd_guard_forked(void);

/**
 * Run a function in a thread of its own, with a copy of the table of descriptors, and wait for its end. It has the
 * caller's TLS and must not block; every signal is blocked meanwhile.
 * @stack  its stack.
 * Returns 0 or -errno of clone(2). Context: thread.
 */
int csink_run_elsewhere(void (*run)(void *arg), void *arg, void *stack, size_t bytes);

#endif
