/*
 * What boundary_samples.c (files, requests, samples) and boundary_sources.c (which events are open) share; no other
 * file includes this. Context of everything here: the launcher's one thread.
 */
#ifndef CSINK_BOUNDARY_IMPL_H
#define CSINK_BOUNDARY_IMPL_H

#include "launcher/attach/boundary_samples.h"

#define CSINK_BOUNDARY_LEAST_SWEEP 16

/* In the launcher's own tokens; what processes send has none of these. */
#define CSINK_BOUNDARY_PARENT_TOKEN (1ULL << 63)

/** The number of the source with a token. @may_add  add it. Returns 0 without memory, or if it is not there. */
uint32_t csink_boundary_source_of(struct csink_boundary *b, uint64_t token, int32_t pid, bool may_add);

/** Close a source's events. @by  the source whose samples are taken in place of its own; 0: none */
void csink_boundary_source_close(struct csink_boundary *b, uint32_t number, uint32_t by);

/** Take an event's descriptor, which belongs to the source from now on. */
void csink_boundary_source_adopt(struct csink_boundary *b, uint32_t number, int fd, uint16_t event, uint16_t cpu);

/** Close the events that no task has any more. */
void csink_boundary_sources_sweep(struct csink_boundary *b);

/** Close sources whose events a process had inherited already. @settled_ns  the records before that have been taken. */
void csink_boundary_sources_replace(struct csink_boundary *b, uint64_t settled_ns);

/** Has a process that asked not been seen to execute a program? Its file may be replaced as soon as it has ended. */
bool csink_boundary_awaits_exec(const struct csink_boundary *b, uint64_t now_ns);

/** A process has asked, and named a thread as the one that made it: after many requests, arm that thread. */
void csink_boundary_count_request(struct csink_boundary *b, int32_t tid, int32_t pid);

/** Forget armed threads that have ended: others will have their TIDs, or have them already. */
void csink_boundary_forget_parents(struct csink_boundary *b);

#endif
