/*
 * Explaining a failed perf_event_open: the steps, in the kernel's order of checks, and the choice of the fault to
 * report. The kernel reports its first fault only, and one errno hides many; so the call is built up again from an
 * event that opens, until each value that it cannot have is known.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/api/explain/explain_probe.h"

/* A signal can interrupt the open of an event of a process that is inside exec(); that passes. */
#define MAX_RETRIES 20

int csink_probe_try(struct csink_probe *probe)
{
	/* The kernel writes the size it wanted into an attr that it finds too long. */
	struct perf_event_attr attr = probe->attr;
	int fd, retries = 0;

	do {
		fd = csink_perf_open(&attr, probe->pid, probe->cpu, probe->group_fd,
				     probe->flags | PERF_FLAG_FD_CLOEXEC);
		probe->nr_probes++;
	} while (fd == -EINTR && ++retries < MAX_RETRIES);
	if (fd >= 0)
		close(fd);
	if (probe->fds_full && (fd == -EMFILE || fd == -ENFILE))
		return 0;
	return fd < 0 ? -fd : 0;
}

struct csink_explanation *csink_probe_fault(struct csink_probe *probe, int err, enum csink_cause cause,
					    const char *field)
{
	struct csink_explanation *fault = &probe->faults[probe->nr_faults];

	if (probe->nr_faults < CSINK_PROBE_MAX_FAULTS)
		probe->nr_faults++;

	memset(fault, 0, sizeof(*fault));
	fault->err = err;
	fault->cause = cause;
	snprintf(fault->field, sizeof(fault->field), "%s", field ? field : "");
	return fault;
}

/* ---- answers before any search ----------------------------------------------------------------------------------- */

/* A call that is refused shows nothing. */
static bool is_readable(const void *at)
{
	return csink_raw_try_load(at) != -EFAULT;
}

static bool explain_pointer(const struct csink_perf_call *call, int err, struct csink_explanation *out)
{
	const char *attr = (const char *)call->attr;

	if (attr && is_readable(attr) && is_readable(attr + PERF_ATTR_SIZE_VER0 - 8))
		return false;
	memset(out, 0, sizeof(*out));
	out->err = err;
	csink_explain_as(out, CSINK_CAUSE_CALLER, "attr", "a defect in the calling program",
			 "the attr pointer, 0x%llx, cannot be read", (unsigned long long)(uintptr_t)attr);
	return true;
}

/* The size of attr that this kernel has: it writes it where it finds a longer one that is not zero to its end. */
static uint32_t kernel_size(void)
{
	union csink_attr_copy probe;

	memset(&probe, 0xff, sizeof(probe));
	probe.attr.size = CSINK_ATTR_MAX_SIZE;
	csink_perf_open(&probe.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return probe.attr.size;
}

/*
 * Take a copy of the caller's attr, of the size in attr.size. After E2BIG its size may be the kernel's word and not the
 * caller's; then no more is read than any build of today has.
 */
static void copy_passed(const struct csink_perf_call *call, int err, union csink_attr_copy *passed)
{
	uint32_t size = call->attr->size ? call->attr->size : PERF_ATTR_SIZE_VER0;

	if (size > CSINK_ATTR_MAX_SIZE || (err == E2BIG && size == kernel_size()))
		size = sizeof(struct perf_event_attr);
	memset(passed, 0, sizeof(*passed));
	memcpy(passed->bytes, call->attr, size);
}

/* The call itself, once more. Returns 0 or the errno. */
static int call_again(const struct csink_perf_call *call, const union csink_attr_copy *passed)
{
	union csink_attr_copy attr = *passed;
	int fd = csink_perf_open(&attr.attr, call->pid, call->cpu, call->group_fd, call->flags | PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -fd;
	close(fd);
	return 0;
}

static void explain_success(int err, struct csink_explanation *out)
{
	memset(out, 0, sizeof(*out));
	out->err = err;
	/* The kernel has written its own size into attr.size by now, which mends the call. */
	if (err == E2BIG)
		csink_explain_as(out, CSINK_CAUSE_NEW_FIELD, "size", "call again with the attr as it is now",
				 "attr.size was not this kernel's, which has written its own there");
	else if (err == EINTR)
		csink_explain_as(out, CSINK_CAUSE_RETRY, "", "call again",
				 "a signal came while the target was inside exec()");
	else if (err == EMFILE || err == ENFILE || err == ENOSPC || err == EBUSY)
		csink_explain_as(out, CSINK_CAUSE_RESOURCE, "", "call again",
				 "what was used up then has become free: the same call works now");
	else
		csink_explain_as(out, CSINK_CAUSE_NONE, "", "", "the same call works now");
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static void probe_all(struct csink_probe *probe)
{
	csink_probe_size(probe);
	csink_probe_rows_before(probe);
	csink_probe_event(probe);
	csink_probe_rows_after(probe);
	csink_probe_target(probe);
	csink_probe_group(probe);
}

/* The fault that gave err first, then the others as they were found. */
static unsigned report(const struct csink_probe *probe, int err, struct csink_explanation *out, unsigned max)
{
	unsigned nr = 0;

	for (uint32_t i = 0; i < probe->nr_faults && !nr; i++)
		if (probe->faults[i].err == err)
			out[nr++] = probe->faults[i];
	if (!nr) {
		memset(&out[nr], 0, sizeof(out[nr]));
		out[nr].err = err;
		csink_explain_as(&out[nr++], CSINK_CAUSE_UNKNOWN, "", "",
				 "each value of the call was tried alone, and none gives this error");
	}
	for (uint32_t i = 0; i < probe->nr_faults && nr < max; i++)
		if (memcmp(&out[0], &probe->faults[i], sizeof(out[0])))
			out[nr++] = probe->faults[i];
	return nr;
}

static int explain(const struct csink_perf_call *call, int err, struct csink_explanation *out, unsigned max)
{
	union csink_attr_copy passed;
	struct csink_probe probe = {
		.call = call, .passed = &passed, .attr = csink_perf_least(), .cpu = -1, .group_fd = -1};
	int again;

	if (explain_pointer(call, err, out))
		return 1;
	copy_passed(call, err, &passed);
	probe.want = passed.attr;
	probe.want.size = sizeof(probe.want);
	csink_perf_system_read(&probe.system);
	if (csink_explain_refusal(call, &probe.system, out)) {
		csink_explain_refusal_remedy(out);
		/* Without an fd left, faults that the kernel checks before it needs one can still be distinguished. */
		probe.fds_full = out->err == EMFILE || out->err == ENFILE;
		if (!probe.fds_full || err == out->err)
			return 1;
	} else {
		again = call_again(call, &passed);
		if (!again) {
			explain_success(err, out);
			return 1;
		}
		/* What fails now is what can be explained; a fault that went away in between is not there any more. */
		if (err != EINTR)
			err = again;
	}
	probe_all(&probe);
	return (int)report(&probe, err, out, max);
}

CSINK_EXPORT int csink_explain_open(const struct csink_perf_call *call, int err, struct csink_explanation *out,
				    unsigned max)
{
	CSINK_KEEP_ERRNO;

	return max ? explain(call, err, out, max) : 0;
}
