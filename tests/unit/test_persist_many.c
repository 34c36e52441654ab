/*
 * Many at once: a hundred clients that all start the keeper, and a thousand that die at random moments. No event and no
 * fd may be lost or left over.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/unit/persist_try.h"

#define RACERS 100
#define CLIENTS 1000
#define MAX_CLIENTS 5000
#define AT_A_TIME 24
#define MAX_IDS 16384

enum state { MADE = 1, ATTACHING, ATTACHED };

/* What clients did, in memory that they share. */
static struct shared {
	atomic_int nr_ready, nr_made, nr_failed, nr_keepers, nr_opened, nr_read;
	atomic_uint nr;
	atomic_int first_error;
	struct {
		_Atomic uint64_t id;
		atomic_int state;
	} of[MAX_IDS];
} * shared;

static bool make_one(uint64_t *id)
{
	struct perf_event_attr attr = faults();
	struct csink_persist_event event = event_of(&attr, 0);
	int fd = open_event(&attr, 0), err = fd < 0 ? fd : csink_persist_detach(fd, &event, base), none = 0;

	if (fd >= 0)
		close(fd);
	*id = event.id;
	if (err)
		atomic_compare_exchange_strong(&shared->first_error, &none, err);
	return !err;
}

/* ---- a race ------------------------------------------------------------------------------------------------------ */

static bool all_ready(void)
{
	return shared->nr_ready == RACERS;
}

static void race(int start_fd)
{
	uint64_t id;
	char byte;

	shared->nr_ready++;
	if (read(start_fd, &byte, 1) < 0) /* until the other end closes */
		_exit(1);
	if (make_one(&id)) {
		shared->nr_made++;
		shared->of[shared->nr++].id = (uint64_t)keeper_pid();
	}
	_exit(0);
}

/* Processes that keep events in our directory. */
static int nr_keepers(void)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	int nr = 0;

	while (proc && (entry = readdir(proc))) {
		char path[288], line[512];
		ssize_t len = -1;
		int fd;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		fd = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fd >= 0) {
			len = read(fd, line, sizeof(line));
			close(fd);
		}
		nr += len > 0 && memmem(line, (size_t)len, "keep", 5) && memmem(line, (size_t)len, base, strlen(base));
	}
	if (proc)
		closedir(proc);
	return nr;
}

static bool keepers_are_gone(void)
{
	return nr_keepers() == 0;
}

static void test_race(void)
{
	int start[2], other = 0;

	if (pipe2(start, O_CLOEXEC))
		exit(1);
	fflush(stdout);
	for (int i = 0; i < RACERS; i++) {
		if (!fork()) {
			close(start[1]);
			race(start[0]);
		}
	}
	ok(wait_until(all_ready), "%d clients stand ready", RACERS);
	close(start[0]);
	close(start[1]);
	while (wait(NULL) > 0)
		;
	is_num(shared->nr_made, RACERS, "all clients make an event persistent");
	is_num(shared->first_error, 0, "no client reports an error");
	for (unsigned i = 0; i < shared->nr; i++)
		other += shared->of[i].id != shared->of[0].id || !shared->of[i].id;
	is_num(other, 0, "all clients have the same keeper");
	is_num(nr_keepers(), 1, "there is one keeper process");
	is_num(nr_listed(), RACERS, "all events are listed");
	is_num(attach_all(), 0, "all events can be attached");
	ok(wait_until(has_no_keeper), "the keeper ends after the last event");
	ok(wait_until(keepers_are_gone), "the keeper process has ended");
}

/* The same at its end: whoever comes as it goes finds another. */
static void test_comings_and_goings(void)
{
	int failed = 0;
	uint64_t id;

	fflush(stdout);
	for (int i = 0; i < 4; i++) {
		if (fork())
			continue;
		for (int n = 0; n < 50; n++) {
			int fd = make_one(&id) ? csink_persist_open(id, -1, NULL, base) : -1;

			shared->nr_failed += fd < 0 || csink_persist_attach(fd, base);
			close(fd);
		}
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	failed = shared->nr_failed;
	is_num(failed, 0, "200 times made and attached, while keepers come and go");
	ok(wait_until(has_no_keeper), "the last keeper has ended");
}

/* ---- deaths ------------------------------------------------------------------------------------------------------ */

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 8;
}

/* SIGKILL after so long, by the kernel: in the middle of whatever is being done. */
static void die_in(long us)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {.it_value = {us / 1000000, us % 1000000 * 1000}};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
		_exit(1);
}

static void use_one(unsigned *seed)
{
	unsigned nr = shared->nr, at = nr ? next_random(seed) % nr : 0;
	struct csink_persist_value value;
	int fd, was = MADE;

	if (!nr || !shared->of[at].id)
		return;
	if (next_random(seed) % 2) {
		shared->nr_read += !csink_persist_read(shared->of[at].id, &value, base);
		return;
	}
	fd = csink_persist_open(shared->of[at].id, -1, NULL, base);
	if (fd < 0)
		return;
	shared->nr_opened++;
	if (next_random(seed) % 2 && atomic_compare_exchange_strong(&shared->of[at].state, &was, ATTACHING) &&
	    !csink_persist_attach(fd, base))
		shared->of[at].state = ATTACHED;
	if (next_random(seed) % 2) /* or leave that to the end */
		close(fd);
}

