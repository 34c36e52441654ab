/*
 * perf_event_open(2) itself, what the system lets this process do with it, and the explanations that need no look at
 * the attributes: see perf_system.h. Any thread; not async-signal-safe: it formats text.
 */
#include "preload/core/perf_system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "include/internal/rawcall.h"
#include "preload/core/seccomp_probe.h"
#include "preload/core/status.h"
#include "preload/core/sysfs.h"

enum { CAP_IPC_LOCK_BIT = 14, CAP_SYS_ADMIN_BIT = 21, CAP_PERFMON_BIT = 38 };

int csink_is_in_user_ns(void)
{
	unsigned long long inside, outside, nr;
	char map[128], *end;
	int length = csink_sysfs_read(map, sizeof(map), "/proc/self/uid_map");

	if (length < 0)
		return length;
	/* The initial one maps every ID to itself. */
	inside = strtoull(map, &end, 10);
	outside = strtoull(end, &end, 10);
	nr = strtoull(end, NULL, 10);
	return inside || outside || nr != UINT32_MAX;
}

static int64_t read_sysctl(const char *name)
{
	int64_t value;

	return csink_sysfs_read_number(&value, "/proc/sys/kernel/%s", name) ? -1 : value;
}

void csink_perf_system_read(struct csink_perf_system *system)
{
	struct csink_status status;

	memset(system, 0, sizeof(*system));
	system->has_paranoid = !csink_sysfs_read_number(&system->paranoid, "/proc/sys/kernel/perf_event_paranoid");
	system->max_sample_rate = read_sysctl("perf_event_max_sample_rate");
	system->mlock_kb = read_sysctl("perf_event_mlock_kb");
	system->max_stack = read_sysctl("perf_event_max_stack");
	system->euid = geteuid();
	system->seccomp = -1;
	system->in_user_ns = csink_is_in_user_ns() > 0;
	if (csink_status_read(CSINK_STATUS_THREAD, &status) < 0)
		return;
	system->has_proc = true;
	system->seccomp = status.seccomp;
	system->has_admin = status.effective >> CAP_SYS_ADMIN_BIT & 1;
	system->has_perfmon = status.effective >> CAP_PERFMON_BIT & 1 || system->has_admin;
	system->has_ipc_lock = status.effective >> CAP_IPC_LOCK_BIT & 1;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

int csink_perf_open(const struct perf_event_attr *attr, int32_t pid, int32_t cpu, int32_t group_fd, uint64_t flags)
{
	if (CSINK_UNLIKELY(csink_deadly_calls & CSINK_DEADLY_PERF))
		return -EPERM;
	return (int)csink_rawcall(SYS_perf_event_open, attr, pid, cpu, group_fd, (unsigned long)flags);
}

/* clang-format off */
/* Every errno of the manual page, and the few more that were seen; what each usually means, where nothing is probed. */
#define ERRORS(X) \
	X(E2BIG, "attr.size does not suit this kernel, or the group is too large to be read") \
	X(EACCES, "not allowed by kernel.perf_event_paranoid without CAP_PERFMON") \
	X(EAGAIN, "no memory may be locked now") \
	X(EBADF, "group_fd, or the control group's fd, is not open or not of that kind") \
	X(EBUSY, "another event has the PMU to itself") \
	X(EFAULT, "a pointer that was passed cannot be read") \
	X(EINTR, "interrupted, or the uprobe is in use by ftrace") \
	X(EINVAL, "a value that the kernel or the PMU does not take") \
	X(EMFILE, "no file descriptor is left in this process: raise ulimit -n") \
	X(ENFILE, "no file is left in this system") \
	X(ENODEV, "the group's leader or the CPU is gone") \
	X(ENOENT, "no such event on this machine") \
	X(ENOMEM, "no memory for the event") \
	X(ENOSPC, "no breakpoint register is left") \
	X(ENOSYS, "not in this kernel") \
	X(EOPNOTSUPP, "the event's PMU cannot do that") \
	X(EOVERFLOW, "a deeper stack than kernel.perf_event_max_stack") \
	X(EPERM, "not permitted") \
	X(ESRCH, "no such process")
/* clang-format on */

static const uint8_t errors[] = {
#define NUMBER(err, usual) err,
	ERRORS(NUMBER)
#undef NUMBER
};

/* In one text, since the loader would have to relocate pointers in every program: name and meaning of each. */
static const char error_texts[] =
#define TEXT(err, usual) #err "\0" usual "\0"
	ERRORS(TEXT)
#undef TEXT
	;

static const char *end_of(const char *text)
{
	return text + strlen(text) + 1;
}

/* The name of an error, with what it usually means behind it; NULL: none of these. */
static const char *text_of(int err)
{
	const char *text = error_texts;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(errors); i++, text = end_of(end_of(text)))
		if (errors[i] == err)
			return text;
	return NULL;
}

