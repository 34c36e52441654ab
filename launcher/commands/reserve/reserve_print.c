/* The status of the reservation, printed: see reserve_print.h. */
#include "launcher/commands/reserve/reserve_print.h"

#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/base/json.h"
#include "launcher/base/text.h"

#define MAX_NAMED 8

/* What a list of processes is made of. */
enum role { HOLDERS, OPENERS, USERS, HOSTS };

static bool has_role(const struct csink_scan_process *process, enum role role)
{
	switch (role) {
	case HOLDERS:
		return process->reads || process->writes;
	case OPENERS: /* neither the agent, which tests the lock, nor a holder: a process that waits for it */
		return process->has_file && !process->is_agent && !process->reads && !process->writes;
	case USERS:
		return process->nr_events > 0;
	case HOSTS:
		return process->runs_guests;
	}
	return false;
}

/* "perf (55), 4 events; ...". Returns how many there are. */
static uint32_t list(const struct csink_scan *scan, enum role role, char *out, size_t size)
{
	char comm[40], more[40];
	uint32_t nr = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < scan->nr; i++) {
		const struct csink_scan_process *process = &scan->processes[i];

		if (!has_role(process, role) || nr++ >= MAX_NAMED)
			continue;
		more[0] = '\0';
		if (role == HOLDERS)
			snprintf(more, sizeof(more), "%s", process->writes ? ", to write" : "");
		else if (role == USERS)
			snprintf(more, sizeof(more), ", %u event%s%s", process->nr_events,
				 process->nr_events == 1 ? "" : "s", process->is_agent ? " (the agent)" : "");
		csink_format_text(comm, sizeof(comm), process->comm, 16);
		csink_append(out, size, "%s%s (%d)%s", *out ? "; " : "", comm, process->pid, more);
	}
	if (nr > MAX_NAMED)
		csink_append(out, size, "; and %u more", nr - MAX_NAMED);
	return nr;
}

static void print_holders(FILE *out, const struct csink_reserve_status *status)
{
	char names[1024];
	uint32_t nr = list(&status->scan, HOLDERS, names, sizeof(names));

	if (nr)
		csink_text_print(out, "holders    %s\n", names);
	else if (status->is_locked)
		csink_text_print(out, "holders    another process, for %s; not visible to this user\n",
				 status->is_write_locked ? "writing, which excludes all others" : "reading");
	else
		csink_text_print(out, "holders    none\n");
}

static void print_waiters(FILE *out, const struct csink_reserve_status *status)
{
	char names[1024];
	uint32_t nr_openers = list(&status->scan, OPENERS, names, sizeof(names));

	csink_text_print(out, "waiters    ");
	for (uint32_t i = 0; i < CSINK_MIN(status->nr_waiters, (uint32_t)CSINK_MAX_WAITERS); i++) {
		if (status->waiters[i])
			csink_text_print(out, "%sprocess %d", i ? "; " : "", status->waiters[i]);
		else
			csink_text_print(out, "%sa process that the kernel does not name", i ? "; " : "");
	}
	if (nr_openers)
		csink_text_print(out, "%s%s (have it open without a lock)", status->nr_waiters ? "; " : "", names);
	csink_text_print(out, "%s\n", status->nr_waiters || nr_openers ? "" : "none");
}

static const char *agent_state(const struct csink_agent *agent)
{
	return agent->state == 'T' || agent->state == 't' ? "stopped" : "running";
}

static void print_agent(FILE *out, const struct csink_reserve_status *status)
{
	static const char *const files[] = {"its open files are not visible to this user",
					    "has a different file open: restart it", "has this lock file open"};

	if (!status->agent.pid)
		csink_text_print(out, "agent      no process found\n");
	else if (status->lock_err)
		csink_text_print(out, "agent      process %d, %s\n", status->agent.pid, agent_state(&status->agent));
	else
		csink_text_print(out, "agent      process %d, %s; %s\n", status->agent.pid, agent_state(&status->agent),
				 files[status->agent.has_lock + 1]);
	if (status->active >= 0)
		csink_text_print(out, "counting   %d event%s (perfevent.active)\n", status->active,
				 status->active == 1 ? "" : "s");
	else if (status->active == -ENOENT)
		csink_text_print(out, "counting   not known: pmprobe(1) of PCP is not in $PATH\n");
	else if (status->active == -ETIMEDOUT)
		csink_text_print(out, "counting   not known: no answer in time\n");
	else
		csink_text_print(out, "counting   not known: %s\n",
				 *status->active_words ? status->active_words : strerror(-status->active));
}

