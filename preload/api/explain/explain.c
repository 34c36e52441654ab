/*
 * Explanations in words: names of errors, the one-line form, and the brief answer for those who only want to know why
 * perf_event_open is closed to them. The search for the culprit is in explain_open.c.
 */
#include "include/countersink/explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/api/explain/explain_system.h"

/* Every errno of the manual page, and the few more that were seen; what each usually means, where nothing is probed. */
static const struct {
	int err;
	const char *name, *usual;
} errors[] = {
	{E2BIG, "E2BIG", "attr.size does not suit this kernel, or the group is too large to be read"},
	{EACCES, "EACCES", "not allowed by kernel.perf_event_paranoid without CAP_PERFMON"},
	{EAGAIN, "EAGAIN", "no memory may be locked now"},
	{EBADF, "EBADF", "group_fd, or the control group's fd, is not open or not of that kind"},
	{EBUSY, "EBUSY", "another event has the PMU to itself"},
	{EFAULT, "EFAULT", "a pointer that was passed cannot be read"},
	{EINTR, "EINTR", "interrupted, or the uprobe is in use by ftrace"},
	{EINVAL, "EINVAL", "a value that the kernel or the PMU does not take"},
	{EMFILE, "EMFILE", "no file descriptor is left in this process: raise ulimit -n"},
	{ENFILE, "ENFILE", "no file is left in this system"},
	{ENODEV, "ENODEV", "the group's leader or the CPU is gone"},
	{ENOENT, "ENOENT", "no such event on this machine"},
	{ENOMEM, "ENOMEM", "no memory for the event"},
	{ENOSPC, "ENOSPC", "no breakpoint register is left"},
	{ENOSYS, "ENOSYS", "not in this kernel"},
	{EOPNOTSUPP, "EOPNOTSUPP", "the event's PMU cannot do that"},
	{EOVERFLOW, "EOVERFLOW", "a deeper stack than kernel.perf_event_max_stack"},
	{EPERM, "EPERM", "not permitted"},
	{ESRCH, "ESRCH", "no such process"},
};

CSINK_EXPORT const char *csink_errno_name(int err)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(errors); i++)
		if (errors[i].err == err)
			return errors[i].name;
	return "errno";
}

CSINK_EXPORT char *csink_explain_print(const struct csink_explanation *explanation, char *buf, size_t size)
{
	const struct csink_explanation *e = explanation;

	snprintf(buf, size, "%s: %s%s%s%s%s%s", csink_errno_name(e->err), e->text, e->field[0] ? " (" : "", e->field,
		 e->field[0] ? ")" : "", e->remedy[0] ? "; " : "", e->remedy);
	return buf;
}

CSINK_EXPORT char *csink_explain_brief(int err, char *buf, size_t size)
{
	struct csink_explanation refusal;
	struct csink_perf_system system;
	int saved = errno;

	if (err == ENOBUFS) {
		snprintf(buf, size, "%s", CSINK_NO_LOCKED_MEMORY);
		return buf;
	}
	csink_perf_system_read(&system);
	if (csink_explain_refusal(NULL, &system, &refusal)) {
		snprintf(buf, size, "%s", refusal.text);
	} else {
		const char *usual = "not expected of perf_event_open";

		for (size_t i = 0; i < CSINK_ARRAY_SIZE(errors); i++)
			if (errors[i].err == err)
				usual = errors[i].usual;
		snprintf(buf, size, "perf_event_open says %s: %s", csink_errno_name(err), usual);
	}
	errno = saved;
	return buf;
}
