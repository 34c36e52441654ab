/*
 * Attach's reading of records, from rings that the test fills: an event that the kernel stops counts too little; which
 * it was decides what the CPU time is called that the kernel accounts beside the events. And its note on CPU time that
 * events count beside the kernel. And which program a process runs, by the records of its execs.
 */
#include "launcher/attach/follow.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/commands/attach/attach_gap.h"
#include "launcher/session/outside.h"
#include "tests/unit/tap.h"

enum {
	TIME_BEHIND = 16, /* as in attach: the time, and behind it the event's id */
	MS = 1000000,
};

static struct csink_attach_follow follow;
static struct csink_outside outside;

static void begin(void)
{
	struct csink_rings *rings = &follow.counters.rings;

	memset(&follow, 0, sizeof(follow));
	memset(&outside, 0, sizeof(outside));
	follow.outside = &outside;
	follow.counters.anchor_fd = -1;
	if (csink_rings_init(rings, 1, TIME_BEHIND))
		exit(1);
	rings->ring_bytes = rings->page_bytes;
	rings->at[0].page =
		mmap(NULL, 2UL * rings->page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rings->at[0].fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* An event of a group, whose id is its number + 1. */
static void add_event(uint32_t group, uint16_t flags)
{
	struct csink_attach_counters *c = &follow.counters;
	uint32_t event = c->nr_events++;

	c->events[event].spec.group = group;
	c->events[event].spec.rec.flags = flags;
	c->fds = realloc(c->fds, c->nr_events * sizeof(*c->fds));
	c->fds[event] = (struct csink_attach_fd){.fd = -1, .event = event, .id = event + 1};
	c->nr_fds = c->nr_events;
}

static void throttle(uint64_t id)
{
	struct csink_rings *rings = &follow.counters.rings;
	struct record {
		struct perf_event_header head;
		uint64_t time_ns, id, stream_id, sample_time_ns, sample_id;
	} *at = (struct record *)((char *)rings->at[0].page + rings->page_bytes + rings->at[0].page->data_head);

	*at = (struct record){{.type = PERF_RECORD_THROTTLE, .size = sizeof(*at)}, 1, id, id, 1, id};
	rings->at[0].page->data_head += sizeof(*at);
	csink_attach_follow_drain(&follow, true);
}

static void test_throttle(void)
{
	begin();
	add_event(0, 0);
	add_event(1, CSINK_EVENT_CPU_NS);
	add_event(2, 0);
	add_event(2, CSINK_EVENT_CPU_NS);
	throttle(1);
	is_num((long long)follow.nr_throttled, 1, "an event that the kernel stops is counted");
	ok(!outside.attached_gap_has_more,
	   "it has no CPU time, so that none is missing but that of exits and switches");
	throttle(9);
	ok(!outside.attached_gap_has_more, "nor has one that is not known");
	throttle(2);
	ok(outside.attached_gap_has_more, "of one that has CPU time, more is missing");
	outside.attached_gap_has_more = 0;
	throttle(3);
	ok(outside.attached_gap_has_more, "so it is where its group has CPU time");
	is_num((long long)follow.nr_throttled, 4, "all of them are counted");
	csink_attach_counters_free(&follow.counters);
}

static void test_gap_note(void)
{
	begin();
	add_event(0, 0);
	follow.clock.is_known = false;
	csink_attach_gap_note(&follow, &outside);
	is_num(outside.nr_notes, 0, "without an event of CPU time nothing is reported of it");
	add_event(1, CSINK_EVENT_CPU_NS);
	follow.clock.is_known = true;
	outside.attached_cpu_ns = 200000000;
	outside.attached_gap_ns = -100000000;
	csink_attach_gap_note(&follow, &outside);
	is_num(outside.nr_notes, 0, "half of the counted time can be taken off the rows");
	outside.attached_gap_ns = -150000000;
	csink_attach_gap_note(&follow, &outside);
	is_str(outside.nr_notes ? outside.notes[0] : "",
	       "events counted 200.0 ms of CPU time, 150.0 ms more than the kernel accounts: rows are scaled to half "
	       "of what was counted, not to less",
	       "more is reported");
	csink_outside_free(&outside);
	csink_attach_counters_free(&follow.counters);
}

/* A process that has ended, so that its records alone say what it was. */
static int32_t ended_process(void)
{
	int32_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		exit(1);
	return pid;
}

static void add_sample(struct csink_attach_images *images, int32_t pid, uint64_t time_ns)
{
	const struct csink_attach_stack stack = {.frames = NULL};
	uint64_t weights[CSINK_MAX_EVENTS] = {1};

	csink_attach_images_add(images, csink_attach_images_thread(images, pid, pid, time_ns), &stack, weights,
				time_ns);
}

/* A sample in the kernel, whose registers are in none of the program's mappings; or one in user space. */
static void sample(int32_t pid, uint64_t time_ns, bool in_kernel)
{
	struct csink_rings *rings = &follow.counters.rings;
	struct record {
		struct perf_event_header head;
		uint64_t id, ip;
		int32_t pid, tid;
		uint64_t time_ns, abi, pc;
	} *at = (struct record *)((char *)rings->at[0].page + rings->page_bytes + rings->at[0].page->data_head);

	*at = (struct record){{.type = PERF_RECORD_SAMPLE,
			       .misc = in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
			       .size = sizeof(*at)},
			      1,
			      0,
			      pid,
			      pid,
			      time_ns,
			      PERF_SAMPLE_REGS_ABI_64,
			      0x5000};
	rings->at[0].page->data_head += sizeof(*at);
	csink_attach_follow_drain(&follow, true);
}

static void begin_samples(bool at_exec)
{
	begin();
	add_event(0, 0);
	follow.counters.stacks = CSINK_ATTACH_LEAF;
	follow.counters.at_exec = at_exec;
}

static void end_samples(void)
{
	csink_attach_images_free(&follow.images);
	csink_attach_counters_free(&follow.counters);
}

static void test_sample_in_exec(void)
{
	const struct csink_attach_row *rows;
	int32_t pid = ended_process();

	begin_samples(true);
	sample(pid, 1000, true);
	csink_attach_images_exec(&follow.images, pid, "sorter", 2000, true);
	sample(pid, 3000, true);
	sample(pid, 4000, false);
	sample(pid, 5000, true);
	rows = follow.images.rows;
	is_num(follow.images.nr_rows, 2, "samples in an exec have a row, those in the program another one");
	is_num((long long)rows[0].leaf, CSINK_LEAF_IN_EXEC, "the former's leaf is none of the program's");
	is_num((long long)rows[0].nr_samples, 2, "a sample may come before the exec's record, another one after it");
	is_num((long long)rows[1].leaf, 0x5000, "where the program has been, a sample in the kernel is its function's");
	is_num((long long)rows[1].nr_samples, 2, "like the sample in user space before it");
	end_samples();

	begin_samples(false);
	sample(pid, 1000, true);
	is_num((long long)follow.images.rows[0].leaf, 0x5000,
	       "where events do not wait for an exec, a first sample in the kernel is the program's");
	end_samples();
}

static void test_late_exec(void)
{
	int32_t pid = ended_process();
	struct csink_attach_images images = {.nr = 0};
	uint32_t nr;

	add_sample(&images, pid, 2000);
	is_str(images.at[0]->comm, "", "a process that has ended has no name where a sample is its first record");
	csink_attach_images_exec(&images, pid, "sorter", 2500, true);
	is_num(images.nr, 1, "the record of its exec comes after the sample: it has run one program");
	is_str(images.at[0]->comm, "sorter", "it has the name in the record");
	is_num((long long)images.at[0]->start_ns, 2000, "it starts at the sample");
	is_num(images.nr_threads, 1, "it has one thread");
	csink_attach_images_exec(&images, pid, "sorter", 50 * MS, true);
	csink_attach_images_exec(&images, pid, "sorter", 1000, true);
	is_num(images.nr, 1, "another report of the same exec adds no program, be it later or earlier");
	csink_attach_images_map(&images, pid, 0x1000, 0x1000, 0, "/sorter", 51 * MS);
	add_sample(&images, pid, 52 * MS);
	csink_attach_images_exec(&images, pid, "printer", 53 * MS, true);
	is_num(images.nr, 2, "a later exec begins another program");
	is_str(images.at[1]->comm, "printer", "which has its own name");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, pid, 1000);
	add_sample(&images, pid, 2000);
	csink_attach_images_exec(&images, pid, "sorter", 3000, true);
	is_num(images.nr, 1, "several samples may come so");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, pid, 1000);
	images.at[0]->has_run = true;
	csink_attach_images_exec(&images, pid, "sorter", 3000, true);
	is_num(images.nr, 2, "a sample in user space before an exec is of a program that was there before");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, pid, 1000);
	csink_attach_images_exec(&images, pid, "sorter", 1000 * MS, true);
	is_num(images.nr, 2, "so is a sample a second before an exec");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, pid, 1000);
	csink_attach_images_exit(&images, pid, pid, 2000);
	csink_attach_images_exec(&images, pid, "sorter", 200 * MS, true);
	is_num(images.nr, 2, "a process that has ended executes nothing: its number is another one's");
	is_num(images.nr_processes, 2, "which is another process");
	is_num(images.at[0]->state, CSINK_REC_EXITED, "the one that has ended stays so");
	is_num((long long)images.at[0]->end_ns, 2000, "with the time of its end");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, getpid(), 2000);
	nr = images.at[0]->nr_mappings;
	ok(nr > 0, "of a process that is still there, mappings are read");
	images.at[0]->cmdline[0] = 0;
	csink_attach_images_exec(&images, getpid(), "sorter", 3000, true);
	is_num(images.nr, 1, "an exec right after the first sample begins no second program");
	is_num(images.at[0]->nr_mappings, 0, "mappings that were read before it are dropped: their records follow");
	ok(images.at[0]->cmdline[0], "its arguments are read again");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, pid, 1000);
	csink_attach_images_exec(&images, pid, "sorter", 3000, false);
	is_num(images.nr, 2, "where events do not wait for an exec, each sample before one is of another program");
	csink_attach_images_free(&images);
}