static void print_watchdog(FILE *out, const struct csink_reserve_status *status)
{
	if (status->watchdog > 0)
		csink_text_print(
			out,
			"watchdog   holds a counter on every CPU -> sysctl kernel.nmi_watchdog=0 while measuring\n");
	else
		csink_text_print(out, "watchdog   %s\n",
				 status->watchdog ? "not known (no kernel.nmi_watchdog)"
						  : "off (kernel.nmi_watchdog is 0)");
}

static void print_users(FILE *out, const struct csink_reserve_status *status)
{
	char names[1024];

	if (status->scan_err) {
		csink_text_print(out, "events     not known: /proc: %s\n", strerror(-status->scan_err));
		return;
	}
	csink_text_print(
		out, "events     %s\n",
		list(&status->scan, USERS, names, sizeof(names)) ? names : "no other process has any that can be seen");
	if (list(&status->scan, HOSTS, names, sizeof(names)))
		csink_text_print(out, "guests     %s: virtual machines, whose counters are not visible here\n", names);
	csink_text_print(
		out,
		"unseen     %u of %u other processes could not be inspected; the kernel's own counters never can\n",
		status->scan.nr_unseen, status->scan.nr_looked_at);
}

void csink_reserve_status_print(FILE *out, const struct csink_reserve_status *status)
{
	csink_text_print(out, "lock file  %s%s%s\n", status->lock_file, status->lock_err ? ": " : "",
			 status->lock_err ? strerror(-status->lock_err) : "");
	if (!status->lock_err) {
		print_holders(out, status);
		print_waiters(out, status);
	}
	print_agent(out, status);
	print_watchdog(out, status);
	print_users(out, status);
}

static void json_processes(struct csink_json *json, const struct csink_scan *scan)
{
	csink_json_open(json, "processes", '[');
	for (uint32_t i = 0; i < scan->nr; i++) {
		const struct csink_scan_process *process = &scan->processes[i];

		csink_json_open(json, NULL, '{');
		csink_json_number(json, "pid", process->pid);
		csink_json_text(json, "command", process->comm);
		csink_json_number(json, "events", process->nr_events);
		csink_json_bool(json, "has_lock_file", process->has_file);
		csink_json_text(json, "holds", process->writes ? "write" : process->reads ? "read" : NULL);
		csink_json_bool(json, "is_agent", process->is_agent);
		csink_json_bool(json, "runs_guests", process->runs_guests);
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
}

static void json_agent(struct csink_json *json, const struct csink_reserve_status *status)
{
	csink_json_open(json, "agent", '{');
	csink_json_known(json, "pid", status->agent.pid, status->agent.pid);
	csink_json_text(json, "state", status->agent.pid ? agent_state(&status->agent) : NULL);
	if (!status->agent.pid || status->lock_err || status->agent.has_lock < 0)
		csink_json_null(json, "has_lock_file");
	else
		csink_json_bool(json, "has_lock_file", status->agent.has_lock);
	csink_json_known(json, "active", status->active >= 0, status->active);
	csink_json_text(json, "error", status->active < 0 && *status->active_words ? status->active_words : NULL);
	csink_json_close(json, '}');
}

void csink_reserve_status_print_json(FILE *out, const struct csink_reserve_status *status)
{
	struct csink_json json;

	csink_json_init(&json, out, '{');
	csink_json_text(&json, "lock_file", status->lock_file);
	csink_json_text(&json, "lock_file_error", status->lock_err ? strerror(-status->lock_err) : NULL);
	/* A file that is not there is not locked; one that cannot be read may be. */
	if (status->lock_err && status->lock_err != -ENOENT) {
		csink_json_null(&json, "locked");
		csink_json_null(&json, "write_locked");
	} else {
		csink_json_bool(&json, "locked", status->is_locked);
		csink_json_bool(&json, "write_locked", status->is_write_locked);
	}
	csink_json_open(&json, "waiters", '[');
	for (uint32_t i = 0; i < CSINK_MIN(status->nr_waiters, (uint32_t)CSINK_MAX_WAITERS); i++)
		csink_json_known(&json, NULL, status->waiters[i], status->waiters[i]);
	csink_json_close(&json, ']');
	json_agent(&json, status);
	csink_json_known(&json, "nmi_watchdog", status->watchdog >= 0, status->watchdog);
	json_processes(&json, &status->scan);
	csink_json_number(&json, "nr_inspected", status->scan.nr_looked_at - status->scan.nr_unseen);
	csink_json_number(&json, "nr_not_inspected", status->scan.nr_unseen);
	csink_json_close(&json, '}');
}
