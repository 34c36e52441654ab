/*
 * Persistent events: they go on without their openers, also their rings; each error by name; who may do what; and the
 * keeper's own end.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "tests/unit/persist_try.h"

#define NOBODY 65534
#define RING_PAGES 8

/* ---- a process that faults when it is told to -------------------------------------------------------------------- */

static struct {
	pid_t pid;
	int to, from;
} target;

static void fault(int nr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *pages =
		mmap(NULL, (size_t)nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)pages, (size_t)nr * page, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		pages[(size_t)i * page] = 1;
	munmap((void *)pages, (size_t)nr * page);
}

static void target_start(void)
{
	int to[2], from[2], nr;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		exit(1);
	target.pid = fork();
	if (!target.pid) {
		close(to[1]);
		while (read(to[0], &nr, sizeof(nr)) == sizeof(nr)) {
			fault(nr);
			if (write(from[1], &nr, sizeof(nr)) < 0)
				break;
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	target.to = to[1];
	target.from = from[0];
}

static void target_faults(int nr)
{
	int done = 0;

	if (write(target.to, &nr, sizeof(nr)) < 0 || read(target.from, &done, sizeof(done)) < 0 || done != nr)
		ok(0, "the target faults");
}

static void target_end(void)
{
	close(target.to);
	close(target.from);
	waitpid(target.pid, NULL, 0);
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

/* What a child found: its own words to the parent. */
struct word {
	int err;
	uint64_t id, value;
};

/* In a process of its own, that is gone when this returns. */
static struct word in_process(struct word (*act)(uint64_t id), uint64_t id)
{
	struct word word = {.err = -ECHILD};
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return word;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		word = act(id);
		_exit(write(ends[1], &word, sizeof(word)) != sizeof(word));
	}
	close(ends[1]);
	if (read(ends[0], &word, sizeof(word)) != sizeof(word))
		word.err = -ECHILD;
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return word;
}

static struct csink_persist_value value_of(int fd)
{
	struct csink_persist_value value = {0};

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		memset(&value, 0, sizeof(value));
	return value;
}

/* Makes an event of the target persistent and goes. */
static struct word make(uint64_t mode)
{
	struct perf_event_attr attr = faults();
	struct csink_persist_event event = event_of(&attr, target.pid);
	int fd = open_event(&attr, target.pid);
	struct word word = {0};

	event.mode = (uint32_t)mode;
	target_faults(100);
	word.value = value_of(fd).value;
	word.err = fd < 0 ? fd : csink_persist_detach(fd, &event, base);
	word.id = event.id;
	return word;
}

/* ---- the count goes on ------------------------------------------------------------------------------------------- */

static void test_cycle(void)
{
	struct word made = in_process(make, 0);
	struct csink_persist_event event;
	struct csink_persist_value value;
	uint64_t before;
	int fd, more;

	is_num(made.err, 0, "A makes an event persistent, and is gone");
	ok(made.value >= 100 && made.value < 200, "having counted %llu faults", (unsigned long long)made.value);
	is_num(nr_listed(), 1, "one is listed");
	is_num(nr_files(), 1, "in the folder, too");
	target_faults(500);
	is_num(csink_persist_read(made.id, &value, base), 0, "it can be read by its id");
	before = value.value;
	ok(before >= made.value + 500, "and has counted on: %llu", (unsigned long long)before);
	ok(value.enabled_ns && value.enabled_ns == value.running_ns, "time_enabled == time_running: without a gap");
	fd = csink_persist_open(made.id, -1, &event, base);
	ok(fd >= 0, "B opens it again");
	ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "CLOEXEC");
	ok(event.id == made.id && event.pid == target.pid && event.cpu == -1 && event.uid == geteuid() &&
		   event.attr.config == PERF_COUNT_SW_PAGE_FAULTS && !strcmp(event.name, "faults") &&
		   event.mode == 0600,
	   "and is told what it is");
	target_faults(500);
	value = value_of(fd);
	ok(value.value >= before + 500 && value.enabled_ns == value.running_ns, "it counts on without a gap: %llu",
	   (unsigned long long)value.value);
	more = csink_persist_open(made.id, -1, NULL, base);
	ok(more >= 0, "C opens it beside");
	is_num(csink_persist_attach(fd, base), 0, "B attaches it");
	is_num(csink_persist_open(made.id, -1, NULL, base), -ENOENT, "it cannot be opened any more: ENOENT");
	close(fd);
	target_faults(10);
	ok(value_of(more).value >= value.value + 10, "it lives while C has it open");
	close(more);
	is_num(nr_listed(), 0, "none is listed");
	is_num(nr_files(), 0, "nor a file left");
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
	is_num(csink_persist_open(event.id, 1, NULL, base), -EINVAL, "opened on another CPU: EINVAL");
	is_num(csink_persist_open(event.id, -1, NULL, base), -EINVAL, "on any: EINVAL");
	fd = csink_persist_open(event.id, 0, NULL, base);
	ok(fd >= 0, "on the same CPU");
	is_num(csink_persist_attach(fd, base), 0, "and attached");
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
	is_num(csink_persist_read(made.id, &after, base), 0, "the count of a task that has ended can still be read");
	ok(after.value >= before.value && after.value >= made.value, "and is what it was or more");
	is_num(attach_all(), 0, "it is attached");
}

/* ---- the ring goes on -------------------------------------------------------------------------------------------- */

static size_t ring_bytes(uint32_t pages)
{
	return (pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
}

static struct perf_event_attr sampled_faults(void)
{
	struct perf_event_attr attr = faults();

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr.write_backward = 1;
	return attr;
}

static struct word make_ring(uint64_t map_pages)
{
	struct perf_event_attr attr = sampled_faults();
	struct csink_persist_event event = event_of(&attr, target.pid);
	int fd = open_event(&attr, target.pid);
	struct word word = {0};

	if (map_pages && mmap(NULL, ring_bytes((uint32_t)map_pages), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) {
		word.err = -errno;
		return word;
	}
	target_faults(100);
	event.pages = RING_PAGES;
	word.err = fd < 0 ? fd : csink_persist_detach(fd, &event, base);
	word.id = event.id;
	word.value = value_of(fd).value;
	return word;
}

/* Records of samples, from the latest one back. */
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

	is_num(made.err, 0, "A maps a ring, makes it persistent, and is gone");
	target_faults(500);
	fd = csink_persist_open(made.id, -1, &event, base);
	ok(fd >= 0 && event.pages == RING_PAGES, "B opens it again, and is told its size");
	ok(mmap(NULL, ring_bytes(4), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL,
	   "a mapping of another size: EINVAL, by the kernel");
	ring = mmap(NULL, ring_bytes(event.pages), PROT_READ, MAP_SHARED, fd, 0);
	ok(ring != MAP_FAILED, "one of its size maps");
	value = value_of(fd);
	nr = ring == MAP_FAILED ? 0 : count_records(ring);
	ok(nr >= 600 && (uint64_t)nr == value.value, "a record for each fault, before and after A: %d of %llu", nr,
	   (unsigned long long)value.value);
	ok(value.enabled_ns == value.running_ns, "time_enabled == time_running");
	is_num(csink_persist_attach(fd, base), 0, "attached");
	target_faults(50);
	ok(count_records(ring) >= nr + 50, "it goes on for B");
	munmap((void *)ring, ring_bytes(event.pages));
	close(fd);
	made = in_process(make_ring, 0);
	is_num(made.err, 0, "a ring that nobody has mapped before the keeper");
	target_faults(50);
	fd = csink_persist_open(made.id, -1, &event, base);
	ring = mmap(NULL, ring_bytes(event.pages), PROT_READ, MAP_SHARED, fd, 0);
	ok(ring != MAP_FAILED && count_records(ring) >= 50, "collects from then on");
	close(fd);
	munmap((void *)ring, ring_bytes(event.pages));
	made = in_process(make_ring, 4);
	is_num(made.err, -EINVAL, "a ring that is mapped at another size: EINVAL");
	is_num(attach_all(), 0, "all are attached");
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
	is_num(csink_persist_read(1, &value, base), -ENOENT, "read: ENOENT");
	is_num(csink_persist_attach(fd, base), -ENOENT, "attach of an event that is not persistent: ENOENT");
	is_num(nr_listed(), 0, "an empty list");
	ok(wait_until(has_no_keeper), "and no keeper is started for these");
	is_num(csink_persist_detach(fd, &event, base), 0, "an event");
	is_num(csink_persist_detach(fd, &event, base), -EEXIST, "made persistent twice: EEXIST");
	is_num(csink_persist_open(event.id + 1, -1, NULL, base), -ENOENT, "an unknown id: ENOENT");
	is_num(csink_persist_read(event.id + 1, &value, base), -ENOENT, "read: ENOENT");
	is_num(csink_persist_open(event.id, 0, NULL, base), -EINVAL, "a task's event on a CPU: EINVAL");
	is_num(csink_persist_attach(fd, base), 0, "attached by its opener");
	is_num(csink_persist_attach(fd, base), -ENOENT, "attached twice: ENOENT");
	close(fd);
	is_num(csink_persist_detach(fd, &event, base), -EBADF, "an fd that is not open: EBADF");
	is_num(csink_persist_attach(fd, base), -EBADF, "attach: EBADF");
	if (!pipe2(ends, O_CLOEXEC)) {
		is_num(csink_persist_detach(ends[0], &event, base), -EINVAL, "no perf event: EINVAL");
		is_num(csink_persist_attach(ends[0], base), -EINVAL, "attach: EINVAL");
		close(ends[0]);
		close(ends[1]);
	}
	is_num(detach_with(spoil_format), -EINVAL, "another read_format than the event's: EINVAL");
	is_num(detach_with(spoil_mode), -EINVAL, "a mode with other bits: EINVAL");
	is_num(detach_with(spoil_pages), -EINVAL, "three pages: EINVAL");
	is_num(detach_with(spoil_cpu), -EINVAL, "no CPU: EINVAL");
	ok(wait_until(has_no_keeper), "a keeper that got nothing ends");
	is_num(nr_files(), 0, "and leaves nothing in the list");
}

static void test_folder(void)
{
	char elsewhere[192];

	is_num(chmod(folder, 0777), 0, "a folder that others may write");
	is_num(in_process(make, 0).err, -EPERM, "is not trusted: EPERM");
	is_num(csink_persist_open(1, -1, NULL, base), -EPERM, "by nobody");
	is_num(csink_persist_lost(base), -EPERM, "for nothing");
	chmod(folder, 0700);
	snprintf(elsewhere, sizeof(elsewhere), "%s.moved", folder);
	if (rename(folder, elsewhere) || symlink(elsewhere, folder))
		ok(0, "the folder is moved");
	is_num(in_process(make, 0).err, -EPERM, "nor is a link: EPERM");
	unlink(folder);
	is_num(rename(elsewhere, folder), 0, "the folder is back");
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
	is_num(word.err, -EMFILE, "more events than the keeper has fds: EMFILE");
	is_num((long long)word.value, 50, "half of them are for events, where they are so few");
	is_num(nr_listed(), 50, "and these are all there");
	is_num(attach_all(), 0, "and can be attached");
	ok(wait_until(has_no_keeper), "the keeper ends");
}

/* ---- the keeper's own end ---------------------------------------------------------------------------------------- */

static void test_killed(void)
{
	struct word one = in_process(make, 0), two = in_process(make, 0);
	pid_t pid = keeper_pid();
	struct csink_persist_value value;

	ok(!one.err && !two.err && pid > 0 && one.id != two.id, "two events, one keeper");
	is_num(csink_persist_lost(base), 0, "none is lost");
	kill(pid, SIGKILL);
	ok(wait_until(has_no_keeper), "the keeper is killed");
	is_num(csink_persist_lost(base), 2, "two are lost, which can be asked");
	is_num(csink_persist_read(one.id, &value, base), -ENOENT, "they cannot be read: ENOENT");
	one = in_process(make, 0);
	is_num(one.err, 0, "another keeper starts");
	is_num(csink_persist_lost(base), 0, "and knows nothing of them");
	is_num(nr_files(), 1, "nor has the list");
	kill(keeper_pid(), SIGTERM);
	ok(wait_until(has_no_keeper), "SIGTERM ends a keeper");
	is_num(nr_files(), 0, "which leaves nothing");
	is_num(csink_persist_lost(base), 0, "as it was meant to");
}

/* ---- others, for whom one must be root to become them ------------------------------------------------------------ */

static int inherited_fd;

static struct word become(void)
{
	struct word word = {.err = setgid(NOBODY) || setuid(NOBODY) ? -errno : 0};

	return word;
}

static struct word nobody_reads(uint64_t id)
{
	struct csink_persist_value value = {0};
	struct word word = become();

	word.err = csink_persist_read(id, &value, base);
	word.value = value.value;
	return word;
}

static struct word nobody_opens(uint64_t id)
{
	struct word word = become();

	word.err = csink_persist_open(id, -1, NULL, base);
	return word;
}

static struct word nobody_lists(uint64_t id)
{
	struct word word = become();

	(void)id;
	word.err = nr_listed();
	return word;
}

static struct word nobody_attaches(uint64_t id)
{
	struct word word = become();

	(void)id;
	word.err = csink_persist_attach(inherited_fd, base);
	return word;
}

static struct word nobody_detaches(uint64_t id)
{
	struct perf_event_attr attr = faults();
	struct csink_persist_event event = event_of(&attr, 0);
	struct word word = become();
	int fd = open_event(&attr, 0);

	(void)id;
	word.err = fd < 0 ? fd : csink_persist_detach(fd, &event, base);
	return word;
}

static struct word nobody_has_no_memory(uint64_t id)
{
	struct rlimit none = {0, 0};
	struct perf_event_attr attr = sampled_faults();
	struct csink_persist_event event = event_of(&attr, 0);
	char own[] = "/tmp/csink-persist-XXXXXX", inside[192];
	struct word word = become();
	int fd = open_event(&attr, 0);

	(void)id;
	setrlimit(RLIMIT_MEMLOCK, &none);
	if (!mkdtemp(own))
		return (struct word){.err = -errno};
	event.pages = 1 << 15;
	word.err = fd < 0 ? fd : csink_persist_detach(fd, &event, own);
	strcpy(base, own);
	snprintf(folder, sizeof(folder), "%s/countersink-persist", own);
	wait_until(has_no_keeper);
	for (const char *const *name = (const char *const[]){"lock", "start", "events", NULL}; *name; name++) {
		snprintf(inside, sizeof(inside), "%s/%s", folder, *name);
		remove(inside);
	}
	rmdir(folder);
	rmdir(own);
	return word;
}

static void test_impostor(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), folder_fd;
	struct sockaddr_un address;
	char path[PATH_MAX];

	folder_fd = csink_persist_folder(base, false, path);
	csink_persist_address(folder_fd, &address);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1) || chown(folder, NOBODY, NOBODY))
		ok(0, "an impostor listens");
	is_num(csink_persist_open(1, -1, NULL, base), -EPERM, "who listens in another's folder is not trusted: EPERM");
	close(fd);
	unlinkat(folder_fd, CSINK_PERSIST_SOCKET, 0);
	close(folder_fd);
	is_num(chown(folder, 0, 0), 0, "the folder is ours again");
}

