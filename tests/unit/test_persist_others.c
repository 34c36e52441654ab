/* Persistent events of others: who may read, open, list and detach them, and who pretends to be a keeper. */
#include <sys/resource.h>
#include <sys/un.h>

#include "tests/unit/faulting_target.h"
#include "tests/unit/kernel.h"

#define UNPRIVILEGED_ID 65534

/* ---- others, for whom one must be root to become them ------------------------------------------------------------ */

static int inherited_fd;

static struct word become(void)
{
	struct word word = {.err = setgid(UNPRIVILEGED_ID) || setuid(UNPRIVILEGED_ID) ? -errno : 0};

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
	snprintf(directory, sizeof(directory), "%s/countersink-persist", own);
	wait_until(has_no_keeper);
	for (const char *const *name = (const char *const[]){"lock", "start", "events", NULL}; *name; name++) {
		snprintf(inside, sizeof(inside), "%s/%s", directory, *name);
		remove(inside);
	}
	rmdir(directory);
	rmdir(own);
	return word;
}

static void test_impostor(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), directory_fd;
	struct sockaddr_un address;
	char path[PATH_MAX];

	directory_fd = csink_persist_directory(base, false, path);
	csink_persist_address(directory_fd, &address);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1) ||
	    chown(directory, UNPRIVILEGED_ID, UNPRIVILEGED_ID))
		ok(0, "an impostor listens");
	is_num(csink_persist_open(1, -1, NULL, base), -EPERM,
	       "an impostor in another user's directory is not trusted: EPERM");
	close(fd);
	unlinkat(directory_fd, CSINK_PERSIST_SOCKET, 0);
	close(directory_fd);
	is_num(chown(directory, 0, 0), 0, "the directory is given back to this user");
}

static void test_others(void)
{
	struct word secret, shared, word;
	struct csink_perf_system system;
	struct stat st;

	if (geteuid()) {
		skip("other users", "needs root, to become another user");
		return;
	}
	secret = in_process(make, 0);
	is_num(secret.err, 0, "an event of mode 0600");
	is_num(stat(directory, &st) ? 0 : st.st_mode & 0777, 0700, "the keeper's directory is private");
	is_num(in_process(nobody_reads, secret.id).err, -EACCES, "another user cannot read a private event: EACCES");
	is_num(in_process(nobody_lists, 0).err, -EACCES, "another user cannot list private events: EACCES");
	shared = in_process(make, 0644);
	is_num(shared.err, 0, "an event of mode 0644 beside it");
	is_num(stat(directory, &st) ? 0 : st.st_mode & 0777, 0711, "lets others through the directory");
	word = in_process(nobody_reads, shared.id);
	is_num(word.err, 0, "another user can read a shared event");
	ok(word.value >= shared.value, "another user reads a shared event's value");
	is_num(in_process(nobody_opens, shared.id).err, -EACCES,
	       "another user gets no descriptor of a shared event: EACCES");
	is_num(in_process(nobody_reads, secret.id).err, -EACCES,
	       "another user cannot read the private event beside it: EACCES");
	is_num(in_process(nobody_opens, secret.id).err, -EACCES,
	       "another user cannot open the private event beside it: EACCES");
	is_num(in_process(nobody_lists, 0).err, 1, "he sees the one that he may read");
	inherited_fd = csink_persist_open(shared.id, -1, NULL, base);
	is_num(in_process(nobody_attaches, 0).err, -EACCES,
	       "another user cannot attach an event, though it has a descriptor: EACCES");
	is_num(csink_persist_attach(inherited_fd, base), 0, "the owner attaches the event");
	close(inherited_fd);
	is_num(stat(directory, &st) ? 0 : st.st_mode & 0777, 0700,
	       "without shared events the directory is private again");
	is_num(in_process(nobody_detaches, 0).err, -EACCES,
	       "no user can put events into another user's directory: EACCES");
	is_num(attach_all(), 0, "all events are attached");
	ok(wait_until(has_no_keeper), "the keeper has ended");
	word = in_process(nobody_has_no_memory, 0);
	csink_perf_system_read(&system);
	if (word.err == -EACCES && system.paranoid >= 3)
		skip("a ring over the limit of locked memory: ENOBUFS",
		     "kernel.perf_event_paranoid is 3: users have no events");
	else
		is_num(word.err, -ENOBUFS, "a ring over the limit of locked memory: ENOBUFS");
	test_impostor();
}

int main(void)
{
	if (!begin())
		return done();
	target_start();
	test_others();
	target_end();
	finish();
	return done();
}
