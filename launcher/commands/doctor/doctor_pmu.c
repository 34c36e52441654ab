/* The doctor: the hardware's counters, and the watchdog that may have one of them. */
#include <stdio.h>
#include <string.h>

#include "launcher/base/format.h"
#include "launcher/commands/doctor/doctor.h"
#include "preload/core/sysfs.h"

#define DEVICES "/sys/bus/event_source/devices"

/* The names of the core PMUs, "cpu" or "cpu_core and cpu_atom"; how many there are. */
static uint32_t list_core_pmus(char *buf, size_t size)
{
	const char *name;
	uint32_t nr = 0;
	char cpus[16];

	buf[0] = '\0';
	CSINK_SYSFS_EACH(name, DEVICES) {
		if (strcmp(name, "cpu") && csink_sysfs_read(cpus, sizeof(cpus), DEVICES "/%s/cpus", name) <= 0)
			continue;
		csink_append(buf, size, "%s%s", nr++ ? " and " : "", name);
	}
	return nr;
}

/* What the kernel calls this machine, if it is a virtual one. */
static const char *hypervisor(char *buf, size_t size)
{
	char text[2048];

	if (csink_sysfs_read(buf, size, "/sys/hypervisor/type") > 0)
		return buf;
	/* x86 has a CPU flag for it, in the first two thousand bytes of the first CPU's entry. */
	if (csink_sysfs_read(text, sizeof(text), "/proc/cpuinfo") > 0 && strstr(text, " hypervisor ")) {
		snprintf(buf, size, "a virtual machine");
		return buf;
	}
	return NULL;
}

static void check_pmu(struct csink_doctor *doctor)
{
	struct csink_event_spec spec;
	char names[128], host[64], reason[200];
	const char *virtual = hypervisor(host, sizeof(host));
	uint32_t nr = list_core_pmus(names, sizeof(names));

	csink_events_auto(&spec, reason, sizeof(reason));
	strcpy(doctor->event, spec.rec.name);
	doctor->pmu_counts = !strcmp(spec.rec.name, "cycles");
	if (nr == 1)
		snprintf(doctor->core_pmu, sizeof(doctor->core_pmu), "%.63s", names);
	doctor->has_pmu = nr > 0 || doctor->pmu_counts;
	if (doctor->pmu_counts)
		csink_doctor_add(doctor, "pmu", CSINK_LEVEL_OK, "", "%s counts cycles%s", nr ? names : "the CPU",
				 nr > 1 ? " (hybrid: an event counts on the CPUs of its own PMU only)" : "");
	else if (nr && doctor->refused)
		csink_doctor_add(doctor, "pmu", CSINK_LEVEL_NOTE, "",
				 "%s is there, and was not tried: perf_event_open is refused", names);
	else if (nr)
		csink_doctor_add(doctor, "pmu", CSINK_LEVEL_WARN,
				 "see the holders of counters, below, and the watchdog", "%s is there, but: %s", names,
				 reason);
	else
		csink_doctor_add(doctor, "pmu", CSINK_LEVEL_WARN,
				 virtual ? "enable the virtual PMU on its host (KVM: -cpu host,pmu=on; some clouds: "
					   "larger or metal instances)"
					 : "",
				 "%s exposes no hardware counters%s", virtual ? virtual : "this machine",
				 doctor->refused ? "" : "; time is sampled by task-clock instead");
}

static void check_watchdog(struct csink_doctor *doctor)
{
	int64_t on;

	if (!doctor->has_pmu || csink_sysfs_read_number(&on, "/proc/sys/kernel/nmi_watchdog"))
		return;
	csink_doctor_add(doctor, "watchdog", on ? CSINK_LEVEL_NOTE : CSINK_LEVEL_OK,
			 on ? "sysctl kernel.nmi_watchdog=0 while measuring" : "", "%s",
			 on ? "the NMI watchdog holds one counter of each CPU, so groups are smaller by one"
			    : "the NMI watchdog is off and holds no counter");
}

void csink_doctor_check_pmu(struct csink_doctor *doctor)
{
	check_pmu(doctor);
	check_watchdog(doctor);
}
