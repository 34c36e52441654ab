/*
 * Explaining a failed perf_event_open: which event. When type and config fail as a whole, one thing after the other
 * that an event may object to (sampling, a config word, tasks, exclusion, raw data) is taken away; the first that helps
 * is to blame. If none helps, the event itself is not there, and sysfs says how far it is known.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "preload/api/explain/explain_probe.h"
#include "preload/core/sysfs.h"

#define DEVICES "/sys/bus/event_source/devices"

/* Find the PMU of a type in sysfs. Returns true and its name. */
static bool find_pmu(uint32_t type, char *name, size_t size)
{
	const char *entry;
	int64_t value;

	CSINK_SYSFS_EACH(entry, DEVICES) {
		if (csink_sysfs_read_number(&value, DEVICES "/%s/type", entry) || value != type)
			continue;
		snprintf(name, size, "%s", entry);
		return true;
	}
	return false;
}

/* A core PMU: "cpu" on x86 and others, or one with a list of its CPUs. */
static bool has_core_pmu(void)
{
	const char *entry;
	int64_t value;
	char cpus[8];

	CSINK_SYSFS_EACH(entry, DEVICES) {
		if ((!strcmp(entry, "cpu") && !csink_sysfs_read_number(&value, DEVICES "/cpu/type")) ||
		    csink_sysfs_read(cpus, sizeof(cpus), DEVICES "/%s/cpus", entry) > 0)
			return true;
	}
	return false;
}

/* ---- events that are not there ----------------------------------------------------------------------------------- */

static bool is_core_type(uint32_t type)
{
	return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW;
}

static void detail_missing(const struct csink_probe *probe, struct csink_explanation *fault)
{
	unsigned long long config = probe->want.config;
	uint32_t type = probe->want.type;
	char name[64];

	if (is_core_type(type) && !has_core_pmu()) {
		csink_explain_as(fault, CSINK_CAUSE_NO_PMU, "type",
				 "use task-clock, or enable the virtual PMU on the host",
				 "this machine exposes no PMU (most virtual machines do not)");
	} else if (type == PERF_TYPE_SOFTWARE) {
		csink_explain_as(fault, CSINK_CAUSE_NO_EVENT, NULL, "see 'countersink events'",
				 "this kernel has no software event number %llu", config);
	} else if (type == PERF_TYPE_TRACEPOINT) {
		csink_explain_as(fault, CSINK_CAUSE_NO_EVENT, NULL, "read it from events/SUBSYSTEM/NAME/id in tracefs",
				 "no tracepoint has the number %llu (or it cannot be sampled like this)", config);
	} else if (is_core_type(type)) {
		csink_explain_as(fault, CSINK_CAUSE_NO_EVENT, NULL, "'countersink events' shows which open here",
				 "this CPU has no event for config 0x%llx of type %u", config, type);
	} else if (find_pmu(type, name, sizeof(name))) {
		csink_explain_as(fault, CSINK_CAUSE_NO_EVENT, NULL, "", "PMU %s has no event for config 0x%llx", name,
				 config);
		csink_explain_remedy(fault, "its fields are in " DEVICES "/%s/format", name);
	} else {
		csink_explain_as(fault, CSINK_CAUSE_NO_EVENT, "type",
				 "read it from " DEVICES "/PMU/type, for it differs from boot to boot",
				 "no PMU of this machine has the type %u", type);
	}
}

/* ---- breakpoints ------------------------------------------------------------------------------------------------- */

