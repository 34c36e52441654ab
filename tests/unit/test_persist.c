/*
 * Persistent events: they go on without their openers, also their rings; each error by name; and the keeper's own
 * end. Who may do what: test_persist_others.c.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/unit/faulting_target.h"

/* ---- the count goes on ------------------------------------------------------------------------------------------- */

static void test_cycle(void)
{
	struct word made = in_process(make, 0);
	struct csink_persist_event event;
	struct csink_persist_value value;
	uint64_t before;
	int fd, more;

	is_num(made.err, 0, "A makes an event persistent and ends");
	ok(made.value >= 100 && made.value < 200, "the event has counted %llu faults", (unsigned long long)made.value);
	is_num(nr_listed(), 1, "one persistent event is listed");
	is_num(nr_files(), 1, "one event file is in the directory");
	target_faults(500);
	is_num(csink_persist_read(made.id, &value, base), 0, "the event can be read by its id");
	before = value.value;
	ok(before >= made.value + 500, "the event counts on after its maker has ended: %llu",
	   (unsigned long long)before);
	ok(value.enabled_ns && value.enabled_ns == value.running_ns, "time_enabled == time_running: without a gap");
	fd = csink_persist_open(made.id, -1, &event, base);
	ok(fd >= 0, "B opens the event by its id");
	ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "an event opened by its id is CLOEXEC");
	ok(event.id == made.id && event.pid == target.pid && event.cpu == -1 && event.uid == geteuid() &&
		   event.attr.config == PERF_COUNT_SW_PAGE_FAULTS && !strcmp(event.name, "faults") &&
		   event.mode == 0600,
	   "open returns the event's target and name");
	target_faults(500);
	value = value_of(fd);
	ok(value.value >= before + 500 && value.enabled_ns == value.running_ns, "the event counts without a gap: %llu",
	   (unsigned long long)value.value);
	more = csink_persist_open(made.id, -1, NULL, base);
	ok(more >= 0, "C opens the event while B has it open");
	is_num(csink_persist_attach(fd, base), 0, "B attaches the event");
	is_num(csink_persist_open(made.id, -1, NULL, base), -ENOENT, "an attached event cannot be opened: ENOENT");
	close(fd);
	target_faults(10);
	ok(value_of(more).value >= value.value + 10, "the event lives while C has it open");
	close(more);
	is_num(nr_listed(), 0, "after the last close no event is listed");
	is_num(nr_files(), 0, "no event file is left");
	ok(wait_until(has_no_keeper), "the keeper has ended with its last event");
}

/* On one CPU, of every process: for those who may. */
static void test_cpu(void)
{
	struct perf_event_attr attr = faults();
	struct csink_persist_event event = event_of(&attr, -1);
	int fd = csink_perf_open(&attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		skip("an event of a CPU", "this user may not have one");
		return;
	}
	event.cpu = 0;
	is_num(csink_persist_detach(fd, &event, base), 0, "an event of a CPU");
	close(fd);
	is_num(csink_persist_open(event.id, 1, NULL, base), -EINVAL, "an event of a CPU opened on another CPU: EINVAL");
	is_num(csink_persist_open(event.id, -1, NULL, base), -EINVAL, "an event of a CPU opened on any CPU: EINVAL");
	fd = csink_persist_open(event.id, 0, NULL, base);
	ok(fd >= 0, "an event of a CPU is opened on the same CPU");
	is_num(csink_persist_attach(fd, base), 0, "an event of a CPU is attached");
	close(fd);
}

static void test_after_target(void)
{
	struct csink_persist_value before, after;
	struct word made;

	target_start();
	made = in_process(make, 0);
	csink_persist_read(made.id, &before, base);
	target_end();
	is_num(csink_persist_read(made.id, &after, base), 0, "the count of an ended task can be read");
	ok(after.value >= before.value && after.value >= made.value, "the count of an ended task is not smaller");
	is_num(attach_all(), 0, "an event of an ended task is attached");
}

/* ---- the ring goes on -------------------------------------------------------------------------------------------- */

