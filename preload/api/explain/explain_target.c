/*
 * Explaining a failed perf_event_open: on which target (pid, cpu, control group), and in which group. By now the attr
 * opens on the calling task, or its faults are known and left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "preload/api/explain/explain_probe.h"
#include "preload/core/program_file.h"
#include "preload/core/status.h"
#include "preload/core/sysfs.h"

#define KNOWN_FLAGS (PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT | PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC)

static void check_flags(struct csink_probe *probe)
{
	unsigned long extra = probe->call->flags & ~(unsigned long)KNOWN_FLAGS;
	int err;

	if (!extra)
		return;
	probe->flags |= extra;
	err = csink_probe_try(probe);
	probe->flags &= ~extra;
	if (err)
		csink_probe_blame(probe, err, CSINK_CAUSE_BAD_VALUE, "flags", "leave them out",
				  "this kernel does not know the bits 0x%lx of flags", extra);
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

	if (csink_status_read(pid, &status) < 0) {
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL, "check the number; it may have ended",
				 "there is no process or thread %d (here, or in this pid namespace)", (int)pid);
	} else if (has_other_threads(pid)) {
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL, "",
				 "the main thread of %d has ended, while other threads of it live", (int)pid);
		csink_explain_remedy(fault, "attach to the others: /proc/%d/task", (int)pid);
	} else {
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL, "nothing is left to be counted",
				 "process %d has ended and waits to be reaped (a zombie)", (int)pid);
	}
}

static void describe_foreign(const struct csink_probe *probe, pid_t pid, struct csink_explanation *fault)
{
	struct csink_status status;

	if (csink_status_read(pid, &status) == 0 && status.uid != probe->system.euid)
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL,
				 "run as that user, or grant CAP_PERFMON (before Linux 5.8 and for sigtrap: "
				 "CAP_SYS_PTRACE)",
				 "process %d belongs to uid %u, and this is uid %u without CAP_PERFMON", (int)pid,
				 (unsigned)status.uid, (unsigned)probe->system.euid);
	else
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL, "grant CAP_PERFMON (for sigtrap: CAP_SYS_PTRACE)",
				 "process %d may not be looked into: it has run a setuid, setgid or unreadable "
				 "program, has set PR_SET_DUMPABLE to 0, has more capabilities, or lives in another "
				 "user namespace",
				 (int)pid);
}

static void describe_task(const struct csink_probe *probe, struct csink_explanation *fault)
{
	pid_t pid = probe->call->pid;

	if (fault->err == ESRCH)
		describe_gone(pid, fault);
	else if (fault->err == EACCES || fault->err == EPERM)
		describe_foreign(probe, pid, fault);
	else if (fault->err == EINTR)
		csink_explain_as(fault, CSINK_CAUSE_RETRY, NULL, "call again",
				 "process %d is inside exec(), and a signal came while waiting for it", (int)pid);
	else
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL, "", "the event cannot be opened on task %d",
				 (int)pid);
}

/* ---- CPUs -------------------------------------------------------------------------------------------------------- */

static void describe_cpu(const struct csink_probe *probe, struct csink_explanation *fault)
{
	char online[128] = "?";
	int cpu = probe->call->cpu;

	csink_sysfs_read(online, sizeof(online), "/sys/devices/system/cpu/online");
	if (fault->err == EACCES || fault->err == EPERM) {
		strcpy(fault->field, "pid");
		csink_explain_permission(&probe->system, 0, "counting a whole CPU (pid -1)", "count a process, or ",
					 fault);
	} else if (fault->err == ENODEV) {
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL, "choose one of those",
				 "CPU %d is offline; online are %s", cpu, online);
	} else {
		csink_explain_as(fault, CSINK_CAUSE_TARGET, NULL,
				 probe->whole_cpus ? "choose one of those that is in the PMU's cpumask"
						   : "choose one of those",
				 "the event cannot be opened on CPU %d; online are %s", cpu, online);
	}
}

/* A sigtrap event signals the task that it counts, so it needs one. */
static bool objects_to_sigtrap(struct csink_probe *probe, int err)
{
	if (!probe->attr.sigtrap || probe->pid != -1)
		return false;
	probe->attr.sigtrap = 0;
	if (csink_probe_try(probe)) {
		probe->attr.sigtrap = 1;
		return false;
	}
	csink_probe_blame(probe, err, CSINK_CAUSE_BAD_VALUE, "sigtrap", "open it on a task, or leave sigtrap out",
			  "a sigtrap event signals the task that it counts, and pid -1 is none");
	return true;
}

