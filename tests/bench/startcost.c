/*
 * A library for LD_PRELOAD that asks of the kernel, as a program starts, what a profiler cannot do without, each step
 * one more than the last, so that our part is distinguished from the kernel's. START_COST names the last step:
 *   nothing    the library is loaded
 *   status     and it is read from /proc who traces the program and whether filters punish calls
 *   name       and which file the program is
 *   record     and a file is made and mapped, two pages of which are made real: what survives the program
 *   event      and an event is opened and mapped, so that it needs no descriptor
 * START_COST_DIRECTORY is where the files go.
 */
#include "tests/bench/sigtrap_event.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum step { NOTHING, STATUS, NAME, RECORD, EVENT, NR_STEPS };
enum { PAGE = 4096, RECORD_BYTES = 256 << 20 };

static void read_status(void)
{
	char text[2048];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text)) <= 0)
		_exit(3);
	close(fd);
}

static void read_name(void)
{
	char path[512];

	if (readlink("/proc/self/exe", path, sizeof(path)) <= 0)
		_exit(3);
}

static void record(const char *directory)
{
	char path[512], digits[16] = "", *at = digits + sizeof(digits) - 1, *map;
	int fd;

	for (pid_t left = getpid(); left; left /= 10)
		*--at = (char)('0' + left % 10);
	strcpy(path, directory);
	strcat(path, "/");
	strcat(path, at);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, RECORD_BYTES))
		_exit(3);
	map = mmap(NULL, RECORD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map == MAP_FAILED || madvise(map, 2 * PAGE, MADV_POPULATE_WRITE))
		_exit(3);
	close(fd);
	map[0] = map[PAGE] = 1;
}

static void open_event(void)
{
	int fd;

	sigtrap_ignore();
	fd = sigtrap_event_open(1003009, PERF_SAMPLE_TIME, 0);
	if (fd < 0 ||
	    mmap(NULL, 2 * (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(3);
	close(fd);
}

__attribute__((constructor)) static void begin(void)
{
	static const char names[NR_STEPS][8] = {"nothing", "status", "name", "record", "event"};
	const char *last = getenv("START_COST"), *directory = getenv("START_COST_DIRECTORY");
	int step = NOTHING;

	while (step < NR_STEPS && last && strcmp(names[step], last))
		step++;
	if (step == NR_STEPS || !last || !directory)
		_exit(2);
	if (step >= STATUS)
		read_status();
	if (step >= NAME)
		read_name();
	if (step >= RECORD)
		record(directory);
	if (step >= EVENT)
		open_event();
}