/* What of its own fields the CPU, or the kernel for it, does not take. */
static void describe_breakpoint_fields(const struct perf_event_attr *want, struct csink_explanation *fault)
{
	unsigned long long address = want->bp_addr, length = want->bp_len;

	if (!want->bp_type || want->bp_type > 7)
		csink_explain_as(fault, CSINK_CAUSE_BAD_VALUE, "bp_type", "set HW_BREAKPOINT_RW, _W or _X",
				 "bp_type %u is none of read, write, execute", want->bp_type);
	else if (length != 1 && length != 2 && length != 4 && length != 8)
		csink_explain_as(fault, CSINK_CAUSE_BAD_VALUE, "bp_len", "to watch more, set several",
				 "a breakpoint is 1, 2, 4 or 8 bytes long, not %llu", length);
	else if (address % length)
		csink_explain_as(fault, CSINK_CAUSE_BAD_VALUE, "bp_addr", "align it, or watch fewer bytes",
				 "the address 0x%llx is no multiple of the length %llu", address, length);
	else
		csink_explain_as(fault, CSINK_CAUSE_BAD_VALUE, "bp_type", "set HW_BREAKPOINT_RW",
				 "this CPU has no breakpoint of type %u and %llu bytes (x86 watches reads only "
				 "together with writes, and executes %zu bytes)",
				 want->bp_type, length, sizeof(long));
}

static void describe_breakpoint(struct csink_probe *probe, int err, struct csink_explanation *fault)
{
	unsigned long long address = probe->want.bp_addr;

	if (err == ENOSPC)
		csink_explain_as(fault, CSINK_CAUSE_RESOURCE, NULL,
				 "use fewer breakpoints (x86 has four), or stop the debugger that holds them",
				 "all breakpoint registers of the CPU are in use");
	else if (err == EPERM || err == EACCES)
		csink_explain_as(fault, CSINK_CAUSE_PARANOID, "bp_addr",
				 "take an address of the program, or grant CAP_SYS_ADMIN",
				 "a breakpoint at the kernel's address 0x%llx needs CAP_SYS_ADMIN", address);
	else if (address >> 63 && probe->want.exclude_kernel)
		csink_explain_as(fault, CSINK_CAUSE_BAD_VALUE, "exclude_kernel",
				 "take an address of the program, or clear exclude_kernel (CAP_SYS_ADMIN)",
				 "a breakpoint at the kernel's address 0x%llx cannot leave the kernel out", address);
	else
		describe_breakpoint_fields(&probe->want, fault);
}

/* ---- by errno ---------------------------------------------------------------------------------------------------- */

static void detail_probe_path(const struct csink_probe *probe, struct csink_explanation *fault)
{
	const char *remedy = "config1 is the address of a path of less than 4096 bytes";

	if (fault->err == EFAULT)
		csink_explain_as(fault, CSINK_CAUSE_CALLER, "config1", remedy,
				 "the path of the probe, at 0x%llx, cannot be read",
				 (unsigned long long)probe->want.config1);
	else
		csink_explain_as(fault, CSINK_CAUSE_CALLER, "config1", remedy, "the path of the probe is too long");
}

static void detail_rights(const struct csink_probe *probe, struct csink_explanation *fault)
{
	bool traces = probe->want.type == PERF_TYPE_TRACEPOINT;

	if (traces && csink_perf_system_allows(&probe->system, -1))
		csink_explain_as(fault, CSINK_CAUSE_UNSUPPORTED, NULL, "choose another tracepoint",
				 "tracepoint %llu is closed to perf, whatever the privileges (ftrace keeps some to "
				 "itself)",
				 (unsigned long long)probe->want.config);
	else
		csink_explain_permission(&probe->system, traces ? -1 : -2, "opening this event", "", fault);
}