/* ---- control groups ---------------------------------------------------------------------------------------------- */

/* Else the event is one of other CPUs. */
static bool opens_on_whole_cpu(struct csink_probe *probe)
{
	int err;

	probe->flags &= ~(unsigned long)PERF_FLAG_PID_CGROUP;
	probe->pid = -1;
	err = csink_probe_try(probe);
	probe->flags |= PERF_FLAG_PID_CGROUP;
	probe->pid = probe->call->pid;
	return !err;
}

static void check_cgroup(struct csink_probe *probe)
{
	const struct csink_perf_call *call = probe->call;
	int err;

	probe->flags |= PERF_FLAG_PID_CGROUP;
	probe->pid = call->pid;
	probe->cpu = call->cpu;
	err = csink_probe_try(probe);
	if (!err)
		return;
	if (err == EINVAL && (call->pid == -1 || call->cpu == -1))
		csink_probe_blame(probe, err, CSINK_CAUSE_BAD_VALUE, call->cpu == -1 ? "cpu" : "pid",
				  "give its directory's fd as pid, and a cpu; repeat for each CPU",
				  "a control group (PERF_FLAG_PID_CGROUP) is counted on one CPU at a time");
	else if (err == EBADF)
		csink_probe_blame(probe, err, CSINK_CAUSE_TARGET, "pid",
				  "open a directory of cgroup2, or of the perf_event hierarchy of cgroup v1",
				  "fd %d is no directory of the perf_event control group", (int)call->pid);
	else if (err == ENOENT && opens_on_whole_cpu(probe))
		csink_probe_blame(
			probe, err, CSINK_CAUSE_TARGET, "pid",
			"open the group's directory in the perf_event hierarchy of cgroup v1 (mount -t cgroup "
			"-o perf_event)",
			"fd %d is a control group of a hierarchy without the perf_event controller, which one "
			"of cgroup v1 has",
			(int)call->pid);
	else if (err == EACCES || err == EPERM)
		csink_explain_permission(&probe->system, 0, "counting a control group", "",
					 csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "pid"));
	else
		describe_cpu(probe, csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "cpu"));
	probe->flags &= ~(unsigned long)PERF_FLAG_PID_CGROUP;
	probe->pid = 0;
	probe->cpu = -1;
}

/* ---- pid and cpu ------------------------------------------------------------------------------------------------- */

/* pid first, on any CPU; then cpu with it. */
static void check_task(struct csink_probe *probe)
{
	int err;

	probe->pid = probe->call->pid;
	err = probe->pid ? csink_probe_try(probe) : 0;
	if (err) {
		describe_task(probe, csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "pid"));
		probe->pid = 0;
	}
	probe->cpu = probe->call->cpu;
	err = probe->cpu != -1 ? csink_probe_try(probe) : 0;
	if (!err)
		return;
	describe_cpu(probe, csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "cpu"));
	probe->cpu = -1;
}

