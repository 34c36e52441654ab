/* Opens the events of `persist detach`: see persist_target.h. */
#include "launcher/commands/persist/persist_target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "preload/api/pmc/stop_targets.h"

struct opening {
	struct csink_persist_set *set;
	struct csink_event_spec *spec;
	const struct csink_persist_event *event;
	int32_t tid; /* of what was refused last */
	int cpu;
};

static uint32_t nr_cpus(void)
{
	return (uint32_t)CSINK_MAX(sysconf(_SC_NPROCESSORS_CONF), 1);
}

/* The first event on a CPU has the ring, and those after it write to it. */
static int give_ring(struct opening *o, struct csink_persist_member *member)
{
	size_t bytes = ((size_t)o->event->pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
	int *owner = &o->set->ring_fds[member->cpu + 1];

	if (!o->event->pages)
		return 0;
	if (*owner >= 0)
		return ioctl(member->fd, PERF_EVENT_IOC_SET_OUTPUT, *owner) ? -errno : 0;
	/* It stays mapped until we exit; the keeper has it by then. */
	if (mmap(NULL, bytes, PROT_READ, MAP_SHARED, member->fd, 0) == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	member->pages = o->event->pages;
	*owner = member->fd;
	return 0;
}

static int add(struct opening *o, int fd, int cpu)
{
	struct csink_persist_set *set = o->set;
	struct csink_persist_member *member;
	int err;

	if (CSINK_GROW(set->at, set->nr, set->room)) {
		close(fd);
		return -ENOMEM;
	}
	member = &set->at[set->nr++];
	*member = (struct csink_persist_member){fd, cpu, 0};
	err = give_ring(o, member);
	if (err && err != -ENOBUFS)
		snprintf(set->text, sizeof(set->text), "%s: its ring cannot be mapped: %s", o->spec->rec.name,
			 strerror(-err));
	return err;
}

/* Returns 0, -ENODEV (no such CPU), -ESRCH (it has ended), or -errno. */
static int open_one(struct opening *o, int32_t tid, int cpu)
{
	int fd = csink_perf_open(&o->spec->attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd == -EACCES && tid >= 0 && !o->set->nr && !o->spec->attr.exclude_kernel &&
	    !csink_event_is_kernels_own(o->spec)) {
		csink_event_set_user_only(o->spec);
		fd = csink_perf_open(&o->spec->attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	o->tid = tid;
	o->cpu = cpu;
	return fd < 0 ? fd : add(o, fd, cpu);
}

/* A ring of what threads inherit is one CPU's: then each thread has an event for each of them. */
static int open_thread(struct opening *o, int32_t tid)
{
	uint32_t nr = nr_cpus();

	if (!o->event->pages || o->event->cpu >= 0)
		return open_one(o, tid, o->event->cpu);
	for (uint32_t cpu = 0; cpu < nr; cpu++) {
		int err = csink_event_is_on(o->spec, cpu) ? open_one(o, tid, (int)cpu) : 0;

		if (err && err != -ENODEV) /* there is no such CPU now */
			return err;
	}
	return 0;
}

/* One that has ended meanwhile is no error, unless all have. */
static int open_threads(struct csink_targets *threads, void *arg)
{
	struct opening *o = arg;
	int err = 0;

	for (uint32_t i = 0; i < threads->nr && (!err || err == -ESRCH); i++)
		err = open_thread(o, threads->at[i].tid);
	return err == -ESRCH && o->set->nr ? 0 : err;
}

/* The process is stopped, so that no thread is missed or counted twice. Threads that it starts later inherit. */
static int open_process(struct opening *o)
{
	struct csink_stop stop;
	int err;

	o->spec->attr.inherit = o->spec->attr.inherit_thread = 1;
	err = csink_stop_targets(&o->event->pid, 1, false, true, open_threads, o, &stop);
	o->set->stop_err = stop.err;
	csink_targets_free(&stop.targets);
	return err;
}

static void explain(struct opening *o, int err)
{
	struct csink_perf_call call = {&o->spec->attr, o->tid, o->cpu, -1, PERF_FLAG_FD_CLOEXEC};
	struct csink_persist_set *set = o->set;
	struct csink_explanation found;
	char line[512];

	if (!err || err == -ENOBUFS || *set->text)
		return;
	csink_event_explain(o->spec, &call, -err, &found);
	snprintf(set->text, sizeof(set->text), "%s: %s", o->spec->rec.name,
		 csink_explain_print(&found, line, sizeof(line)));
}

int csink_persist_set_open(struct csink_persist_set *set, struct csink_event_spec *spec,
			   struct csink_persist_event *event)
{
	struct opening o = {set, spec, event, event->pid, event->cpu};
	struct csink_task task;
	struct rlimit files;
	int err;

	memset(set, 0, sizeof(*set));
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	set->ring_fds = malloc((nr_cpus() + 1) * sizeof(*set->ring_fds));
	if (!set->ring_fds)
		return -ENOMEM;
	for (uint32_t i = 0; i <= nr_cpus(); i++)
		set->ring_fds[i] = -1;
	if (event->pid >= 0 && !csink_process_read(event->pid, &task))
		err = open_process(&o);
	else
		err = open_one(&o, event->pid, event->cpu);
	explain(&o, err);
	event->attr = spec->attr;
	return err;
}

void csink_persist_set_close(struct csink_persist_set *set)
{
	for (uint32_t i = 0; i < set->nr; i++)
		close(set->at[i].fd);
	free(set->at);
	free(set->ring_fds);
}
