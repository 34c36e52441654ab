/*
 * Explaining a failed perf_event_open: of whom (pid, cpu, control group), and in which group. By now the attr opens on
 * the calling task, or its faults are known and left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/api/explain/explain_probe.h"
#include "preload/core/status.h"
#include "preload/core/sysfs.h"

#define KNOWN_FLAGS (PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT | PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC)

static bool check_flags(struct csink_probe *probe)
{
	unsigned long extra = probe->call->flags & ~(unsigned long)KNOWN_FLAGS;
	struct csink_explanation *fault;
	int err;

	if (!extra)
		return true;
	probe->flags |= extra;
	err = csink_probe_try(probe);
	probe->flags &= ~extra;
	if (!err)
		return true;
	fault = csink_probe_fault(probe, err, CSINK_CAUSE_BAD_VALUE, "flags");
	csink_explain_text(fault, "this kernel does not know the bits 0x%lx of flags", extra);
	csink_explain_remedy(fault, "leave them out");
	return false;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* Are there threads besides the one that gave the process its number? */
static bool has_other_threads(pid_t pid)
{
	const char *name;

	CSINK_SYSFS_EACH(name, "/proc/%d/task", (int)pid) {
		if (atoi(name) != pid)
			return true;
	}
	return false;
}

static void describe_gone(pid_t pid, struct csink_explanation *fault)
{
	struct csink_status status;

	fault->cause = CSINK_CAUSE_TARGET;
	if (csink_status_read(pid, &status) < 0) {
		csink_explain_text(fault, "there is no process or thread %d (here, or in this pid namespace)",
				   (int)pid);
		csink_explain_remedy(fault, "check the number; it may have ended");
	} else if (has_other_threads(pid)) {
		csink_explain_text(fault, "the main thread of %d has ended, while other threads of it live", (int)pid);
		csink_explain_remedy(fault, "attach to the others: /proc/%d/task", (int)pid);
	} else {
		csink_explain_text(fault, "process %d has ended and waits to be reaped (a zombie)", (int)pid);
		csink_explain_remedy(fault, "nothing is left to be counted");
	}
}

static void describe_foreign(struct csink_probe *probe, pid_t pid, struct csink_explanation *fault)
{
	struct csink_status status;

	fault->cause = CSINK_CAUSE_TARGET;
	if (csink_status_read(pid, &status) == 0 && status.uid != probe->system.euid) {
		csink_explain_text(fault, "process %d belongs to uid %u, and this is uid %u without CAP_PERFMON",
				   (int)pid, (unsigned)status.uid, (unsigned)probe->system.euid);
		csink_explain_remedy(fault, "run as that user, or grant CAP_PERFMON (before Linux 5.8 and for sigtrap: "
					    "CAP_SYS_PTRACE)");
		return;
	}
	csink_explain_text(fault,
			   "process %d may not be looked into: it has run a setuid, setgid or unreadable program, has "
			   "set PR_SET_DUMPABLE to 0, has more capabilities, or lives in another user namespace",
			   (int)pid);
	csink_explain_remedy(fault, "grant CAP_PERFMON (for sigtrap: CAP_SYS_PTRACE)");
}

static void describe_task(struct csink_probe *probe, int err, struct csink_explanation *fault)
{
	pid_t pid = probe->call->pid;

	fault->cause = CSINK_CAUSE_TARGET;
	switch (err) {
	case ESRCH:
		describe_gone(pid, fault);
		break;
	case EACCES:
	case EPERM:
		describe_foreign(probe, pid, fault);
		break;
	case EINTR:
		fault->cause = CSINK_CAUSE_RETRY;
		csink_explain_text(fault, "process %d is inside exec(), and a signal came while waiting for it",
				   (int)pid);
		csink_explain_remedy(fault, "call again");
		break;
	default:
		csink_explain_text(fault, "the event cannot be opened on task %d", (int)pid);
	}
}

/* ---- CPUs -------------------------------------------------------------------------------------------------------- */

static void describe_cpu(struct csink_probe *probe, int err, struct csink_explanation *fault)
{
	char online[128] = "?";
	int cpu = probe->call->cpu;

	fault->cause = CSINK_CAUSE_TARGET;
	csink_sysfs_read(online, sizeof(online), "/sys/devices/system/cpu/online");
	if (err == EACCES || err == EPERM) {
		strcpy(fault->field, "pid");
		csink_explain_permission(&probe->system, 0, "counting a whole CPU (pid -1)", "count a process, or ",
					 fault);
	} else if (err == ENODEV) {
		csink_explain_text(fault, "CPU %d is offline; online are %s", cpu, online);
		csink_explain_remedy(fault, "choose one of those");
	} else {
		csink_explain_text(fault, "the event cannot be opened on CPU %d; online are %s", cpu, online);
		csink_explain_remedy(fault, "choose one of those%s",
				     probe->whole_cpus ? " that is in the PMU's cpumask" : "");
	}
}