static const struct csink_verdict of_event[] = {
	{"config", EACCES, 0, NULL, NULL, 0, detail_rights},
	{"config", EPERM, 0, NULL, NULL, 0, detail_rights},
	{"config", EBUSY, CSINK_CAUSE_RESOURCE, "another event has this PMU to itself",
	 "'countersink doctor' names the holders of the counters", 0, NULL},
	{"config", EINTR, CSINK_CAUSE_RESOURCE, "this uprobe is in use by ftrace, which cannot share it",
	 "disable it in tracefs (echo 0 > events/uprobes/NAME/enable)", 0, NULL},
	{"config", EFAULT, 0, NULL, NULL, 0, detail_probe_path},
	{"config", E2BIG, 0, NULL, NULL, 0, detail_probe_path},
	{"config", EOPNOTSUPP, CSINK_CAUSE_UNSUPPORTED, "the event's PMU is there, but cannot do this event",
	 "'countersink events' shows which open here", 0, NULL},
	{"config", ENODEV, CSINK_CAUSE_UNSUPPORTED, "the CPU lacks what this event needs", "", 0, NULL},
	{"config", ENOENT, 0, NULL, NULL, 0, detail_missing},
	{"config", EINVAL, 0, NULL, NULL, 0, detail_missing},
	{"config", 0, CSINK_CAUSE_UNKNOWN, "the event itself is refused", "", 0, NULL},
};

/* ---- what an event may object to --------------------------------------------------------------------------------- */

static bool drop_sampling(struct perf_event_attr *attr)
{
	bool had = attr->sample_period;

	attr->freq = 0;
	attr->sample_period = 0;
	return had;
}

static bool drop_raw(struct perf_event_attr *attr)
{
	bool had = attr->sample_type & PERF_SAMPLE_RAW;

	attr->sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
	return had;
}

static bool drop_inherit(struct perf_event_attr *attr)
{
	bool had = attr->inherit;

	/* What needs it goes with it. */
	attr->inherit = attr->inherit_thread = 0;
	return had;
}

static bool drop_config1(struct perf_event_attr *attr)
{
	bool had = attr->config1;

	attr->config1 = 0;
	return had && attr->type != PERF_TYPE_BREAKPOINT;
}

static bool drop_config2(struct perf_event_attr *attr)
{
	bool had = attr->config2;

	attr->config2 = 0;
	return had && attr->type != PERF_TYPE_BREAKPOINT;
}

static bool drop_extended_type(struct perf_event_attr *attr)
{
	bool had = attr->type <= PERF_TYPE_HW_CACHE && attr->config >> 32;

	attr->config &= UINT32_MAX;
	return had && attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT;
}

static const struct {
	bool (*drop)(struct perf_event_attr *attr); /* false: there was nothing to drop */
	struct csink_verdict verdict;
} objections[] = {
	{drop_sampling,
	 {"sample_period", 0, CSINK_CAUSE_UNSUPPORTED,
	  "this event's PMU has no interrupt (or not for this event), so it counts but cannot sample",
	  "count only, or sample on another event", 0, NULL}},
	{drop_raw,
	 {"sample_type: RAW", 0, CSINK_CAUSE_PARANOID, "sampling the raw data of this tracepoint", "leave RAW out, or ",
	  -1, NULL}},
	{drop_config2,
	 {"config2", 0, CSINK_CAUSE_BAD_VALUE, "the PMU does not take that config2", "see its format directory", 0,
	  NULL}},
	{drop_config1,
	 {"config1", 0, CSINK_CAUSE_BAD_VALUE, "the PMU does not take that config1", "see its format directory", 0,
	  NULL}},
	{drop_extended_type,
	 {"config", 0, CSINK_CAUSE_NO_EVENT,
	  "the upper half of config, a PMU's type, names no core PMU of this machine",
	  "leave it out, or read it from the PMU's type file", 0, NULL}},
	{drop_inherit,
	 {"inherit", 0, CSINK_CAUSE_UNSUPPORTED, "this event cannot be inherited", "leave inherit out", 0, NULL}},
};

