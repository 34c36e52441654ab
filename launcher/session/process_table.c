/* What perf's records say about the command's processes: see process_table.h. */
#include "launcher/session/process_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/proc.h"
#include "launcher/session/find_program.h"
#include "preload/core/task_stat.h"

#define RECENT_NS (CSINK_NS_PER_S / 10)

void csink_process_table_init(struct csink_process_table *table, uint32_t nr_events)
{
	memset(table, 0, sizeof(*table));
	table->nr_events = nr_events;
}

void csink_process_table_free(struct csink_process_table *table)
{
	free(table->processes);
	free(table->tasks);
	csink_table_free(&table->pids);
	memset(table, 0, sizeof(*table));
}

/* The slot of a pid: its own, or the empty one where it belongs. */
static struct csink_slot *slot_of(const struct csink_process_table *table, uint32_t pid)
{
	uint32_t hash = csink_hash_number(pid);
	struct csink_slot *slot;

	CSINK_TABLE_PROBE(table->pids, hash, slot, (uint32_t)table->processes[id - 1].info.pid == pid);
	return slot;
}

static struct csink_process_entry *find(const struct csink_process_table *table, uint32_t pid)
{
	uint32_t id = table->nr ? slot_of(table, pid)->id : 0;

	return id ? &table->processes[id - 1] : NULL;
}

/* A process is born, or was there before we looked (the command itself: its exec is the first that is seen). */
static struct csink_process_entry *add(struct csink_process_table *table, uint32_t pid, uint32_t ppid)
{
	struct csink_process_entry *process, *parent, *former;

	if (CSINK_GROW(table->processes, table->nr, table->cap) || csink_table_room(&table->pids)) {
		table->error = -ENOMEM;
		return NULL;
	}
	process = &table->processes[table->nr];
	memset(process, 0, sizeof(*process));
	process->info.pid = (int32_t)pid;
	process->info.ppid = (int32_t)ppid;
	process->start_ns = table->now_ns;
	process->nr_tasks = process->nr_live = 1;
	former = find(table, pid);
	if (former)
		former->is_reused = process->is_reused = true;
	parent = find(table, ppid);
	if (parent) {
		memcpy(process->info.comm, parent->info.comm, sizeof(process->info.comm));
		process->parent = (uint32_t)(parent - table->processes) + 1;
	}
	csink_table_set(&table->pids, slot_of(table, pid), csink_hash_number(pid), ++table->nr);
	return process;
}

static struct csink_process_entry *find_or_add(struct csink_process_table *table, uint32_t pid)
{
	struct csink_process_entry *process = find(table, pid);

	return process ? process : add(table, pid, 0);
}

/* What an event counted of a task that exits. */
static void add_count(struct csink_process_table *table, struct csink_process_entry *process, int32_t tid,
		      uint64_t cpu_ns)
{
	process->nr_reads++;
	process->info.cpu_ns += cpu_ns;
	/* Without memory it is a thread of which nothing is known. */
	if (!CSINK_GROW(table->tasks, table->nr_tasks, table->cap_tasks))
		table->tasks[table->nr_tasks++] =
			(struct csink_process_task){(uint32_t)(process - table->processes), tid, cpu_ns};
}

void csink_process_table_feed(struct csink_process_table *table, const union csink_process_record *record)
{
	struct csink_process_entry *process;

	memcpy(&table->now_ns, record->bytes + record->head.size - sizeof(table->now_ns), sizeof(table->now_ns));
	switch (record->head.type) {
	case PERF_RECORD_FORK:
		if (record->task.pid != record->task.ppid) {
			add(table, record->task.pid, record->task.ppid);
		} else {
			process = find_or_add(table, record->task.pid);
			if (process) {
				process->nr_tasks++;
				process->nr_live++;
			}
		}
		break;
	case PERF_RECORD_EXIT:
		process = find_or_add(table, record->task.pid);
		if (!process)
			break;
		if (process->nr_live)
			process->nr_live--;
		process->exit_ns = table->now_ns;
		if (!process->info.ppid)
			process->info.ppid = (int32_t)record->task.ppid;
		/* Its parent had ended, and a process outside the tree waits for it. The record has the parent at the
		 * exit. */
		process->info.is_unwaited = process->parent && !find(table, record->task.ppid);
		break;
	case PERF_RECORD_COMM:
		if (record->comm.pid != record->comm.tid) /* a thread names itself */
			break;
		process = find_or_add(table, record->comm.pid);
		if (process)
			snprintf(process->info.comm, sizeof(process->info.comm), "%.15s", record->comm.comm);
		break;
	case PERF_RECORD_READ:
		process = find_or_add(table, record->read.pid);
		if (process)
			add_count(table, process, (int32_t)record->read.tid, record->read.value);
		break;
	case PERF_RECORD_LOST:
		table->nr_lost += record->lost.lost;
		break;
	}
}

