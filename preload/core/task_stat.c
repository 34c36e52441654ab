/* Reads /proc/PID/stat; see task_stat.h. Any thread; no lock, not async-signal-safe. */
#include "preload/core/task_stat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "preload/core/sysfs.h"

int csink_task_stat_read(int32_t tid, struct csink_task_stat *out)
{
	char text[1024], *name, *end;
	uint64_t user, system;

	if (csink_sysfs_read(text, sizeof(text), "/proc/%d/stat", tid) < 0)
		return -ESRCH;
	/* The name may hold anything, also blanks and parentheses. */
	name = strchr(text, '(');
	end = strrchr(text, ')');
	if (!name || !end ||
	    sscanf(end,
		   ") %c %" SCNd32 " %*d %*d %*d %*d %" SCNu32 " %*u %" SCNu64 " %*u %*u %*u %*u %" SCNu64 " %" SCNu64
		   " %*d %*d %*d %*d %" SCNu64,
		   &out->state, &out->ppid, &out->flags, &out->children_faults, &user, &system, &out->start_ticks) != 7)
		return -ESRCH;
	out->children_ticks = user + system;
	snprintf(out->comm, sizeof(out->comm), "%.*s", (int)(end - name - 1), name + 1);
	return 0;
}
