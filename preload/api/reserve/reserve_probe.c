/*
 * Do these events fit on the counters now? The kernel's answer, independent of the holders: a pinned group is counted
 * all the time, or put into an error state, in which it reads as end of file. Opening alone proves nothing.
 *
 * The group is opened on the calling thread, which spins for it to be on a CPU: two intervals of the kernel's
 * multiplexing, so that a group which has to take turns has lost one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/countersink/reserve.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/event.h"
#include "preload/core/attr_size.h"
#include "preload/core/event/event_spec.h"
#include "preload/core/sysfs.h"

#define MAX_EVENTS 32
#define DEFAULT_MUX_MS 4 /* the kernel's own default */
#define MAX_MUX_MS 100   /* it may be set to minutes: too long to spin */

/* The interval of the PMU that has this type; the generic types are the core PMU's. */
static uint64_t mux_interval_ns(const struct perf_event_attr *attr)
{
	int64_t type, ms = DEFAULT_MUX_MS;
	const char *name;
	bool generic =
		attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE || attr->type == PERF_TYPE_RAW;

	CSINK_SYSFS_EACH(name, "/sys/bus/event_source/devices") {
		if (csink_sysfs_read_number(&type, "/sys/bus/event_source/devices/%s/type", name))
			continue;
		if (type != (generic ? PERF_TYPE_RAW : attr->type))
			continue;
		csink_sysfs_read_number(&ms, "/sys/bus/event_source/devices/%s/perf_event_mux_interval_ms", name);
		break;
	}
	return (uint64_t)CSINK_MIN(CSINK_MAX(ms, 1), MAX_MUX_MS) * 1000000ULL;
}

static enum csink_reserve_fit judge(ssize_t got, const struct csink_event_count *counted)
{
	if (got != sizeof(*counted))
		return CSINK_RESERVE_HELD;
	if (!counted->running_ns)
		return CSINK_RESERVE_NEVER_RAN;
	return counted->running_ns < counted->enabled_ns ? CSINK_RESERVE_MULTIPLEXED : CSINK_RESERVE_FITS;
}

static enum csink_reserve_fit count(int leader, uint64_t spin_ns, struct csink_reserve_probe *out)
{
	struct csink_event_count counted = {0, 0, 0};
	ssize_t got;

	out->from_ns = csink_monotonic_ns();
	ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	do
		out->to_ns = csink_monotonic_ns();
	while (out->to_ns - out->from_ns < spin_ns);
	got = read(leader, &counted, sizeof(counted));
	ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	out->enabled_ns = counted.enabled_ns;
	out->running_ns = counted.running_ns;
	return judge(got, &counted);
}

/* The kernel refuses a member that can never be counted beside the others as it refuses one that makes no sense. */
static bool opens_alone(const struct perf_event_attr *attr)
{
	int fd = csink_event_open_count(attr, -1);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Open the first nr events, count, close. */
static enum csink_reserve_fit try_group(const struct perf_event_attr *attrs, uint32_t nr, uint64_t spin_ns,
					struct csink_reserve_probe *out)
{
	enum csink_reserve_fit fit = CSINK_RESERVE_REFUSED;
	int fds[MAX_EVENTS];
	uint32_t opened = 0;

	while (opened < nr) {
		int fd = csink_event_open_count(&attrs[opened], opened ? fds[0] : -1);

		if (fd < 0) {
			out->err = fd;
			out->refused = opened;
			if (fd == -EINVAL && opened && opens_alone(&attrs[opened]))
				fit = CSINK_RESERVE_HELD;
			break;
		}
		fds[opened++] = fd;
	}
	if (opened == nr)
		fit = count(fds[0], spin_ns, out);
	while (opened)
		close(fds[--opened]);
	return fit;
}

/* A caller's array, whose members may have another size than ours. */
static int import(const void *attrs, size_t attr_bytes, uint32_t nr, struct perf_event_attr *out)
{
	int err = nr && nr <= MAX_EVENTS ? 0 : -EINVAL;

	for (uint32_t i = 0; i < nr && !err; i++)
		err = csink_attr_import(&out[i], (const char *)attrs + i * attr_bytes, attr_bytes);
	return err;
}

CSINK_EXPORT int csink_reserve_probe_sized(const struct perf_event_attr *callers, size_t attr_bytes, uint32_t nr,
					   struct csink_reserve_probe *out)
{
	CSINK_KEEP_ERRNO;
	struct perf_event_attr attrs[MAX_EVENTS];
	struct csink_reserve_probe smaller;
	int err = import(callers, attr_bytes, nr, attrs);
	uint64_t spin_ns;

	memset(out, 0, sizeof(*out));
	out->nr = nr;
	if (err)
		return err;
	spin_ns = 2 * mux_interval_ns(&attrs[0]);
	out->fit = try_group(attrs, nr, spin_ns, out);
	if (out->fit == CSINK_RESERVE_FITS)
		out->nr_fit = nr;
	/* How many fit? Times and verdict stay those of the whole group. */
	for (uint32_t n = nr - 1; n && !out->nr_fit; n--) {
		memset(&smaller, 0, sizeof(smaller));
		if (try_group(attrs, n, spin_ns, &smaller) == CSINK_RESERVE_FITS)
			out->nr_fit = n;
	}
	if (out->fit == CSINK_RESERVE_FITS)
		return 0;
	return out->fit == CSINK_RESERVE_REFUSED ? out->err : -EBUSY;
}

CSINK_EXPORT char *csink_reserve_probe_print(const struct csink_reserve_probe *probe, char *buf, size_t size)
{
	static const struct {
		const char *one, *many;
	} phrases[] = {
		[CSINK_RESERVE_FITS] = {"counted all the time", "counted together all the time"},
		[CSINK_RESERVE_HELD] =
			{"does not fit on the counters now: other processes hold them",
			 "do not fit on the counters now: other processes hold them, or there are too few"},
		[CSINK_RESERVE_NEVER_RAN] = {"never came on the counters: other processes hold them",
					     "never came on the counters: other processes hold them"},
		[CSINK_RESERVE_MULTIPLEXED] = {"has to share a counter, and counts only part of the time",
					       "have to share the counters, and count only part of the time"},
	};
	int n;

	if (probe->fit == CSINK_RESERVE_REFUSED)
		n = snprintf(buf, size, "event %u of %u does not open: %s", probe->refused + 1, probe->nr,
			     csink_errno_name(-probe->err));
	else
		n = snprintf(buf, size, "%u event%s %s", probe->nr, probe->nr == 1 ? "" : "s",
			     probe->nr == 1 ? phrases[probe->fit].one : phrases[probe->fit].many);
	if (probe->fit != CSINK_RESERVE_FITS && probe->nr > 1 && n >= 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, " (%u of %u fit)", probe->nr_fit, probe->nr);
	return buf;
}
