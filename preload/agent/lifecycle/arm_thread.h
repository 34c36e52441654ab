/*
 * Arming a thread: events for programs that cannot be injected, opened on the thread that is about to become one, or
 * whose child is. They are off until an exec, and on in each program that the thread or a descendant of it executes
 * from then on. The launcher gets their descriptors: include/internal/boundary.h is the contract.
 */
#ifndef CSINK_ARM_THREAD_H
#define CSINK_ARM_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/agent/lifecycle/started.h"

/**
 * Arm the calling thread for the exec of @started, if that cannot be injected and the launcher samples such programs.
 * Waits for the launcher, but not for long; every signal is blocked meanwhile. Why it could not is noted, once.
 * Returns a token for csink_arm_withdraw(), 0: it is not armed. Context: thread; also in a vfork child.
 */
uint64_t csink_arm_for_exec(const struct csink_started *started);

/** Is it a program that csink_arm_for_exec() arms for? Context: thread; also in a vfork child. */
bool csink_arm_is_for(const struct csink_started *started);

/** The exec failed: close the events again. 0 is fine. Context: thread; also in a vfork child. */
void csink_arm_withdraw(uint64_t token);

/**
 * Arm the calling thread for good, where its execs cannot be seen: they are in libc (posix_spawn(3), popen(3)), or in
 * system calls of a language's runtime. Once for each thread. Context: thread or init; not in a vfork child.
 */
void csink_arm_for_children(void);

#endif
