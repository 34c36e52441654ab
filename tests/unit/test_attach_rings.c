/*
 * The rings of attach, as two threads use them: a wake-up that one asks for while the other drains is not lost. And
 * draining them in steps: each takes so many bytes, and none that is younger.
 */
#include "launcher/session/rings.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/tap.h"

enum { PATIENCE_MS = 60000 };

static struct csink_rings rings;
static bool comes_between; /* the other thread's call, which is made here */

static bool is_ready(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, PATIENCE_MS) > 0;
}

/* Draining takes back the timer's expiry by this call. */
ssize_t read(int fd, void *to, size_t bytes)
{
	if (comes_between) {
		comes_between = false;
		csink_rings_wake(&rings, 1);
		ok(is_ready(fd), "a wake-up is asked for while the rings are about to be drained");
	}
	return syscall(SYS_read, fd, to, bytes);
}

struct record {
	struct perf_event_header head;
	uint64_t time_ns, id;
};

static uint32_t nr_taken;
static uint64_t last_ns;

static void count(void *arg, const struct perf_event_header *record, uint64_t time_ns)
{
	(void)arg;
	(void)record;
	nr_taken++;
	last_ns = time_ns;
}

/* A ring as the kernel would have filled it: a record at each of so many nanoseconds. */
static void fill(uint32_t nr)
{
	struct record *at;
	void *map;

	rings.ring_bytes = rings.page_bytes;
	map = mmap(NULL, rings.ring_bytes + rings.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	rings.at[0].page = map;
	rings.at[0].fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	at = (struct record *)((char *)map + rings.page_bytes);
	for (uint32_t i = 0; i < nr; i++)
		at[i] = (struct record){{.type = PERF_RECORD_EXIT, .size = sizeof(*at)}, i + 1, 0};
	rings.at[0].page->data_head = nr * sizeof(*at);
}

static void test_steps(void)
{
	const uint64_t step = 4 * sizeof(struct record);
	uint32_t nr_steps = 0;
	bool is_more;

	ok(!csink_rings_init(&rings, 1, 16), "one ring is made");
	fill(100);
	is_more = csink_rings_drain_some(&rings, 100, step, count, NULL);
	ok(is_more && nr_taken == 5, "a step takes no more than its bytes and a record (%u), and another one is due",
	   nr_taken);
	do
		nr_steps++;
	while (csink_rings_drain_some(&rings, 100, step, count, NULL));
	ok(nr_taken == 99 && last_ns == 99 && nr_steps == 19, "the others take the rest, but what is younger: %u in %u",
	   nr_taken, nr_steps);
	csink_rings_drain(&rings, UINT64_MAX, count, NULL);
	is_num(nr_taken, 100, "draining all takes that, too");
	csink_rings_free(&rings);
}

static void take(void *arg, const struct perf_event_header *record, uint64_t time_ns)
{
	(void)arg;
	(void)record;
	(void)time_ns;
}

int main(void)
{
	struct pollfd ready = {.events = POLLIN};

	ok(!csink_rings_init(&rings, 1, 16) && !csink_rings_share(&rings),
	   "rings that another thread looks into are made");
	ready.fd = rings.epoll_fd;
	csink_rings_wake(&rings, 1);
	ok(is_ready(rings.epoll_fd), "waking a ring makes its descriptor readable");
	csink_rings_drain(&rings, UINT64_MAX, take, NULL);
	ok(poll(&ready, 1, 0) == 0, "draining makes the descriptor unreadable again");
	comes_between = true;
	csink_rings_drain(&rings, UINT64_MAX, take, NULL);
	ok(is_ready(rings.epoll_fd), "a wake-up that is asked for during a drain comes after it");
	csink_rings_drain(&rings, UINT64_MAX, take, NULL);
	csink_rings_wake(&rings, 1);
	ok(is_ready(rings.epoll_fd), "the next one comes, too");
	csink_rings_free(&rings);
	test_steps();
	return done();
}
