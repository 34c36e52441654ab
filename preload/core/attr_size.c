/* Copies perf_event_attr between sizes: see attr_size.h. Any thread; async-signal-safe. */
#include "preload/core/attr_size.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "include/internal/base.h"

static bool is_zero(const void *bytes, size_t nr)
{
	const unsigned char *at = bytes;

	while (nr && !*at) {
		at++;
		nr--;
	}
	return !nr;
}

int csink_attr_import(struct perf_event_attr *to, const void *from, size_t room)
{
	size_t their_size, both;
	__u32 size;

	memset(to, 0, sizeof(*to));
	if (room < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	memcpy(&size, (const char *)from + offsetof(struct perf_event_attr, size), sizeof(size));
	their_size = CSINK_MIN(size ? size : PERF_ATTR_SIZE_VER0, room);
	both = CSINK_MIN(their_size, sizeof(*to));
	if (!is_zero((const char *)from + both, their_size - both))
		return -E2BIG;
	memcpy(to, from, both);
	to->size = (__u32)both;
	return 0;
}

int csink_attr_export(void *to, size_t room, const struct perf_event_attr *from)
{
	size_t both = CSINK_MIN(room, sizeof(*from));
	bool fits = is_zero((const char *)from + both, sizeof(*from) - both);
	__u32 size = fits ? CSINK_MIN(from->size, (__u32)room) : from->size;

	memset(to, 0, room);
	memcpy(to, from, both);
	memcpy((char *)to + offsetof(struct perf_event_attr, size), &size, sizeof(size));
	return fits ? 0 : -E2BIG;
}
