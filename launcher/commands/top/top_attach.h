/* Processes that `countersink top` samples from outside, as `countersink attach` does it; nothing is injected. */
#ifndef CSINK_TOP_ATTACH_H
#define CSINK_TOP_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct csink_top_attach;
struct csink_top_sight;

/**
 * Attach to a process with what it starts, or to a control group. They are not stopped for it.
 * @cgroup  NULL: the process @pid.
 * @why     on failure, one line.
 * Returns 0 or -errno. Context: thread; at most once in a process.
 */
int csink_top_attach_open(struct csink_top_attach **attach, int32_t pid, const char *cgroup, char *why, size_t why_len);
void csink_top_attach_close(struct csink_top_attach *attach);

/** As csink_top_source_take(), _fd() and _drain(). */
int csink_top_attach_take(struct csink_top_attach *attach, struct csink_top_sight *sight);
int csink_top_attach_fd(const struct csink_top_attach *attach);
bool csink_top_attach_drain(struct csink_top_attach *attach);

#endif