CSINK_EXPORT const char *csink_errno_name(int err)
{
	const char *text = text_of(err);

	return text ? text : "errno";
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void explain_filter(int got, const struct csink_perf_system *system, struct csink_explanation *out)
{
	if (got == ENOSYS && system->has_proc && !system->has_paranoid) {
		out->cause = CSINK_CAUSE_NO_PERF;
		snprintf(out->text, sizeof(out->text), "this kernel was built without perf events");
		return;
	}
	out->cause = CSINK_CAUSE_SECCOMP;
	/* The NULL attr never reached the kernel's own checks; Seccomp: 2 in /proc/self/status says the same, if
	 * readable. */
	snprintf(out->text, sizeof(out->text), "a seccomp filter refuses perf_event_open%s",
		 system->seccomp == 0 ? " (or a sandbox in place of the kernel)"
		 : got == ENOSYS && !system->has_proc
			 ? " (or this kernel was built without; /proc, which shows it, is not mounted)"
			 : "");
}

static void explain_fd_limit(int err, struct csink_explanation *out)
{
	struct rlimit limit = {0, 0};

	out->cause = CSINK_CAUSE_LIMIT;
	if (err == ENFILE) {
		snprintf(out->text, sizeof(out->text), "the system has as many files open as fs.file-max allows");
		return;
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	snprintf(out->field, sizeof(out->field), "RLIMIT_NOFILE");
	snprintf(out->text, sizeof(out->text), "all %llu file descriptors that this process may have are in use",
		 (unsigned long long)limit.rlim_cur);
}

static void explain_least_event(int got, const struct csink_perf_system *system, struct csink_explanation *out)
{
	if (got == EMFILE || got == ENFILE) {
		explain_fd_limit(got, out);
	} else if (system->paranoid >= 3 && !(system->has_admin && !system->in_user_ns)) {
		/* Debian's kernels, for example, in which CAP_PERFMON does not override it. */
		out->cause = CSINK_CAUSE_PARANOID;
		snprintf(out->text, sizeof(out->text),
			 "kernel.perf_event_paranoid is %lld: this distribution's kernel refuses all events to users "
			 "without CAP_SYS_ADMIN",
			 (long long)system->paranoid);
	} else {
		out->cause = CSINK_CAUSE_LSM;
		snprintf(out->text, sizeof(out->text),
			 "a security module (SELinux, lockdown, BPF) refuses even an event that counts nothing");
	}
}

bool csink_explain_refusal(const struct csink_perf_call *call, const struct csink_perf_system *system,
			   struct csink_explanation *out)
{
	/* The oldest size there is, so that no kernel finds it too long. */
	struct perf_event_attr least = csink_perf_least();
	int got;

	least.size = PERF_ATTR_SIZE_VER0;
	memset(out, 0, sizeof(*out));
	if (call)
		got = csink_perf_open(NULL, call->pid, call->cpu, call->group_fd, call->flags);
	else
		got = csink_perf_open(NULL, 0, -1, -1, 0);
	out->err = -got;
	/* EINVAL: the kernel looks at the flags before the attr. */
	if (got != -EFAULT && !(call && got == -EINVAL)) {
		explain_filter(-got, system, out);
		return true;
	}
	got = csink_perf_open(&least, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (got >= 0) {
		csink_rawcall(SYS_close, got);
		return false;
	}
	out->err = -got;
	/* Before 3.12 there was no dummy event. */
	if (got == -ENOENT)
		return false;
	explain_least_event(-got, system, out);
	return true;
}

CSINK_EXPORT char *csink_explain_brief(int err, char *buf, size_t size)
{
	CSINK_KEEP_ERRNO;
	struct csink_explanation refusal;
	struct csink_perf_system system;

	if (err == ENOBUFS) {
		snprintf(buf, size, "%s", CSINK_NO_LOCKED_MEMORY);
		return buf;
	}
	csink_perf_system_read(&system);
	if (csink_explain_refusal(NULL, &system, &refusal)) {
		snprintf(buf, size, "%s", refusal.text);
	} else {
		const char *name = text_of(err);

		snprintf(buf, size, "perf_event_open says %s: %s", csink_errno_name(err),
			 name ? end_of(name) : "not expected of perf_event_open");
	}
	return buf;
}