/* Of a process whose events have ended, and which has been seen to go on. */
static struct csink_attach_images gone_on(int32_t pid)
{
	struct csink_attach_images images = {.nr = 0};

	add_sample(&images, pid, 1000);
	csink_attach_images_exit(&images, pid, pid, 2000);
	csink_attach_images_note_going_on(&images, pid);
	return images;
}

/* What is taken of a number whose process has ended. */
static void test_number_again(void)
{
	int32_t pid = ended_process();
	struct csink_attach_images images = {.nr = 0};
	uint64_t now_ns = csink_monotonic_ns();

	add_sample(&images, pid, 1000);
	csink_attach_images_exit(&images, pid, pid, 2000);
	add_sample(&images, pid, 3000);
	is_num(images.nr, 1, "a sample right after the end is of the process that has ended");
	add_sample(&images, pid, 200 * MS);
	is_num(images.nr, 2, "one long after it is of another process");
	is_num(images.at[0]->state, CSINK_REC_EXITED, "the one that has ended stays so");
	is_num(images.at[1]->nr_threads, 1, "the other one has the thread");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, pid, 1000);
	strcpy(images.at[0]->comm, "sorter");
	csink_attach_images_exit(&images, pid, pid, 2000);
	csink_attach_images_fork(&images, getpid(), pid, getpid(), 200 * MS);
	is_str(images.at[1]->comm, "", "a child of another process does not have the former one's name");
	csink_attach_images_fork(&images, pid, pid, 1, 300 * MS);
	is_num(images.at[0]->nr_living, 0, "threads of another process are not the former one's");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, getpid(), 1000);
	csink_attach_images_exit(&images, getpid(), getpid(), 2000);
	add_sample(&images, getpid(), now_ns);
	is_num((long long)images.nr_processes, 2, "a process that has started since is another one");
	ok(images.at[1]->nr_mappings > 0, "whose mappings are read");
	csink_attach_images_exit(&images, getpid(), getpid(), 3000);
	csink_attach_images_exec(&images, getpid(), "sorter", now_ns, false);
	is_num((long long)images.nr_processes, 3, "so it is where its first record is of an exec");
	csink_attach_images_free(&images);

	images = gone_on(pid);
	add_sample(&images, pid, 200 * MS);
	is_num(images.nr, 1, "a process that has been seen to go on is the same, also where it has ended since");
	csink_attach_images_exit(&images, pid, pid, 201 * MS);
	add_sample(&images, pid, 400 * MS);
	is_num(images.nr, 2, "until its end");
	csink_attach_images_free(&images);

	images = gone_on(pid);
	csink_attach_images_thread(&images, pid, pid + 1, 2000);
	csink_attach_images_exit(&images, pid, pid + 1, 3000);
	add_sample(&images, pid, 200 * MS);
	is_num(images.nr, 1, "the end of another of its threads is none");
	csink_attach_images_free(&images);

	images = gone_on(pid);
	csink_attach_images_thread(&images, pid, pid + 1, 2000);
	csink_attach_images_exit(&images, pid, pid, 3000);
	csink_attach_images_thread(&images, pid, pid + 1, 200 * MS);
	is_num(images.nr, 1, "nor is that of its first thread, while another one goes on");
	csink_attach_images_exit(&images, pid, pid + 1, 201 * MS);
	csink_attach_images_thread(&images, pid, pid + 1, 400 * MS);
	is_num(images.nr, 2, "until that one has ended, too");
	csink_attach_images_free(&images);

	images = gone_on(pid);
	csink_attach_images_exit(&images, pid, pid, 3000);
	add_sample(&images, pid, 200 * MS);
	is_num(images.nr, 2, "its end is one, also where it has had no sample before");
	csink_attach_images_free(&images);

	/* As by an exec that changes credentials. */
	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, getpid(), now_ns);
	csink_attach_images_exit(&images, getpid(), getpid(), now_ns);
	add_sample(&images, getpid(), now_ns + 200 * MS);
	is_num(images.nr, 1, "a process whose events have ended, and which goes on, is the same");
	csink_attach_images_exec(&images, getpid(), "sorter", now_ns + 400 * MS, false);
	is_num((long long)images.nr_processes, 1, "so it is where it executes a program");
	is_num(images.at[0]->state, CSINK_REC_EXECED, "which replaces the one before");
	csink_attach_images_free(&images);
}

/* Names that are read once more, where they may be gone; and what is behind them. */
static void test_names_again(void)
{
	int32_t pid = ended_process();
	struct csink_attach_images images = {.nr = 0};
	const char *end;

	add_sample(&images, pid, 1000);
	strcpy(images.at[0]->exe, "/bin/sorter");
	strcpy(images.at[0]->cmdline, "sorter");
	csink_attach_images_exec(&images, pid, "sorter", 2000, true);
	is_str(images.at[0]->exe, "/bin/sorter", "a process that has ended keeps its path");
	is_str(images.at[0]->cmdline, "sorter", "and its arguments");
	csink_attach_images_free(&images);

	images = (struct csink_attach_images){.nr = 0};
	add_sample(&images, getpid(), 1000);
	end = images.at[0]->cmdline + sizeof(images.at[0]->cmdline);
	while (end > images.at[0]->cmdline && !end[-1])
		end--;
	is_str(end - strlen("test_attach_follow"), "test_attach_follow", "nothing is behind the arguments");
	csink_attach_images_free(&images);
}

int main(void)
{
	test_throttle();
	test_sample_in_exec();
	test_late_exec();
	test_number_again();
	test_names_again();
	test_gap_note();
	return done();
}
