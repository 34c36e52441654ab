/*
 * Why perf_event_open said no: who refused is told apart by asking again with a NULL attr, which the kernel itself
 * answers with EFAULT and a seccomp filter with its own error.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher/run/outside.h"

static int read_paranoid(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -100;

	if (!f)
		return -100;
	if (fscanf(f, "%d", &level) != 1)
		level = -100;
	fclose(f);
	return level;
}

void csink_perf_refusal(int err, char *out, size_t size)
{
	int probe = csink_perf_open(NULL, 0, -1, -1, 0);
	int paranoid = read_paranoid();
	struct rlimit files;

	if (probe == -ENOSYS && paranoid == -100) {
		snprintf(out, size, "this kernel has no perf events");
	} else if (probe != -EFAULT) {
		snprintf(out, size, "a seccomp filter refuses perf_event_open (%s): a container's profile, most likely",
			 strerror(-probe));
	} else if (err == -EACCES && paranoid > 2) {
		snprintf(out, size, "kernel.perf_event_paranoid is %d: set it to 2, or give CAP_PERFMON", paranoid);
	} else if (err == -EACCES || err == -EPERM) {
		snprintf(out, size, "%s (kernel.perf_event_paranoid is %d, kernel.perf_event_mlock_kb or a security module "
				    "may refuse, too)", strerror(-err), paranoid);
	} else if (err == -EMFILE) {
		getrlimit(RLIMIT_NOFILE, &files);
		snprintf(out, size, "no file descriptor is free (ulimit -n is %llu)", (unsigned long long)files.rlim_cur);
	} else if (err == -ENOENT || err == -ENODEV) {
		snprintf(out, size, "this machine has no such event");
	} else if (err == -EOPNOTSUPP) {
		snprintf(out, size, "it counts whole CPUs, not processes");
	} else {
		snprintf(out, size, "perf_event_open: %s", strerror(-err));
	}
}