static int count_records(const char *ring)
{
	const struct perf_event_mmap_page *page = (const void *)ring;
	const char *data = ring + sysconf(_SC_PAGESIZE);
	uint64_t mask = (uint64_t)RING_PAGES * (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = head;
	int nr = 0;

	while (at != 0 && at - head < mask) { /* written downward from 0 */
		const struct perf_event_header *record = (const void *)(data + (at & mask));

		if (!record->size)
			break;
		nr += record->type == PERF_RECORD_SAMPLE;
		at += record->size;
	}
	return nr;
}

static void test_ring(void)
{
	struct word made = in_process(make_ring, RING_PAGES);
	struct csink_persist_event event;
	struct csink_persist_value value;
	const char *ring;
	int fd, nr;

	is_num(made.err, 0, "A maps a ring, makes its event persistent and ends");
	target_faults(500);
	fd = csink_persist_open(made.id, -1, &event, base);
	ok(fd >= 0 && event.pages == RING_PAGES, "B opens the event again, and gets the size of its ring");
	ok(mmap(NULL, ring_bytes(4), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL,
	   "a mapping of another size: EINVAL, by the kernel");
	ring = mmap(NULL, ring_bytes(event.pages), PROT_READ, MAP_SHARED, fd, 0);
	ok(ring != MAP_FAILED, "a mapping of the ring's size succeeds");
	value = value_of(fd);
	nr = ring == MAP_FAILED ? 0 : count_records(ring);
	ok(nr >= 600 && (uint64_t)nr == value.value, "a record for each fault, before and after A: %d of %llu", nr,
	   (unsigned long long)value.value);
	ok(value.enabled_ns == value.running_ns, "a ring's event: time_enabled == time_running");
	is_num(csink_persist_attach(fd, base), 0, "an event with a ring is attached");
	target_faults(50);
	ok(count_records(ring) >= nr + 50, "the ring continues for B");
	munmap((void *)ring, ring_bytes(event.pages));
	close(fd);
	made = in_process(make_ring, 0);
	is_num(made.err, 0, "a ring that no process mapped before the keeper");
	target_faults(50);
	fd = csink_persist_open(made.id, -1, &event, base);
	ring = mmap(NULL, ring_bytes(event.pages), PROT_READ, MAP_SHARED, fd, 0);
	ok(ring != MAP_FAILED && count_records(ring) >= 50, "a ring mapped late collects from then on");
	close(fd);
	munmap((void *)ring, ring_bytes(event.pages));
	made = in_process(make_ring, 4);
	is_num(made.err, -EINVAL, "a ring that is mapped at another size: EINVAL");
	is_num(attach_all(), 0, "all events with rings are attached");
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static int detach_with(void (*spoil)(struct csink_persist_event *event))
{
	struct perf_event_attr attr = faults();
	struct csink_persist_event event = event_of(&attr, target.pid);
	int fd = open_event(&attr, target.pid), err;

	spoil(&event);
	err = fd < 0 ? fd : csink_persist_detach(fd, &event, base);
	close(fd);
	return err;
}

static void spoil_format(struct csink_persist_event *event)
{
	event->attr.read_format = 0;
}

static void spoil_mode(struct csink_persist_event *event)
{
	event->mode = 01600;
}

static void spoil_pages(struct csink_persist_event *event)
{
	event->pages = 3;
}

static void spoil_cpu(struct csink_persist_event *event)
{
	event->cpu = -2;
}

static void test_errors(void)
{
	struct perf_event_attr attr = faults();
	struct csink_persist_event event = event_of(&attr, target.pid);
	int fd = open_event(&attr, target.pid), ends[2];
	struct csink_persist_value value;

	is_num(csink_persist_open(1, -1, NULL, base), -ENOENT, "open without a keeper: ENOENT");
	is_num(csink_persist_read(1, &value, base), -ENOENT, "read without a keeper: ENOENT");
	is_num(csink_persist_attach(fd, base), -ENOENT, "attach of an event that is not persistent: ENOENT");
	is_num(nr_listed(), 0, "the list is empty after errors");
	ok(wait_until(has_no_keeper), "refused events start no keeper");
	is_num(csink_persist_detach(fd, &event, base), 0, "an event is made persistent");
	is_num(csink_persist_detach(fd, &event, base), -EEXIST, "an event made persistent twice: EEXIST");
	is_num(csink_persist_open(event.id + 1, -1, NULL, base), -ENOENT, "open of an unknown id: ENOENT");
	is_num(csink_persist_read(event.id + 1, &value, base), -ENOENT, "read of an unknown id: ENOENT");
	is_num(csink_persist_open(event.id, 0, NULL, base), -EINVAL, "a task's event on a CPU: EINVAL");
	is_num(csink_persist_attach(fd, base), 0, "an event is attached by its opener");
	is_num(csink_persist_attach(fd, base), -ENOENT, "an event attached twice: ENOENT");
	close(fd);
	is_num(csink_persist_detach(fd, &event, base), -EBADF, "detach of an fd that is not open: EBADF");
	is_num(csink_persist_attach(fd, base), -EBADF, "attach of an fd that is not open: EBADF");
	if (!pipe2(ends, O_CLOEXEC)) {
		is_num(csink_persist_detach(ends[0], &event, base), -EINVAL, "detach of a pipe: EINVAL");
		is_num(csink_persist_attach(ends[0], base), -EINVAL, "attach of a pipe: EINVAL");
		close(ends[0]);
		close(ends[1]);
	}
	is_num(detach_with(spoil_format), -EINVAL, "another read_format than the event's: EINVAL");
	is_num(detach_with(spoil_mode), -EINVAL, "a mode with other bits: EINVAL");
	is_num(detach_with(spoil_pages), -EINVAL, "a ring of three pages: EINVAL");
	is_num(detach_with(spoil_cpu), -EINVAL, "an event of CPU -2: EINVAL");
	ok(wait_until(has_no_keeper), "a keeper that got no event ends");
	is_num(nr_files(), 0, "a keeper that got no event leaves no event file");
}

static void test_directory(void)
{
	char elsewhere[192];

	is_num(chmod(directory, 0777), 0, "the directory is writable for others");
	is_num(in_process(make, 0).err, -EPERM, "a directory writable for others is not trusted: EPERM");
	is_num(csink_persist_open(1, -1, NULL, base), -EPERM, "open in a directory writable for others: EPERM");
	is_num(csink_persist_lost(base), -EPERM, "lost in a directory writable for others: EPERM");
	chmod(directory, 0700);
	snprintf(elsewhere, sizeof(elsewhere), "%s.moved", directory);
	if (rename(directory, elsewhere) || symlink(elsewhere, directory))
		ok(0, "the directory is moved");
	is_num(in_process(make, 0).err, -EPERM, "a link to a directory is not trusted: EPERM");
	unlink(directory);
	is_num(rename(elsewhere, directory), 0, "the run directory is moved back");
	is_num(csink_persist_open(1, -1, NULL, "/nonexistent"), -ENOENT, "a base that is not there: ENOENT");
}

static struct word make_without_program(uint64_t mode)
{
	setenv("PATH", "/nonexistent", 1);
	return make(mode);
}

static struct word make_too_many(uint64_t unused)
{
	struct rlimit limit = {100, 100};
	struct perf_event_attr attr = faults();
	struct word word = {0};

	(void)unused;
	setrlimit(RLIMIT_NOFILE, &limit); /* which the keeper inherits, and can have half of for events */
	for (word.value = 0; word.value < 60 && !word.err; word.value += !word.err) {
		struct csink_persist_event event = event_of(&attr, 0);
		int fd = open_event(&attr, 0);

		word.err = fd < 0 ? fd : csink_persist_detach(fd, &event, base);
		close(fd);
	}
	return word;
}

static void test_limits(void)
{
	struct word word;

	is_num(in_process(make_without_program, 0).err, -ENOEXEC, "no countersink to be the keeper: ENOEXEC");
	word = in_process(make_too_many, 0);
	is_num(word.err, -EMFILE, "more events than the keeper has descriptors: EMFILE");
	is_num((long long)word.value, 50, "half of few descriptors are for events");
	is_num(nr_listed(), 50, "all accepted events are listed");
	is_num(attach_all(), 0, "all accepted events can be attached");
	ok(wait_until(has_no_keeper), "the keeper ends after its last event");
}

/* ---- the keeper's own end ---------------------------------------------------------------------------------------- */

static void test_killed(void)
{
	struct word one = in_process(make, 0), two = in_process(make, 0);
	pid_t pid = keeper_pid();
	struct csink_persist_value value;

	ok(!one.err && !two.err && pid > 0 && one.id != two.id, "two events of one keeper are made");
	is_num(csink_persist_lost(base), 0, "no event is lost while the keeper runs");
	kill(pid, SIGKILL);
	ok(wait_until(has_no_keeper), "the keeper is killed");
	is_num(csink_persist_lost(base), 2, "lost reports the two events of the killed keeper");
	is_num(csink_persist_read(one.id, &value, base), -ENOENT,
	       "an event of the killed keeper cannot be read: ENOENT");
	one = in_process(make, 0);
	is_num(one.err, 0, "another keeper starts after the kill");
	is_num(csink_persist_lost(base), 0, "lost reports no event after another keeper has started");
	is_num(nr_files(), 1, "the list has no event of the killed keeper");
	kill(keeper_pid(), SIGTERM);
	ok(wait_until(has_no_keeper), "SIGTERM ends a keeper");
	is_num(nr_files(), 0, "a keeper ended by SIGTERM leaves no event file");
	is_num(csink_persist_lost(base), 0, "lost reports no event of a keeper ended by SIGTERM");
}

int main(void)
{
	if (!begin())
		return done();
	target_start();
	test_cycle();
	test_cpu();
	test_ring();
	test_errors();
	test_directory();
	test_limits();
	test_killed();
	target_end();
	test_after_target();
	finish();
	return done();
}
