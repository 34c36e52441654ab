/* The doctor: which other processes have perf events open. Those that this user may not look into are counted. */
#include <stdio.h>

#include "launcher/base/format.h"
#include "launcher/commands/doctor/doctor.h"
#include "launcher/session/counter_scan.h"

#define MAX_NAMED 6

struct holders {
	uint32_t nr_processes, nr_events;
	char names[160]; /* of the first few */
};

static void add_up(struct holders *holders, const struct csink_scan *scan)
{
	for (uint32_t i = 0; i < scan->nr; i++) {
		const struct csink_scan_process *process = &scan->processes[i];
		char shown[40];

		if (!process->nr_events)
			continue;
		holders->nr_events += process->nr_events;
		if (holders->nr_processes++ >= MAX_NAMED)
			continue;
		csink_format_text(shown, sizeof(shown), process->comm, 16);
		csink_append(holders->names, sizeof(holders->names), "%s%s (%d)", *holders->names ? ", " : "", shown,
			     process->pid);
	}
}

void csink_doctor_check_holders(struct csink_doctor *doctor)
{
	struct holders holders = {0, 0, ""};
	struct csink_scan scan;
	char unseen[96] = "";
	bool matters;

	if (!doctor->system.has_proc) {
		csink_doctor_add(doctor, "holders", CSINK_LEVEL_NOTE, "",
				 "other processes with open events are not known: /proc is not mounted");
		return;
	}
	if (csink_scan_run(&scan, NULL)) {
		csink_scan_free(&scan);
		return;
	}
	add_up(&holders, &scan);
	if (scan.nr_unseen)
		snprintf(unseen, sizeof(unseen), " (%u processes of other users could not be inspected)",
			 scan.nr_unseen);
	csink_scan_free(&scan);
	matters = holders.nr_processes && doctor->has_pmu;
	if (!holders.nr_processes) {
		csink_doctor_add(doctor, "holders", CSINK_LEVEL_OK, "", "no other process has events open%s", unseen);
		return;
	}
	csink_doctor_add(doctor, "holders", matters ? CSINK_LEVEL_NOTE : CSINK_LEVEL_OK,
			 matters ? "ask them to leave the counters to you: countersink reserve; else stop them while "
				   "measuring"
				 : "",
			 "%u %s %u event%s open: %s%s%s", holders.nr_processes,
			 holders.nr_processes == 1 ? "process has" : "processes have", holders.nr_events,
			 holders.nr_events == 1 ? "" : "s", holders.names,
			 holders.nr_processes > MAX_NAMED ? ", ..." : "", unseen);
}
