/*
 * The threads that read frames: see readers.h. Each function says on which thread it runs: a reader, or main. Shared
 * with readers_known.c (processes and threads), readers_stack.c (reading), readers_queue.c (handing over):
 * readers_impl.h.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/attach/readers_impl.h"

#define SLICE_NS 100000 /* of a reader: the least that the scheduler takes (Linux 6.12; before: ignored) */

/*
 * From a sample to the reader's first look, at most. A reader that runs before all others may come late when the
 * machine itself does not run; the sampled thread did not either.
 */
#define LATE_NS 150000
#define LATE_FIRST_NS 1000000

#define DRAIN_NS 500000 /* behind the last record that main is to drain when it is woken */

/*
 * After a read that takes longer than LONG_NS, a reader reads nothing for REST times as long: it runs before all
 * others, and the process may have made up what it reads.
 */
#define LONG_NS 1000000
#define REST 10

/* How long reading threads may take to end, all together. */
#define END_S 1

/* ---- a reader ---- */

/* The sampled thread waits for this one, on the CPU on which both are. Another user may have moved this one. */
static bool is_in_time(const struct csink_reader *reader, const struct csink_attach_sample *s, uint64_t now_ns)
{
	return now_ns - s->time_ns <= (reader->is_first ? LATE_FIRST_NS : LATE_NS) &&
	       sched_getcpu() == (int)reader->cpu;
}

static enum csink_read_state read_sample(struct csink_reader *reader, const struct csink_reader_process *process,
					 const struct csink_attach_sample *s, uint64_t now_ns)
{
	enum csink_read_state state;
	struct csink_reader_thread thread;

	if (now_ns < reader->rest_until_ns)
		return CSINK_READ_RESTED;
	if (!s->regs || !is_in_time(reader, s, now_ns))
		return CSINK_READ_LATE;
	if (!process->python.nr_roots)
		return CSINK_READ_NO_STATES;
	if (!csink_readers_state(reader->all, process, s->tid, now_ns, &thread))
		return CSINK_READ_DONE;
	state = csink_reader_read(reader, process, s, &thread);
	/* One without frames may have been freed. */
	if (state == CSINK_READ_UNFINISHED || (state == CSINK_READ_DONE && !reader->stack.nr_groups))
		csink_readers_forget(reader->all, s->tid);
	return state;
}

/* Main does not know of a new program, or of its threads' states, before it has drained what there is of it. */
static void wake_main(const struct csink_reader *reader)
{
	csink_rings_wake(&reader->all->counters->rings, csink_monotonic_ns() + CSINK_READERS_LATE_NS + DRAIN_NS);
}

static void take_sample(struct csink_reader *reader, const struct csink_attach_sample *s)
{
	struct csink_reader_process process;
	uint64_t now_ns, took_ns;
	enum csink_read_state state;

	if (!csink_readers_find(reader->all, s->pid, &process))
		return;
	now_ns = csink_monotonic_ns();
	reader->stack.nr_frames = reader->stack.nr_groups = 0;
	state = read_sample(reader, &process, s, now_ns);
	csink_reader_queue(reader, s, state);
	if (state == CSINK_READ_NO_STATES)
		wake_main(reader);
	took_ns = csink_monotonic_ns() - now_ns;
	if (took_ns > LONG_NS)
		reader->rest_until_ns = now_ns + took_ns + REST * took_ns;
}

static void look(struct csink_reader *reader)
{
	struct csink_attach_counters *c = reader->all->counters;
	const struct perf_event_header *head = (const struct perf_event_header *)reader->record;
	struct csink_attach_sample s;

	while (csink_rings_look(&c->rings, reader->cpu, &reader->cursor, reader->record)) {
		if (head->type == PERF_RECORD_MMAP2)
			wake_main(reader);
		else if (head->type == PERF_RECORD_FORK && head->size >= sizeof(*head) + 16)
			csink_readers_fork(reader->all, reader->record);
		else if (head->type == PERF_RECORD_SAMPLE && csink_attach_sample_read(c, head, &s))
			take_sample(reader, &s);
	}
}

/* As the kernel has it; no libc of Debian 12 does. */
struct scheduling {
	uint32_t bytes, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t slice_ns, deadline_ns, period_ns;
};

