/*
 * The life of one process image: it begins in the constructor or in a forked child, and ends at exit, before exec, or
 * without a message.
 */
#ifndef CSINK_IMAGE_H
#define CSINK_IMAGE_H

#include <stddef.h>

/**
 * Decide what csink_plan counts: events, groups, rates. If the list of events cannot be used, CPU time is counted.
 * @problem  set to why, for people; left alone if all is well.
 * Context: init.
 */
void csink_image_choose_events(char *problem, size_t size);

/**
 * In a forked child: a recording of its own. Registered with pthread_atfork(3); ways to fork that do not run its
 * handlers call it themselves. Does nothing where it was called already. Context: thread, the only one.
 */
void csink_image_begin_child(void);

/** Stop and flush, as exec is about to replace this image. Context: thread. */
void csink_image_before_exec(void);

/** The exec failed: go on. Context: thread. */
void csink_image_exec_failed(void);

/**
 * The process ends: flush what every thread has and, where there is no launcher, have the profile made. Does nothing in
 * a vfork child. May be called more than once: a later flush adds to the first. Context: thread.
 */
void csink_image_end(void);

#endif