static void check_whole_cpu(struct csink_probe *probe)
{
	int err;

	probe->pid = -1;
	probe->cpu = probe->call->cpu;
	err = csink_probe_try(probe);
	if (!err || objects_to_sigtrap(probe, err))
		return;
	if (probe->call->cpu == -1)
		csink_probe_blame(probe, err, CSINK_CAUSE_BAD_VALUE, "cpu", "give a cpu, or a pid",
				  "pid -1 means every task of one CPU, so cpu cannot be -1 as well");
	else
		describe_cpu(probe, csink_probe_fault(probe, err, CSINK_CAUSE_TARGET, "cpu"));
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

static void detail_group_fd(const struct csink_probe *probe, struct csink_explanation *fault)
{
	CSINK_KEEP_ERRNO;
	const char *remedy = "give the fd of the group's leader, or -1";
	int fd = probe->call->group_fd;
	char target[64];

	csink_program_fd_path(fd, target, sizeof(target));
	if (fcntl(fd, F_GETFD) < 0)
		csink_explain_as(fault, CSINK_CAUSE_CALLER, NULL, remedy, "group_fd %d is not open", fd);
	else
		csink_explain_as(fault, CSINK_CAUSE_CALLER, NULL, remedy, "group_fd %d is not a perf event but %s", fd,
				 target[0] ? target : "another file");
}

static void detail_leader(const struct csink_probe *probe, struct csink_explanation *fault)
{
	csink_explain_as(fault, CSINK_CAUSE_GROUP, NULL,
			 "open members with the pid, cpu and clock of their leader, whose own group_fd was -1",
			 "group_fd is no leader, or counts another task or CPU, or %s",
			 probe->call->flags & PERF_FLAG_FD_OUTPUT ? "has no ring that can be shared"
								  : "is stamped by another clock");
}

static const struct csink_verdict of_group[] = {
	{"group_fd", EBADF, 0, NULL, NULL, 0, detail_group_fd},
	{"group_fd", ENODEV, CSINK_CAUSE_GROUP, "the task that the group's leader counted has ended",
	 "close the group, and open it on a task that lives", 0, NULL},
	{"group_fd", E2BIG, CSINK_CAUSE_GROUP,
	 "with this event, reading the group (or a sample of it) would take over 16 KiB", "split the group", 0, NULL},
	{"group_fd", 0, 0, NULL, NULL, 0, detail_leader},
};

/* What the member may not share with its leader: tried by taking it away. */
static bool objects_in_group(struct csink_probe *probe, int err)
{
	struct perf_event_attr whole = probe->attr;

	probe->attr.inherit = !probe->attr.inherit;
	if (probe->attr.inherit_thread && !probe->attr.inherit)
		probe->attr.inherit_thread = 0;
	if (!csink_probe_try(probe)) {
		csink_probe_blame(
			probe, err, CSINK_CAUSE_GROUP, "inherit", whole.inherit ? "clear inherit" : "set inherit",
			"the leader has inherit %s, and a group has to agree on it", whole.inherit ? "clear" : "set");
		return true;
	}
	probe->attr = whole;
	probe->attr.use_clockid = 0;
	probe->attr.clockid = 0;
	if (whole.use_clockid && !csink_probe_try(probe)) {
		csink_probe_blame(probe, err, CSINK_CAUSE_GROUP, "clockid",
				  "give leader and members the same use_clockid and clockid",
				  "the leader is stamped by another clock");
		return true;
	}
	probe->attr = whole;
	probe->attr.type = PERF_TYPE_SOFTWARE;
	probe->attr.config = PERF_COUNT_SW_DUMMY;
	probe->attr.config1 = probe->attr.config2 = 0;
	probe->attr.precise_ip = 0;
	if (whole.type != PERF_TYPE_SOFTWARE && !csink_probe_try(probe)) {
		csink_probe_blame(probe, err, CSINK_CAUSE_GROUP, "group_fd",
				  "make the group smaller, or open this event on its own",
				  "the PMU cannot count this event together with those in the group already: no "
				  "counter is left, or they are of different PMUs");
		return true;
	}
	probe->attr = whole;
	return false;
}

static void check_exclusive(struct csink_probe *probe, bool in_group, const char *field, bool pinned)
{
	struct perf_event_attr good = probe->attr;
	int err;

	if (pinned)
		probe->attr.pinned = 1;
	else
		probe->attr.exclusive = 1;
	err = csink_probe_try(probe);
	if (!err)
		return;
	if (in_group)
		csink_probe_blame(probe, err, CSINK_CAUSE_GROUP, field, "set it in the leader",
				  "only a group's leader can be pinned or exclusive");
	else
		csink_probe_blame(probe, err, CSINK_CAUSE_RESOURCE, field, "stop the other one",
				  "another event has the PMU to itself");
	probe->attr = good;
}

/* Only a leader may be pinned or exclusive, and an AUX sample needs a leader that records AUX. */
static void check_leader_only(struct csink_probe *probe, bool in_group)
{
	int err;

	if (probe->want.pinned)
		check_exclusive(probe, in_group, "pinned", true);
	if (probe->want.exclusive)
		check_exclusive(probe, in_group, "exclusive", false);
	if (!(probe->want.sample_type & PERF_SAMPLE_AUX))
		return;
	probe->attr.sample_type |= PERF_SAMPLE_AUX;
	probe->attr.aux_sample_size = probe->want.aux_sample_size;
	err = csink_probe_try(probe);
	if (err)
		csink_probe_blame(probe, err, CSINK_CAUSE_GROUP, "aux_sample_size",
				  "open it in the group of such an event, or leave AUX out",
				  "an AUX sample needs a leader that records AUX data (Intel PT, CoreSight, SPE)");
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
			if (err != EINVAL || !objects_in_group(probe, err))
				csink_probe_judge(
					probe, err, "group_fd",
					csink_verdict_find(of_group, CSINK_ARRAY_SIZE(of_group), "group_fd", err));
			probe->group_fd = -1;
			in_group = false;
		} else if (probe->flags & PERF_FLAG_FD_NO_GROUP) {
			in_group = false;
		}
	}
	check_leader_only(probe, in_group);
}
