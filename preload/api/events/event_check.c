/*
 * Modifiers that the kernel takes and does not heed, as the kernel's and the PMUs' sources have them: the event would
 * read as 0, or as what it counts without the modifier. Such events are refused here, since the kernel does not refuse
 * them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/event.h"
#include "preload/api/events/pfm.h"
#include "preload/core/sysfs.h"

#define DEVICES "/sys/bus/event_source/devices"

#if defined(__aarch64__)
#define IS_ARM true
#else
#define IS_ARM false
#endif
/* The architecture's own events. Beside them there is CHAIN, which joins two counters, and which sysfs leaves out. */
#define ARM_COMMON_EVENTS 0x40
#define ARM_CHAIN 0x1e

/* The device by which virtual machines are run; sysfs shows it in containers, too. */
#define KVM "/sys/class/misc/kvm"

/*
 * An event that excludes user and kernel counts the hypervisor alone. x86 cannot count a hypervisor; on ARM the part of
 * a hypervisor above the kernel is not visible to it, and its own part as a hypervisor counts as the kernel's.
 */
static const char *check_hypervisor(const struct csink_event_spec *spec)
{
	if (!spec->attr.exclude_user || !spec->attr.exclude_kernel)
		return NULL;
	return "':h' counts the hypervisor alone, and this kind of machine does not show its guests such counts: it "
	       "would be 0; leave out h";
}

static const char *check_guests(const struct csink_event_spec *spec)
{
	if (!spec->attr.exclude_host)
		return NULL;
	if (csink_event_is_kernel_counted(spec)) /* guests have none of it */
		return "the kernel counts it where it happens, and has no part of it in guests: it would ignore ':G'; "
		       "leave out G";
	if (access(KVM, F_OK))
		return "':G' counts in virtual machines that this kernel runs, and it runs none (there is no KVM): it "
		       "would be 0; leave out G";
	return NULL;
}

/* x86 says EOPNOTSUPP by itself. */
static const char *check_precise(const struct csink_event_spec *spec)
{
	if (!IS_ARM || !spec->attr.precise_ip || csink_event_is_kernel_counted(spec))
		return NULL;
	return "ARM's PMUs cannot sample with less skid, and the kernel would ignore it; leave out p / precise";
}

/* Does the PMU name an event of this code? True also where it names none at all. */
static bool is_named(const char *pmu, uint64_t code)
{
	bool any = false;
	const char *name;
	char text[64];

	CSINK_SYSFS_EACH(name, DEVICES "/%s/events", pmu) {
		if (csink_sysfs_read(text, sizeof(text), DEVICES "/%s/events/%s", pmu, name) <= 0 ||
		    strncmp(text, "event=", 6))
			continue;
		if (strtoull(text + 6, NULL, 0) == code)
			return true;
		any = true;
	}
	return !any;
}

/* "armv8_pmuv3", "armv8_cortex_a53", "armv9_cortex_a510": they share the architecture's codes. */
static bool is_arm_pmu(const char *name)
{
	return !strncmp(name, "armv", 4);
}

/* An event by the code that an ARM CPU itself has for it. */
static bool is_arm_code(const struct csink_event_spec *spec)
{
	return IS_ARM && !csink_event_is_kernel_counted(spec) &&
	       (spec->attr.type == PERF_TYPE_RAW || is_arm_pmu(spec->pmu));
}

/*
 * ARM's CPUs say which of the architecture's events they count, and the kernel names those in sysfs; but it opens the
 * others as well, which then read as 0. What is beyond those codes is each CPU's own.
 */
static const char *check_implemented(const struct csink_event_spec *spec)
{
	bool any = false;
	const char *name;

	if (!is_arm_code(spec) || spec->attr.config >= ARM_COMMON_EVENTS || spec->attr.config == ARM_CHAIN)
		return NULL;
	CSINK_SYSFS_EACH(name, DEVICES) {
		if (!is_arm_pmu(name) || (spec->pmu[0] && strcmp(spec->pmu, name)))
			continue;
		if (is_named(name, spec->attr.config))
			return NULL;
		any = true;
	}
	return any ? "this CPU does not have that one of ARM's events, and the kernel would count 0 for it "
		     "(those that it has are in " DEVICES "/armv*/events)"
		   : NULL;
}

