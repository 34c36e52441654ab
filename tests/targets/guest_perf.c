/*
 * A program that uses itself what profilers use: perf events that raise SIGTRAP or a signal of its choice, breakpoint
 * instructions, and counters that it reads.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

enum { NR_PAGES = 100, MY_DATA = 0x5eed, PAGE = 4096 };

static char *pages;
static volatile sig_atomic_t nr_raised, nr_breakpoints, nr_faults, nr_strange, nr_by_fd;

/* What the kernel puts behind si_addr: si_perf_data, which older headers do not know. */
static uint64_t perf_data(const siginfo_t *info)
{
	return *(const uint64_t *)((const char *)&info->si_addr + sizeof(void *));
}

static void on_trap(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	if (info->si_code == SI_TKILL)
		nr_raised++;
	else if (info->si_code == 6 /* TRAP_PERF */ && perf_data(info) == MY_DATA)
		nr_faults += (char *)info->si_addr >= pages && (char *)info->si_addr < pages + NR_PAGES * PAGE;
	else if (info->si_code > 0 && info->si_code != 6)
		nr_breakpoints++;
	else
		nr_strange++;
}

static void on_io(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	nr_by_fd += info->si_code == POLL_IN || info->si_code == POLL_HUP;
}

static int open_event(uint64_t config, uint64_t period, int sigtrap)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_ADDR,
		.disabled = 1,
		.exclude_kernel = 1,
		.sigtrap = sigtrap,
		.remove_on_exec = sigtrap,
		.sig_data = sigtrap ? MY_DATA : 0,
		.wakeup_events = !sigtrap && period,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void breakpoints(void)
{
	for (int i = 0; i < 3; i++) {
		raise(SIGTRAP);
#if defined(__x86_64__)
		__asm__ volatile("int3");
#elif defined(__aarch64__)
		nr_breakpoints++; /* the program would have to step over it */
#endif
		guest_burn(5);
	}
	printf("raised %d, breakpoints %d\n", (int)nr_raised, (int)nr_breakpoints);
}

static void faults(void)
{
	int fd = open_event(PERF_COUNT_SW_PAGE_FAULTS, 1, 1);

	if (fd < 0) {
		printf("no sigtrap event: %s\n", strerror(errno));
		return;
	}
	pages = mmap(NULL, NR_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(pages, NR_PAGES * PAGE, MADV_NOHUGEPAGE);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < NR_PAGES; i++) {
		pages[i * PAGE] = 1;
		guest_burn(1);
	}
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	close(fd);
	printf("faults seen: %d, strange signals: %d\n", (int)nr_faults, (int)nr_strange);
}

static void by_fd(void)
{
	struct sigaction act = {.sa_sigaction = on_io, .sa_flags = SA_SIGINFO | SA_RESTART};
	int fd = open_event(PERF_COUNT_SW_TASK_CLOCK, 1000000, 0);
	void *ring;

	if (fd < 0) {
		printf("no event: %s\n", strerror(errno));
		return;
	}
	sigaction(SIGIO, &act, NULL);
	ring = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fcntl(fd, F_SETOWN, getpid());
	fcntl(fd, F_SETSIG, SIGIO);
	fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	guest_burn(50);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	printf("ring %s, signals by fd: %s\n", ring == MAP_FAILED ? "refused" : "mapped",
	       nr_by_fd > 5 ? "many" : "few");
	munmap(ring, 2 * PAGE);
	close(fd);
}

static void counts(void)
{
	int fd = open_event(PERF_COUNT_SW_TASK_CLOCK, 0, 0);
	uint64_t first = 0, second = 0;

	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	guest_burn(50);
	if (read(fd, &first, sizeof(first)) != sizeof(first))
		puts("cannot read");
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &first, sizeof(first)) != sizeof(first))
		puts("cannot read");
	guest_burn(50);
	if (read(fd, &second, sizeof(second)) != sizeof(second))
		puts("cannot read");
	printf("counted %s, %s when disabled\n", first > 1000000 ? "some" : "nothing",
	       first == second ? "stands" : "runs");
	close(fd);
}

int main(void)
{
	struct sigaction act = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, now;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTRAP, &act, NULL);
	breakpoints();
	faults();
	by_fd();
	counts();
	sigaction(SIGTRAP, NULL, &now);
	printf("handler %s\n", now.sa_sigaction == on_trap ? "kept" : "lost");
	guest_print_fds("end");
	return 4;
}
