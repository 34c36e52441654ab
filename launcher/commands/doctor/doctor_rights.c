/* The doctor: may this process open events at all, and of what? Kernel, paranoid, capabilities, filters, modules. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "launcher/commands/doctor/doctor.h"
#include "preload/core/sysfs.h"

static void check_kernel(struct csink_doctor *doctor)
{
	bool has_perf = !doctor->refused || doctor->refusal.cause != CSINK_CAUSE_NO_PERF;
	struct utsname uts;

	uname(&uts);
	csink_doctor_add(doctor, "kernel", has_perf ? CSINK_LEVEL_OK : CSINK_LEVEL_FAIL,
			 has_perf ? "" : doctor->refusal.remedy, "%s %s %s, %s perf events", uts.sysname, uts.release,
			 uts.machine, has_perf ? "with" : "built without");
}

/* Without /proc: what was tried says what it lets through. */
static void check_unreadable(struct csink_doctor *doctor)
{
	if (doctor->refused)
		return;
	csink_doctor_add(doctor, "paranoid", doctor->user_only ? CSINK_LEVEL_WARN : CSINK_LEVEL_NOTE,
			 doctor->system.has_proc
				 ? ""
				 : "mount -t proc proc /proc; without it commands can be counted, but not profiled",
			 "kernel.perf_event_paranoid cannot be read: %s; events of the kernel's side %s",
			 doctor->system.has_proc ? "it is hidden here" : "/proc is not mounted",
			 doctor->user_only ? "do not open: samples come from user space only" : "open");
}

static void check_paranoid(struct csink_doctor *doctor)
{
	const struct csink_perf_system *system = &doctor->system;

	if (!system->has_paranoid) {
		check_unreadable(doctor);
		return;
	}
	if (doctor->refused && doctor->refusal.cause == CSINK_CAUSE_PARANOID) {
		csink_doctor_add(doctor, "paranoid", CSINK_LEVEL_FAIL, doctor->refusal.remedy, "%s",
				 doctor->refusal.text);
		return;
	}
	if (csink_perf_system_allows(system, 1)) {
		bool all = csink_perf_system_allows(system, 0);

		csink_doctor_add(doctor, "paranoid", CSINK_LEVEL_OK, "",
				 "kernel.perf_event_paranoid is %lld%s; the kernel's side%s may be observed",
				 (long long)system->paranoid,
				 system->paranoid <= 1                        ? ""
				 : system->paranoid >= 3 && system->has_admin ? ", which CAP_SYS_ADMIN overrides"
									      : ", which CAP_PERFMON overrides",
				 all ? " and whole CPUs" : " of own processes");
		return;
	}
	csink_doctor_add(doctor, "paranoid", CSINK_LEVEL_WARN,
			 system->in_user_ns ? "sysctl kernel.perf_event_paranoid=1 outside the namespace"
					    : "sysctl kernel.perf_event_paranoid=1, or grant CAP_PERFMON",
			 "kernel.perf_event_paranoid is %lld, and CAP_PERFMON %s: samples come from user space only, "
			 "and blocked time is not seen",
			 (long long)system->paranoid,
			 system->has_perfmon ? "of a user namespace does not override it" : "is missing");
}

static void check_capabilities(struct csink_doctor *doctor)
{
	const struct csink_perf_system *system = &doctor->system;

	if (system->has_perfmon && system->in_user_ns)
		csink_doctor_add(doctor, "capabilities", CSINK_LEVEL_WARN,
				 "run outside the namespace, or see paranoid, above",
				 "uid %u holds CAP_PERFMON in a user namespace only, which perf does not accept",
				 (unsigned)system->euid);
	else
		csink_doctor_add(doctor, "capabilities", CSINK_LEVEL_OK, "", "uid %u%s, %s CAP_PERFMON",
				 (unsigned)system->euid, system->in_user_ns ? " in a user namespace" : "",
				 system->has_perfmon ? "with" : "without");
}

static void check_seccomp(struct csink_doctor *doctor)
{
	if (doctor->refused && doctor->refusal.cause == CSINK_CAUSE_SECCOMP)
		csink_doctor_add(doctor, "seccomp", CSINK_LEVEL_FAIL, doctor->refusal.remedy, "%s (%s)",
				 doctor->refusal.text, csink_errno_name(doctor->refusal.err));
	else
		csink_doctor_add(doctor, "seccomp", CSINK_LEVEL_OK, "", "%s",
				 doctor->system.seccomp > 0 ? "a filter is in force, and lets perf_event_open through"
				 : doctor->system.seccomp == 0
					 ? "no filter"
					 : "not known without /proc; perf_event_open is let through");
}

/* Only when they matter: an answer that neither filters nor paranoid explain. */
static void check_modules(struct csink_doctor *doctor)
{
	char modules[200], lockdown[100];

	if (csink_sysfs_read(lockdown, sizeof(lockdown), "/sys/kernel/security/lockdown") > 0 &&
	    !strstr(lockdown, "[none]")) {
		csink_doctor_add(doctor, "lockdown", CSINK_LEVEL_NOTE, "", "the kernel is locked down: %s", lockdown);
	}
	if (!doctor->refused ||
	    (doctor->refusal.cause != CSINK_CAUSE_LSM && doctor->refusal.cause != CSINK_CAUSE_LIMIT))
		return;
	if (csink_sysfs_read(modules, sizeof(modules), "/sys/kernel/security/lsm") <= 0)
		strcpy(modules, "their list cannot be read");
	if (doctor->refusal.cause == CSINK_CAUSE_LSM)
		csink_doctor_add(doctor, "modules", CSINK_LEVEL_FAIL, doctor->refusal.remedy, "%s: %s",
				 doctor->refusal.text, modules);
	else
		csink_doctor_add(doctor, "fds", CSINK_LEVEL_FAIL, doctor->refusal.remedy, "%s", doctor->refusal.text);
}

/* Without /proc the kernel is asked. Not done in other processes than our own: a filter may kill for the question. */
static void ask_capabilities(struct csink_perf_system *system)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}, {0, 0, 0}};
	uint64_t held;

	if (syscall(SYS_capget, &header, data))
		return;
	held = data[0].effective | (uint64_t)data[1].effective << 32;
	system->has_admin = held >> CAP_SYS_ADMIN & 1;
	system->has_perfmon = held >> CAP_PERFMON & 1 || system->has_admin;
	system->has_ipc_lock = held >> CAP_IPC_LOCK & 1;
}

/* What is allowed shows best in what opens: an event that counts nothing, with the kernel's side. */
static bool sees_kernel(const struct csink_doctor *doctor)
{
	struct perf_event_attr attr = csink_perf_least();
	int fd;

	attr.exclude_kernel = attr.exclude_hv = 0;
	fd = csink_perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || (fd != -EACCES && fd != -EPERM && csink_perf_system_allows(&doctor->system, 1));
}

void csink_doctor_check_rights(struct csink_doctor *doctor)
{
	if (!doctor->system.has_proc)
		ask_capabilities(&doctor->system);
	doctor->user_only = !sees_kernel(doctor);
	check_kernel(doctor);
	check_paranoid(doctor);
	check_capabilities(doctor);
	check_seccomp(doctor);
	check_modules(doctor);
}