/* A process's own CPU clock: readable for any process, and exact. The clockid is made as the kernel defines it. */
static int process_cpu_ns(int32_t pid, uint64_t *cpu_ns)
{
	clockid_t clock;
	struct timespec ts;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return -ESRCH;
	*cpu_ns = (uint64_t)ts.tv_sec * CSINK_NS_PER_S + (uint64_t)ts.tv_nsec;
	return 0;
}

/* Every exit of a task left a count for each event. */
static bool is_complete(const struct csink_process_table *table, const struct csink_process_entry *process)
{
	return !process->nr_live && process->nr_reads == (uint64_t)process->nr_tasks * table->nr_events;
}

static void settle_running(struct csink_process_entry *process)
{
	struct csink_outside_process *info = &process->info;
	struct csink_program program;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", info->pid);
	csink_program_inspect(path, &program);
	/*
	 * The kernel takes our events off a process that execs a setuid program: it looked dead, and what it did since
	 * is not in its count.
	 */
	info->reason = process->nr_live ? program.reason : CSINK_SPAWN_SETUID;
	info->still_running = 1;
	info->has_cpu = !process_cpu_ns(info->pid, &info->cpu_ns);
}

/* Does it run, or wait for nothing but a CPU or a disk? Then it may be ending: what it waited for was the command. */
static bool is_busy(const struct csink_process_entry *process)
{
	struct csink_task_stat stat;

	return csink_proc_is_running(process->info.pid, process->start_ns) &&
	       !csink_task_stat_read(process->info.pid, &stat) && (stat.state == 'R' || stat.state == 'D');
}

/* Children first: the end of one that is busy wakes its parent. */
bool csink_process_table_is_busy(struct csink_process_table *table)
{
	for (uint32_t i = table->nr; i-- > 0;) {
		const struct csink_process_entry *process = &table->processes[i];
		/* The record of its exit comes before the process is gone. */
		bool may_be_there = process->nr_live || table->now_ns - process->exit_ns < RECENT_NS;

		if (may_be_there && find(table, (uint32_t)process->info.pid) == process && is_busy(process))
			return true;
	}
	return false;
}

bool csink_process_table_is_behind(struct csink_process_table *table)
{
	for (uint32_t i = 0; i < table->nr; i++) {
		const struct csink_process_entry *process = &table->processes[i];

		if (process->nr_live && find(table, (uint32_t)process->info.pid) == process &&
		    !csink_proc_is_running(process->info.pid, process->start_ns))
			return true;
	}
	return false;
}

/* Threads of processes whose CPU time is known, once the processes are settled. */
static int give_threads(const struct csink_process_table *table, struct csink_process_tree_result *result)
{
	result->threads = calloc(CSINK_MAX(table->nr_tasks, 1u), sizeof(*result->threads));
	if (!result->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->nr_tasks; i++) {
		const struct csink_process_task *task = &table->tasks[i];
		const struct csink_process_entry *process = &table->processes[task->process];

		if (process->info.has_cpu && !process->info.still_running && !process->is_reused)
			result->threads[result->nr_threads++] =
				(struct csink_outside_thread){process->info.pid, task->tid, task->cpu_ns};
	}
	return 0;
}

int csink_process_table_finish(struct csink_process_table *table, struct csink_process_tree_result *result)
{
	memset(result, 0, sizeof(*result));
	result->nr_lost = table->nr_lost;
	if (table->error)
		return table->error;
	result->processes = calloc(CSINK_MAX(table->nr, 1u), sizeof(*result->processes));
	if (!result->processes)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->nr; i++) {
		struct csink_process_entry *process = &table->processes[i];

		/* A PID that was used again belongs to its latest owner. */
		if (find(table, (uint32_t)process->info.pid) == process &&
		    csink_proc_is_running(process->info.pid, process->start_ns))
			settle_running(process);
		else
			process->info.has_cpu = is_complete(table, process);
		/* What an unwaited process waits for is its own, and adds to no time of the command's. */
		process->info.is_unwaited |= process->info.still_running;
		if (process->parent) /* parents come first */
			process->info.is_unwaited |= table->processes[process->parent - 1].info.is_unwaited;
		process->info.end_ns = process->nr_live ? 0 : process->exit_ns;
		result->processes[i] = process->info;
		result->nr_running += process->info.still_running;
	}
	result->nr_processes = table->nr;
	return give_threads(table, result);
}
