/* The rings of attach, as two threads use them: a wake-up that one asks for while the other drains is not lost. */
#include "launcher/session/rings.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/tap.h"

enum { PATIENCE_MS = 10000 };

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

static void take(void *arg, const struct perf_event_header *record, uint64_t time_ns)
{
	(void)arg;
	(void)record;
	(void)time_ns;
}

int main(void)
{
	struct pollfd ready = {.events = POLLIN};

	ok(!csink_rings_init(&rings, 1, 16) && !csink_rings_share(&rings), "rings that another thread looks into");
	ready.fd = rings.epoll_fd;
	csink_rings_wake(&rings, 1);
	ok(is_ready(rings.epoll_fd), "a wake-up comes");
	csink_rings_drain(&rings, UINT64_MAX, take, NULL);
	ok(poll(&ready, 1, 0) == 0, "draining takes it back");
	comes_between = true;
	csink_rings_drain(&rings, UINT64_MAX, take, NULL);
	ok(is_ready(rings.epoll_fd), "it comes after that");
	csink_rings_drain(&rings, UINT64_MAX, take, NULL);
	csink_rings_wake(&rings, 1);
	ok(is_ready(rings.epoll_fd), "the next one comes, too");
	csink_rings_free(&rings);
	return done();
}