static void describe_no_target(struct csink_probe *probe, struct csink_explanation *fault)
{
	(void)probe;
	fault->cause = CSINK_CAUSE_BAD_VALUE;
	csink_explain_text(fault, "pid -1 means every task of one CPU, so cpu cannot be -1 as well");
	csink_explain_remedy(fault, "give a cpu, or a pid");
}

/* A sigtrap event signals the task that it counts, so it needs one. */
static bool objects_to_sigtrap(struct csink_probe *probe, int err)
{
	struct csink_explanation *fault;

	if (!probe->attr.sigtrap || probe->pid != -1)
		return false;
	probe->attr.sigtrap = 0;
	if (csink_probe_try(probe)) {
		probe->attr.sigtrap = 1;
		return false;
	}
	fault = csink_probe_fault(probe, err, CSINK_CAUSE_BAD_VALUE, "sigtrap");
	csink_explain_text(fault, "a sigtrap event signals the task that it counts, and pid -1 is none");
	csink_explain_remedy(fault, "open it on a task, or leave sigtrap out");
	return true;
}

/* ---- control groups ---------------------------------------------------------------------------------------------- */

static void check_cgroup(struct csink_probe *probe)
{
	const struct csink_perf_call *call = probe->call;
	struct csink_explanation *fault;
	int err;

	probe->flags |= PERF_FLAG_PID_CGROUP;
	probe->pid = call->pid;
	probe->cpu = call->cpu;
	err = csink_probe_try(probe);
	if (!err)
		return;
	fault = csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "pid");
	if (err == EINVAL && (call->pid == -1 || call->cpu == -1)) {
		fault->cause = CSINK_CAUSE_BAD_VALUE;
		strcpy(fault->field, call->cpu == -1 ? "cpu" : "pid");
		csink_explain_text(fault, "a control group (PERF_FLAG_PID_CGROUP) is counted on one CPU at a time");
		csink_explain_remedy(fault, "give its directory's fd as pid, and a cpu; repeat for each CPU");
	} else if (err == EBADF) {
		csink_explain_text(fault, "fd %d is no directory of the perf_event control group", (int)call->pid);
		csink_explain_remedy(fault, "open a directory of cgroup2, or of the perf_event hierarchy of cgroup v1");
	} else if (err == EACCES || err == EPERM) {
		csink_explain_permission(&probe->system, 0, "counting a control group", "", fault);
	} else {
		strcpy(fault->field, "cpu");
		describe_cpu(probe, err, fault);
	}
	probe->flags &= ~(unsigned long)PERF_FLAG_PID_CGROUP;
	probe->pid = 0;
	probe->cpu = -1;
}

/* ---- pid and cpu ------------------------------------------------------------------------------------------------- */

/* pid first, on any CPU; then cpu with it. */
static void check_task(struct csink_probe *probe)
{
	struct csink_explanation *fault;
	int err;

	probe->pid = probe->call->pid;
	err = probe->pid ? csink_probe_try(probe) : 0;
	if (err) {
		fault = csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "pid");
		describe_task(probe, err, fault);
		probe->pid = 0;
	}
	probe->cpu = probe->call->cpu;
	err = probe->cpu != -1 ? csink_probe_try(probe) : 0;
	if (!err)
		return;
	fault = csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "cpu");
	describe_cpu(probe, err, fault);
	probe->cpu = -1;
}

static void check_whole_cpu(struct csink_probe *probe)
{
	struct csink_explanation *fault;
	int err;

	probe->pid = -1;
	probe->cpu = probe->call->cpu;
	err = csink_probe_try(probe);
	if (!err || objects_to_sigtrap(probe, err))
		return;
	fault = csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "cpu");
	if (probe->call->cpu == -1)
		describe_no_target(probe, fault);
	else
		describe_cpu(probe, err, fault);
	probe->pid = 0;
	probe->cpu = -1;
}