bool csink_event_doubt_zero(const struct csink_event_spec *spec, char *why, size_t size)
{
	uint64_t code = spec->attr.config & UINT16_MAX;
	char name[96];

	if (!is_arm_code(spec) || code < ARM_COMMON_EVENTS)
		return false;
	switch (csink_pfm_find_code(code, name, sizeof(name))) {
	case CSINK_PFM_PRESENT:
		snprintf(why, size,
			 "is 0, which is right if none happened: CPUs of this model have it (%s), but a virtual or "
			 "emulated one may not, and none says whether it has",
			 name);
		break;
	case CSINK_PFM_ABSENT:
		snprintf(why, size,
			 "is 0, which may be meaningless: libpfm4 knows no event 0x%llx of this CPU (%s), and the CPU "
			 "does not say whether it has it",
			 (unsigned long long)code, name);
		break;
	case CSINK_PFM_NO_TABLE:
		snprintf(why, size,
			 "is 0, which may be meaningless: this CPU does not say whether it has event 0x%llx, and "
			 "libpfm4 does not know it",
			 (unsigned long long)code);
		break;
	}
	return true;
}

static const char *check_kernels_own(const struct csink_event_spec *spec)
{
	if (spec->attr.type != PERF_TYPE_SOFTWARE || !spec->attr.exclude_kernel || !csink_event_is_kernels_own(spec))
		return NULL;
	return "it happens in the kernel only: without the kernel it would be 0; leave out u";
}

/* Those of uprobes happen in the program. */
static bool is_uprobes(const struct csink_event_spec *spec)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	char probes[8192], name[sizeof(spec->rec.name) + 1], *colon;
	int length = -ENOENT;

	snprintf(name, sizeof(name), ":%s", spec->rec.name);
	colon = strchr(name + 1, ':');
	if (!colon)
		return true; /* it has another name */
	*colon = '/';
	colon = strchr(colon, ':');
	strcpy(colon ? colon : name + strlen(name), " ");
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(places) && length < 0; i++)
		length = csink_sysfs_read(probes, sizeof(probes), "%s/uprobe_events", places[i]);
	if (length < 0)
		return length != -ENOENT;
	return length == sizeof(probes) - 1 || strstr(probes, name);
}

static const char *check_tracepoint(const struct csink_event_spec *spec)
{
	if (spec->attr.type != PERF_TYPE_TRACEPOINT || !spec->attr.exclude_kernel || is_uprobes(spec))
		return NULL;
	return "a tracepoint happens in the kernel: without the kernel it would be 0; leave out u";
}

static const char *check_clock(const struct csink_event_spec *spec)
{
	if (!(spec->rec.flags & CSINK_EVENT_CPU_NS) || !spec->attr.exclude_user)
		return NULL;
	return "the kernel's clocks count all of the CPU time, whatever is left out; leave out k";
}

int csink_event_check(const struct csink_event_spec *spec, const char **why)
{
	static const char *(*const checks[])(const struct csink_event_spec *) = {
		check_hypervisor,  check_guests,     check_precise, check_implemented,
		check_kernels_own, check_tracepoint, check_clock,
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(checks); i++) {
		*why = checks[i](spec);
		if (*why)
			return -EOPNOTSUPP;
	}
	return 0;
}

int csink_event_check_count(const struct csink_event_spec *spec, const char **why)
{
	int err = csink_event_check(spec, why);

	if (err || !(spec->rec.flags & CSINK_EVENT_CPU_NS) || !(spec->rec.flags & CSINK_EVENT_USER_ASKED))
		return err;
	*why = "the kernel's clocks count all of the CPU time, whatever is left out; leave out u";
	return -EOPNOTSUPP;
}

void csink_event_explain(const struct csink_event_spec *spec, const struct csink_perf_call *call, int err,
			 struct csink_explanation *why)
{
	csink_explain_open(call, err, why, 1);
	if (why->cause == CSINK_CAUSE_PARANOID && csink_event_is_kernels_own(spec))
		snprintf(why->remedy, sizeof(why->remedy),
			 "it happens in the kernel only: sysctl kernel.perf_event_paranoid=1, or grant CAP_PERFMON");
}

int csink_events_check(const struct csink_event_spec *specs, uint32_t nr, struct csink_event_error *err)
{
	const char *why;

	for (uint32_t i = 0; i < nr; i++) {
		int ret = csink_event_check(&specs[i], &why);

		if (!ret)
			continue;
		err->err = ret;
		err->offset = specs[i].offset;
		err->length = specs[i].length;
		snprintf(err->line, sizeof(err->line), "'%s': %s", specs[i].rec.name, why);
		return ret;
	}
	return 0;
}