static void test_others(void)
{
	struct word secret, shared, word;
	struct stat st;

	if (geteuid()) {
		skip("other users", "it takes root to become one");
		return;
	}
	secret = in_process(make, 0);
	is_num(secret.err, 0, "an event of mode 0600");
	is_num(stat(folder, &st) ? 0 : st.st_mode & 0777, 0700, "its folder is private");
	is_num(in_process(nobody_reads, secret.id).err, -EACCES, "another user may not read it: EACCES");
	is_num(in_process(nobody_lists, 0).err, -EACCES, "nor list it: EACCES");
	shared = in_process(make, 0644);
	is_num(shared.err, 0, "an event of mode 0644 beside it");
	is_num(stat(folder, &st) ? 0 : st.st_mode & 0777, 0711, "lets others through the folder");
	word = in_process(nobody_reads, shared.id);
	is_num(word.err, 0, "another user may read its value");
	ok(word.value >= shared.value, "which is right");
	is_num(in_process(nobody_opens, shared.id).err, -EACCES, "but not have its fd: EACCES");
	is_num(in_process(nobody_reads, secret.id).err, -EACCES, "nor read the other one: EACCES");
	is_num(in_process(nobody_opens, secret.id).err, -EACCES, "nor open it: EACCES");
	is_num(in_process(nobody_lists, 0).err, 1, "he sees the one that he may read");
	inherited_fd = csink_persist_open(shared.id, -1, NULL, base);
	is_num(in_process(nobody_attaches, 0).err, -EACCES, "nor may he attach it, though he has an fd: EACCES");
	is_num(csink_persist_attach(inherited_fd, base), 0, "its owner may");
	close(inherited_fd);
	is_num(stat(folder, &st) ? 0 : st.st_mode & 0777, 0700, "then the folder is private again");
	is_num(in_process(nobody_detaches, 0).err, -EACCES, "nobody can put events into another's folder: EACCES");
	is_num(attach_all(), 0, "all are attached");
	ok(wait_until(has_no_keeper), "the keeper has ended");
	is_num(in_process(nobody_has_no_memory, 0).err, -EPERM, "a ring over the limit of locked memory: EPERM");
	test_impostor();
}

int main(void)
{
	struct perf_event_attr attr = faults();
	int fd = open_event(&attr, 0);

	if (fd < 0) {
		skip("persistent events", "perf_event_open is refused");
		return done();
	}
	close(fd);
	begin();
	target_start();
	test_cycle();
	test_cpu();
	test_ring();
	test_errors();
	test_folder();
	test_limits();
	test_killed();
	test_others();
	target_end();
	test_after_target();
	finish();
	return done();
}
