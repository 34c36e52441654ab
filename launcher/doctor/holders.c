/*
 * The doctor: which other processes have perf events open. An event shows as an fd of its owner, or as a mapping where
 * the fd has been closed. Events of processes that this user may not look into stay unseen, which is said.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/doctor/doctor.h"
#include "launcher/output/format.h"
#include "preload/counters/sysfs.h"

#define EVENT_FILE "anon_inode:[perf_event]"
#define MAX_NAMED 6

/* Count the fds of a process that are events. -errno if they cannot be seen. */
static int count_fds(int pid)
{
	struct csink_sysfs_dir dir;
	char path[64], target[64];
	const char *name;
	int nr = 0, err;

	err = csink_sysfs_dir_open(&dir, "/proc/%d/fd", pid);
	if (err)
		return err;
	while ((name = csink_sysfs_dir_next(&dir))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%.20s", pid, name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		nr += !strcmp(target, EVENT_FILE);
	}
	csink_sysfs_dir_close(&dir);
	return nr;
}

static int count_mappings(int pid)
{
	char path[64], *line = NULL;
	size_t size = 0;
	int nr = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return 0;
	while (getline(&line, &size, maps) >= 0)
		nr += strstr(line, EVENT_FILE) != NULL;
	free(line);
	fclose(maps);
	return nr;
}

struct holders {
	uint32_t nr_processes, nr_events, nr_unseen;
	char names[160]; /* of the first few */
};

static void look_at(struct holders *holders, int pid)
{
	char comm[32], shown[40];
	int fds = count_fds(pid), mappings;
	size_t used = strlen(holders->names);

	if (fds < 0) {
		holders->nr_unseen += fds == -EACCES;
		return;
	}
	/* An event that is mapped is an fd as well, mostly. */
	mappings = count_mappings(pid);
	if (!fds && !mappings)
		return;
	holders->nr_events += (uint32_t)(fds > mappings ? fds : mappings);
	if (holders->nr_processes++ >= MAX_NAMED)
		return;
	csink_sysfs_read(comm, sizeof(comm), "/proc/%d/comm", pid);
	csink_format_text(shown, sizeof(shown), comm, 16);
	snprintf(holders->names + used, sizeof(holders->names) - used, "%s%s (%d)", used ? ", " : "", shown, pid);
}

void csink_doctor_check_holders(struct csink_doctor *doctor)
{
	struct holders holders = {0, 0, 0, ""};
	struct csink_finding *finding;
	struct csink_sysfs_dir dir;
	char unseen[96] = "";
	const char *name;
	bool matters;

	if (csink_sysfs_dir_open(&dir, "/proc"))
		return;
	while ((name = csink_sysfs_dir_next(&dir)))
		if (atoi(name) > 0 && atoi(name) != getpid())
			look_at(&holders, atoi(name));
	csink_sysfs_dir_close(&dir);
	if (holders.nr_unseen)
		snprintf(unseen, sizeof(unseen), " (%u processes of other users could not be looked into)",
			 holders.nr_unseen);
	matters = holders.nr_processes && doctor->has_pmu;
	finding = csink_doctor_add(doctor, "holders", matters ? CSINK_LEVEL_NOTE : CSINK_LEVEL_OK);
	if (!holders.nr_processes) {
		csink_finding_text(finding, "no other process has events open%s", unseen);
		return;
	}
	csink_finding_text(finding, "%u %s %u event%s open: %s%s%s", holders.nr_processes,
			   holders.nr_processes == 1 ? "process has" : "processes have", holders.nr_events,
			   holders.nr_events == 1 ? "" : "s", holders.names,
			   holders.nr_processes > MAX_NAMED ? ", ..." : "", unseen);
	if (matters)
		csink_finding_remedy(finding, "stop them while measuring, if counts are scaled or groups do not fit");
}
