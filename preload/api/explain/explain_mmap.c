/*
 * Explaining a failed mmap of an event's ring. The kernel's rules are few, so they are gone through in its order; only
 * the budget for locked memory is a matter of degree.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/api/explain/explain_probe.h"

struct mapping {
	const struct perf_event_attr *attr;
	size_t bytes, page;
	int fd, prot, flags;
};

static bool is_not_shared(const struct mapping *map)
{
	return !(map->flags & MAP_SHARED);
}

static bool is_inherited(const struct mapping *map)
{
	return map->attr->inherit;
}

/* One page of its own, and a power of two of data pages; none of them for counting only. */
static bool is_odd_size(const struct mapping *map)
{
	size_t pages = map->bytes / map->page;

	return map->bytes % map->page || !pages || (pages - 1) & (pages - 2);
}

static bool has_ring(const struct mapping *map)
{
	void *ring = mmap(NULL, map->page, PROT_READ, MAP_SHARED, map->fd, 0);

	if (ring == MAP_FAILED)
		return true;
	munmap(ring, map->page);
	return false;
}

/* What EINVAL may mean, in the kernel's order. */
static const struct {
	bool (*applies)(const struct mapping *map);
	const char *field, *text, *remedy;
} rules[] = {
	{is_inherited, "inherit", "an inherited event that follows a task over all CPUs cannot be mapped",
	 "leave inherit out, or open one event for each CPU"},
	{is_not_shared, "flags", "a ring has to be mapped MAP_SHARED", "set MAP_SHARED"},
	{is_odd_size, "length", "a ring is one page and then 1, 2, 4, 8 ... pages of data (or none)",
	 "map (1 + 2^n) pages"},
	{has_ring, "fd", "the event has a ring of another size, or writes to another event's", "unmap that first"},
};

static void explain_budget(size_t bytes, struct csink_explanation *out)
{
	struct csink_perf_system system;
	struct rlimit limit = {0, 0};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	csink_perf_system_read(&system);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	csink_explain_as(out, CSINK_CAUSE_LIMIT, "RLIMIT_MEMLOCK", "",
			 "%zu KiB more are over what this user may lock for rings: %lld KiB "
			 "(kernel.perf_event_mlock_kb) for each of %ld CPUs, then %llu KiB (ulimit -l)",
			 bytes / 1024, (long long)system.mlock_kb, cpus, (unsigned long long)limit.rlim_cur / 1024);
	csink_explain_remedy(out, "map smaller rings, raise ulimit -l, or sysctl kernel.perf_event_mlock_kb=%lld",
			     (long long)(system.mlock_kb > 0 ? system.mlock_kb * 4 : 2048));
}

CSINK_EXPORT void csink_explain_mmap(const struct perf_event_attr *attr, int fd, size_t bytes, int prot, int map_flags,
				     int err, struct csink_explanation *out)
{
	CSINK_KEEP_ERRNO;
	struct mapping map = {attr, bytes, (size_t)sysconf(_SC_PAGESIZE), fd, prot, map_flags};

	memset(out, 0, sizeof(*out));
	out->err = err;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(rules) && err == EINVAL; i++) {
		if (!rules[i].applies(&map))
			continue;
		csink_explain_as(out, CSINK_CAUSE_BAD_VALUE, rules[i].field, rules[i].remedy, "%s", rules[i].text);
		return;
	}
	if (err == EPERM)
		explain_budget(bytes, out);
	else if (err == ENOMEM || err == EAGAIN)
		csink_explain_as(out, CSINK_CAUSE_RESOURCE, NULL, "map a smaller one",
				 "no memory for a ring of %zu bytes", bytes);
	else if (err == ENODEV)
		csink_explain_as(out, CSINK_CAUSE_TARGET, NULL, "", "the event's PMU is gone");
	else
		csink_explain_as(out, CSINK_CAUSE_UNKNOWN, NULL, "", "none of the known rules for rings is broken");
}