/* Long enough for some to get through with a few requests, on this machine and with its load; short enough for others
 * to get nowhere. */
static long longest_life_us(void)
{
	struct timespec from, to;
	long us;
	uint64_t id;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < 20; i++)
		make_one(&id);
	clock_gettime(CLOCK_MONOTONIC, &to);
	us = (long)(to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
	return us < 10000 ? 20000 : us > 450000 ? 900000 : 2 * us;
}

static void live(unsigned seed, long longest_us)
{
	die_in(1 + (long)next_random(&seed) % longest_us);
	for (;;) {
		uint64_t id;

		if (next_random(&seed) % 3 || shared->nr >= MAX_IDS) {
			use_one(&seed);
		} else if (make_one(&id)) {
			unsigned at = shared->nr++;

			shared->of[at].state = MADE;
			shared->of[at].id = id;
		}
	}
}

struct listed {
	uint64_t ids[MAX_IDS + MAX_CLIENTS];
	int nr;
};

static int note_id(const struct csink_persist_event *event, void *data)
{
	struct listed *listed = data;

	if (listed->nr < (int)(sizeof(listed->ids) / sizeof(listed->ids[0])))
		listed->ids[listed->nr++] = event->id;
	return 0;
}

static bool is_listed(const struct listed *listed, uint64_t id)
{
	for (int i = 0; i < listed->nr; i++) {
		if (listed->ids[i] == id)
			return true;
	}
	return false;
}

static bool did_work(void)
{
	int made = 0, attached = 0;

	for (unsigned i = 0; i < shared->nr && i < MAX_IDS; i++) {
		made += !!shared->of[i].id;
		attached += shared->of[i].state == ATTACHED;
	}
	return made > CLIENTS / 20 && attached > 5 && shared->nr_opened > 20;
}

static void judge(void)
{
	static struct listed listed;
	int lost = 0, left = 0, made = 0, attached = 0, events, all;

	csink_persist_list(note_id, &listed, base);
	for (unsigned i = 0; i < shared->nr && i < MAX_IDS; i++) {
		uint64_t id = shared->of[i].id;

		if (!id)
			continue; /* died before it said so: it may be there */
		made++;
		attached += shared->of[i].state == ATTACHED;
		lost += shared->of[i].state == MADE && !is_listed(&listed, id);
		left += shared->of[i].state == ATTACHED && is_listed(&listed, id);
	}
	printf("# %d made, %d attached, %d opened, %d read; %d are persistent\n", made, attached, shared->nr_opened,
	       shared->nr_read, listed.nr);
	ok(did_work(), "clients did some work before they were killed");
	is_num(lost, 0, "no event is lost");
	is_num(left, 0, "no attached event is left over");
	is_num(nr_files(), listed.nr, "the directory has a file for each listed event");
	count_fds(keeper_pid(), &events, &all);
	is_num(events, listed.nr, "the keeper has an fd for each listed event, and no more");
	ok(all - events <= 10, "the keeper has no descriptor of a killed client (%d others)", all - events);
}

static bool has_few_clients(void)
{
	int events, all;

	count_fds(keeper_pid(), &events, &all);
	return all - events <= 10;
}

static void test_deaths(void)
{
	int alive = 0, keepers;
	long longest_us;
	uint64_t first;

	memset(shared, 0, sizeof(*shared));
	ok(make_one(&first), "a keeper starts with the first event");
	longest_us = longest_life_us();
	printf("# they live %ld us at most\n", longest_us);
	fflush(stdout);
	/* More of them, which live longer, where the machine got busier meanwhile. */
	for (unsigned i = 0; i < CLIENTS || (i < MAX_CLIENTS && !did_work()); i++) {
		if (alive == AT_A_TIME && wait(NULL) > 0)
			alive--;
		if (!fork())
			live(i * 2654435761U, longest_us * (1 + (long)i / CLIENTS));
		alive++;
	}
	while (wait(NULL) > 0)
		;
	printf("# the first error of those that lived to see one: %d\n", shared->first_error);
	is_num(shared->first_error, 0, "1,000 clients, each killed at a random moment: no client had an error");
	ok(wait_until(has_few_clients), "the keeper has closed the connections of the killed clients");
	judge();
	keepers = nr_keepers();
	is_num(keepers, 1, "there is one keeper after the killed clients");
	is_num(attach_all(), 0, "the remaining events can be attached");
	ok(wait_until(has_no_keeper), "the keeper ends after the remaining events");
	is_num(nr_files(), 0, "the ended keeper leaves no event file");
}

/* ---- a keeper that does not answer ------------------------------------------------------------------------------- */

static void test_stopped(void)
{
	struct csink_persist_value value;
	uint64_t id;
	pid_t pid;

	ok(make_one(&id), "a keeper starts with its first event");
	pid = keeper_pid();
	kill(pid, SIGSTOP);
	is_num(csink_persist_read(id, &value, base), -ETIMEDOUT, "a stopped keeper: ETIMEDOUT");
	kill(pid, SIGCONT);
	is_num(csink_persist_read(id, &value, base), 0, "a continued keeper answers");
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (!begin())
		return done();
	test_race();
	test_comings_and_goings();
	test_deaths();
	test_stopped();
	finish();
	return done();
}
