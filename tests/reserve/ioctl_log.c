/*
 * Loaded into PCP's agent by the tests: says how many of its events are enabled now, in a mapped file, so that what the
 * agent reports of itself can be held against what it does.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "tests/reserve/ioctl_log.h"

static struct ioctl_log *shared;
static unsigned char is_enabled[4096];

__attribute__((constructor)) static void open_log(void)
{
	const char *path = getenv(IOCTL_LOG_VARIABLE);
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;

	if (fd < 0 || ftruncate(fd, sizeof(*shared)))
		return;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		shared = NULL;
	close(fd);
}

/* The agent does this in one thread, under a lock of its own. */
static void note(int fd, int on)
{
	if (!shared || fd < 0 || fd >= (int)sizeof(is_enabled) || is_enabled[fd] == on)
		return;
	is_enabled[fd] = (unsigned char)on;
	__atomic_add_fetch(&shared->nr_enabled, on ? 1 : -1, __ATOMIC_SEQ_CST);
}

CSINK_EXPORT int ioctl(int fd, unsigned long request, ...);

CSINK_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	static int (*real)(int, unsigned long, ...);
	va_list ap;
	void *arg;
	int ret;

	if (!real)
		real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	/* Said to be enabled before it is, and until it is no more. */
	if (request == PERF_EVENT_IOC_ENABLE)
		note(fd, 1);
	ret = real(fd, request, arg);
	if (request == PERF_EVENT_IOC_DISABLE && !ret)
		note(fd, 0);
	return ret;
}
