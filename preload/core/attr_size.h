/*
 * perf_event_attr grows with the kernel: programs are compiled with headers in which it has 112, 120, 136 or more
 * bytes, and this library with one of its own. What crosses between them is copied as the kernel does: as many bytes as
 * both have; what one of them does not have must be 0. Context of everything here: any.
 */
#ifndef CSINK_ATTR_SIZE_H
#define CSINK_ATTR_SIZE_H

#include <linux/perf_event.h>
#include <stddef.h>

/**
 * Copy a caller's attr: attr.size bytes of it (0: PERF_ATTR_SIZE_VER0), but no more than room.
 * @room  sizeof(struct perf_event_attr) where the caller was compiled.
 * Returns 0; -EINVAL: room is less than any kernel's; -E2BIG: it sets what this library does not know.
 */
int csink_attr_import(struct perf_event_attr *to, const void *from, size_t room);

/**
 * Copy one to a caller that has room for so many bytes, and set all of them. Returns 0 with attr.size at most room; or
 * -E2BIG with attr.size as it was: what does not fit is set.
 */
int csink_attr_export(void *to, size_t room, const struct perf_event_attr *from);

#endif