/* Does the event open for a whole CPU? Then a task is what it objects to, or the caller knows it. */
static bool try_whole_cpu(struct csink_probe *probe)
{
	int err;

	probe->pid = -1;
	probe->cpu = probe->call->cpu >= 0 ? probe->call->cpu : 0;
	err = csink_probe_try(probe);
	if (err && err != EACCES) {
		probe->pid = 0;
		probe->cpu = -1;
		return false;
	}
	probe->whole_cpus = true;
	if (probe->call->pid == -1 && probe->call->cpu >= 0 && !err)
		return true;
	if (err)
		csink_explain_permission(&probe->system, 0,
					 "counting a whole CPU, which is all that this event can do,", "",
					 csink_probe_fault(probe, err, CSINK_CAUSE_PARANOID, "pid"));
	else
		csink_probe_blame(probe, EINVAL, CSINK_CAUSE_UNSUPPORTED, probe->call->pid == -1 ? "cpu" : "pid",
				  "open it with pid -1 on a CPU of the PMU's cpumask",
				  "this event's PMU counts whole CPUs or packages, not tasks");
	probe->no_event = err;
	return true;
}

static bool try_objections(struct csink_probe *probe, int err)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(objections); i++) {
		struct perf_event_attr whole = probe->attr;

		if (objections[i].drop(&probe->attr) && !csink_probe_try(probe)) {
			csink_probe_judge(probe, err, objections[i].verdict.field, &objections[i].verdict);
			return true;
		}
		probe->attr = whole;
	}
	return false;
}

/*
 * Some PMUs count the whole machine and refuse to leave the kernel out. An unprivileged caller can then do nothing:
 * with the kernel it is EACCES, without it EINVAL.
 */
static bool try_excludes(struct csink_probe *probe, int err)
{
	struct perf_event_attr whole = probe->attr;
	int without;

	/* The kernel's own PMUs can leave out anything. */
	if (err != EINVAL || !(whole.exclude_kernel || whole.exclude_hv) || whole.type < PERF_TYPE_MAX)
		return false;
	probe->attr.exclude_kernel = probe->attr.exclude_hv = 0;
	without = csink_probe_try(probe);
	if (without && without != EACCES) {
		probe->attr = whole;
		return false;
	}
	if (without)
		csink_probe_blame(probe, err, CSINK_CAUSE_UNSUPPORTED, "exclude_kernel",
				  "count user and kernel together; that needs CAP_PERFMON, or sysctl "
				  "kernel.perf_event_paranoid=1",
				  "this event's PMU cannot leave the kernel out, or does not take this config");
	else
		csink_probe_blame(probe, err, CSINK_CAUSE_UNSUPPORTED, "exclude_kernel",
				  "count user and kernel together (no :u)",
				  "this event's PMU cannot leave the kernel out");
	return true;
}

void csink_probe_event(struct csink_probe *probe)
{
	struct perf_event_attr good = probe->attr;
	int err;

	probe->attr.type = probe->want.type;
	probe->attr.config = probe->want.config;
	probe->attr.config1 = probe->want.config1;
	probe->attr.config2 = probe->want.config2;
	probe->attr.bp_type = probe->want.bp_type;
#ifdef PERF_ATTR_SIZE_VER8
	probe->attr.config3 = probe->want.config3;
#endif
	if (!memcmp(&probe->attr, &good, sizeof(good)))
		return;
	err = csink_probe_try(probe);
	if (!err)
		return;
	if (err == EINVAL && try_whole_cpu(probe))
		err = csink_probe_try(probe);
	if (!err || (!probe->no_event && try_objections(probe, err)))
		return;
	if (!probe->no_event && !try_excludes(probe, err)) {
		if (probe->want.type == PERF_TYPE_BREAKPOINT && err != ENOENT)
			describe_breakpoint(probe, err, csink_probe_fault(probe, err, CSINK_CAUSE_UNKNOWN, NULL));
		else
			csink_probe_judge(probe, err, "config",
					  csink_verdict_find(of_event, CSINK_ARRAY_SIZE(of_event), "config", err));
	}
	probe->no_event = true;
	probe->attr = good;
	if (!probe->whole_cpus)
		return;
	probe->whole_cpus = false;
	probe->pid = 0;
	probe->cpu = -1;
}