/* Run on this CPU alone, and as soon as it is woken. False: not on this CPU. */
static bool settle(struct csink_reader *reader)
{
	struct scheduling first = {.bytes = sizeof(first), .policy = SCHED_FIFO, .priority = 1};
	struct scheduling soon = {.bytes = sizeof(soon), .policy = SCHED_OTHER, .slice_ns = SLICE_NS};
	size_t bytes = CPU_ALLOC_SIZE(reader->cpu + 1);
	cpu_set_t *set = CPU_ALLOC(reader->cpu + 1);
	bool is_bound;

	if (!set)
		return false;
	CPU_ZERO_S(bytes, set);
	CPU_SET_S(reader->cpu, bytes, set);
	is_bound = !sched_setaffinity(0, bytes, set);
	CPU_FREE(set);
	reader->is_first = is_bound && !syscall(SYS_sched_setattr, 0, &first, 0);
	if (is_bound && !reader->is_first) {
		soon.nice = getpriority(PRIO_PROCESS, 0);
		syscall(SYS_sched_setattr, 0, &soon, 0);
	}
	return is_bound;
}

static void *run(void *arg)
{
	struct csink_reader *reader = arg;
	struct pollfd fds[] = {{.fd = reader->all->counters->rings.at[reader->cpu].fd, .events = POLLIN},
			       {.fd = reader->all->stop_fd, .events = POLLIN}};

	/* Without it, this ring still wakes main. */
	if (!settle(reader) || csink_rings_take_wakeups(&reader->all->counters->rings, reader->cpu))
		return NULL;
	while (!(fds[1].revents & POLLIN)) {
		if (poll(fds, CSINK_ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents & ~POLLIN) /* the ring is gone: poll(2) would return at once for ever */
			break;
		look(reader);
	}
	return NULL;
}

/* ---- main ---- */

static void free_reader(struct csink_reader *reader)
{
	if (reader) {
		free(reader->room);
		free(reader->queue);
	}
	free(reader);
}

static struct csink_reader *start_reader(struct csink_attach_readers *r, uint32_t cpu)
{
	struct csink_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->all = r;
	reader->cpu = cpu;
	reader->room = csink_attach_codes_room_new();
	if (reader->room && !csink_reader_queue_init(reader))
		reader->runs = !pthread_create(&reader->thread, NULL, run, reader);
	if (reader->runs)
		return reader;
	free_reader(reader);
	return NULL;
}

int csink_attach_readers_start(struct csink_attach_readers **readers, struct csink_attach_counters *counters,
			       struct csink_attach_codes *codes)
{
	struct csink_attach_readers *r = calloc(1, sizeof(*r));
	uint32_t nr = counters->rings.nr;
	sigset_t all, before;
	int err;

	*readers = r;
	if (!r)
		return -ENOMEM;
	r->counters = counters;
	r->codes = codes;
	pthread_mutex_init(&r->lock, NULL);
	r->at = calloc(nr, sizeof(*r->at));
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	err = !r->at ? -ENOMEM : r->stop_fd < 0 ? -errno : csink_rings_share(&counters->rings);
	/* Signals are main's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (uint32_t cpu = 0; !err && cpu < nr; cpu++) {
		if (counters->rings.at[cpu].fd >= 0)
			r->at[cpu] = start_reader(r, cpu);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* process_vm_readv(2) waits as the process itself would: for userfaultfd(2), or a file system that does not answer. */
void csink_attach_readers_stop(struct csink_attach_readers *r)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += END_S;
	eventfd_write(r->stop_fd, 1);
	for (uint32_t cpu = 0; r->at && cpu < r->counters->rings.nr; cpu++) {
		struct csink_reader *reader = r->at[cpu];

		if (!reader || !reader->runs)
			continue;
		r->nr_left += pthread_timedjoin_np(reader->thread, NULL, &end) != 0;
		reader->runs = false;
	}
	csink_attach_codes_close(r->codes);
}

struct csink_attach_readers_count csink_attach_readers_count(const struct csink_attach_readers *r)
{
	struct csink_attach_readers_count count = {.left = r->nr_left};

	for (uint32_t cpu = 0; cpu < r->counters->rings.nr; cpu++) {
		count.all += r->at[cpu] != NULL;
		count.first += r->at[cpu] && r->at[cpu]->is_first;
	}
	return count;
}

bool csink_attach_readers_free(struct csink_attach_readers *r)
{
	if (!r)
		return true;
	csink_attach_readers_stop(r);
	if (r->nr_left)
		return false;
	for (uint32_t cpu = 0; r->at && cpu < r->counters->rings.nr; cpu++)
		free_reader(r->at[cpu]);
	free(r->at);
	csink_readers_free_known(r);
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	free(r);
	return true;
}