void csink_probe_target(struct csink_probe *probe)
{
	check_flags(probe);
	if (probe->whole_cpus)
		return; /* taken over with the event */
	if (probe->call->flags & PERF_FLAG_PID_CGROUP)
		check_cgroup(probe);
	else if (probe->call->pid == -1)
		check_whole_cpu(probe);
	else
		check_task(probe);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static void describe_group_fd(int fd, struct csink_explanation *fault)
{
	CSINK_KEEP_ERRNO;
	char path[64], target[64] = "";
	ssize_t length;

	fault->cause = CSINK_CAUSE_CALLER;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	if (fcntl(fd, F_GETFD) < 0)
		csink_explain_text(fault, "group_fd %d is not open", fd);
	else
		csink_explain_text(fault, "group_fd %d is not a perf event but %s", fd,
				   target[0] ? target : "another file");
	csink_explain_remedy(fault, "give the fd of the group's leader, or -1");
}

/* What the member may not share with its leader: tried by taking it away. */
static bool objects_in_group(struct csink_probe *probe, int err)
{
	struct perf_event_attr whole = probe->attr;
	struct csink_explanation *fault;

	probe->attr.inherit = !probe->attr.inherit;
	if (probe->attr.inherit_thread && !probe->attr.inherit)
		probe->attr.inherit_thread = 0;
	if (!csink_probe_try(probe)) {
		fault = csink_probe_fault(probe, err, CSINK_CAUSE_GROUP, "inherit");
		csink_explain_text(fault, "the leader has inherit %s, and a group has to agree on it",
				   whole.inherit ? "clear" : "set");
		csink_explain_remedy(fault, "%s inherit", whole.inherit ? "clear" : "set");
		return true;
	}
	probe->attr = whole;
	probe->attr.use_clockid = 0;
	probe->attr.clockid = 0;
	if (whole.use_clockid && !csink_probe_try(probe)) {
		fault = csink_probe_fault(probe, err, CSINK_CAUSE_GROUP, "clockid");
		csink_explain_text(fault, "the leader is stamped by another clock");
		csink_explain_remedy(fault, "give leader and members the same use_clockid and clockid");
		return true;
	}
	probe->attr = whole;
	probe->attr.type = PERF_TYPE_SOFTWARE;
	probe->attr.config = PERF_COUNT_SW_DUMMY;
	probe->attr.config1 = probe->attr.config2 = 0;
	probe->attr.precise_ip = 0;
	if (whole.type != PERF_TYPE_SOFTWARE && !csink_probe_try(probe)) {
		fault = csink_probe_fault(probe, err, CSINK_CAUSE_GROUP, "group_fd");
		csink_explain_text(fault,
				   "the PMU cannot count this event together with those in the group already: no "
				   "counter is left, or they are of different PMUs");
		csink_explain_remedy(fault, "make the group smaller, or open this event on its own");
		return true;
	}
	probe->attr = whole;
	return false;
}

static void describe_group(struct csink_probe *probe, int err)
{
	struct csink_explanation *fault;

	if (err == EINVAL && objects_in_group(probe, err))
		return;
	fault = csink_probe_fault(probe, err, CSINK_CAUSE_GROUP, "group_fd");
	switch (err) {
	case EBADF:
		describe_group_fd(probe->call->group_fd, fault);
		break;
	case ENODEV:
		csink_explain_text(fault, "the task that the group's leader counted has ended");
		csink_explain_remedy(fault, "close the group, and open it on a task that lives");
		break;
	case E2BIG:
		csink_explain_text(fault,
				   "with this event, reading the group (or a sample of it) would take over 16 KiB");
		csink_explain_remedy(fault, "split the group");
		break;
	default:
		csink_explain_text(fault, "group_fd is no leader, or counts another task or CPU, or %s",
				   probe->call->flags & PERF_FLAG_FD_OUTPUT ? "has no ring that can be shared"
									    : "is stamped by another clock");
		csink_explain_remedy(fault,
				     "open members with the pid, cpu and clock of their leader, whose own group_fd was "
				     "-1");
	}
}

/* Only a leader may be pinned or exclusive, and an AUX sample needs a leader that records AUX. */
static void check_leader_only(struct csink_probe *probe, bool in_group)
{
	struct csink_explanation *fault;
	int err;

	for (int which = 0; which < 2; which++) {
		struct perf_event_attr good = probe->attr;

		if (which == 0 ? !probe->want.pinned : !probe->want.exclusive)
			continue;
		if (which == 0)
			probe->attr.pinned = 1;
		else
			probe->attr.exclusive = 1;
		err = csink_probe_try(probe);
		if (!err)
			continue;
		fault = csink_probe_fault(probe, err, in_group ? CSINK_CAUSE_GROUP : CSINK_CAUSE_RESOURCE,
					  which == 0 ? "pinned" : "exclusive");
		csink_explain_text(fault, in_group ? "only a group's leader can be pinned or exclusive"
						   : "another event has the PMU to itself");
		csink_explain_remedy(fault, in_group ? "set it in the leader" : "stop the other one");
		probe->attr = good;
	}
	if (!(probe->want.sample_type & PERF_SAMPLE_AUX))
		return;
	probe->attr.sample_type |= PERF_SAMPLE_AUX;
	probe->attr.aux_sample_size = probe->want.aux_sample_size;
	err = csink_probe_try(probe);
	if (!err)
		return;
	fault = csink_probe_fault(probe, err, CSINK_CAUSE_GROUP, "aux_sample_size");
	csink_explain_text(fault, "an AUX sample needs a leader that records AUX data (Intel PT, CoreSight, SPE)");
	csink_explain_remedy(fault, "open it in the group of such an event, or leave AUX out");
}

void csink_probe_group(struct csink_probe *probe)
{
	bool in_group = probe->call->group_fd != -1;
	int err;

	if (in_group) {
		probe->group_fd = probe->call->group_fd;
		probe->flags |= probe->call->flags & (PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT);
		err = csink_probe_try(probe);
		if (err) {
			describe_group(probe, err);
			probe->group_fd = -1;
			in_group = false;
		} else if (probe->flags & PERF_FLAG_FD_NO_GROUP) {
			in_group = false;
		}
	}
	check_leader_only(probe, in_group);
}
