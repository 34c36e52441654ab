/* Files whose paths come from others: what is no regular file is not waited for, and no more is read than is expected.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/base/memory.h"
#include "launcher/base/regular.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"
#include "tests/unit/tap.h"

static char dir[] = "/tmp/countersink-regular.XXXXXX";

static void write_file(const char *path, const char *text, off_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || (size && ftruncate(fd, size)))
		exit(1);
	close(fd);
}

static void test_open(void)
{
	int fd;

	alarm(300); /* what waits dies */
	if (mkfifo("fifo", 0600) || symlink("file", "link"))
		exit(1);
	write_file("file", "text", 0);
	fd = csink_regular_open("file", 0, 4);
	ok(fd >= 0, "a file of as many bytes as are allowed is opened");
	ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "the opened file is closed on exec");
	close(fd);
	is_num(csink_regular_open("file", 0, 3), -EFBIG, "a larger file: EFBIG");
	is_num(csink_regular_open("fifo", 0, 4), -ENOEXEC, "a FIFO is not waited for");
	is_num(csink_regular_open("/dev/zero", 0, 4), -ENOEXEC, "a device is not read");
	is_num(csink_regular_open(".", 0, 4), -ENOEXEC, "a directory is not read: ENOEXEC");
	is_num(csink_regular_open("none", 0, 4), -ENOENT, "a missing file has open's error");
	is_num(csink_regular_open("link", O_NOFOLLOW, 4), -ELOOP, "links are followed only where requested");
	is_str(csink_regular_why(-ENOEXEC), "not a regular file", "the text for ENOEXEC");
	is_str(csink_regular_why(EFBIG), "larger than is read", "the text for EFBIG");
}

/* Whether a path has been opened since the last call, or the first. */
static bool is_opened(int watch)
{
	char events[4096];

	return read(watch, events, sizeof(events)) > 0;
}

/* Opening a FIFO lets a writer go on, opening a device can do anything. */
static void test_unopened(void)
{
	static const char what[] = "what is no regular file is not opened, only looked at";
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;

	if (inotify_add_watch(watch, "file", IN_OPEN) < 0 || inotify_add_watch(watch, "fifo", IN_OPEN) < 0) {
		skip(what, "no inotify");
		close(watch);
		return;
	}
	fd = csink_regular_open("file", 0, 4);
	ok(is_opened(watch), "the test sees what is opened");
	close(fd);
	csink_regular_open("fifo", 0, 4);
	ok(!is_opened(watch), "%s", what);
	csink_regular_open("fifo", O_NOFOLLOW, 4);
	ok(!is_opened(watch), "%s, with O_NOFOLLOW", what);
	close(watch);
}

/* In a child whose root has no /proc. */
static void test_without_proc(void)
{
	int status = 0, fd, pid = fork();

	if (!pid) {
		if (chroot("."))
			_exit(2);
		fd = csink_regular_open("/file", 0, 4);
		_exit(fd < 0 || access("/proc/self", F_OK) == 0 || csink_regular_open("/fifo", 0, 4) != -ENOEXEC ||
		      csink_regular_open("/link", O_NOFOLLOW, 4) != -ELOOP || csink_regular_open("/link", 0, 4) < 0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip("without /proc", "no right to chroot");
	else
		is_num(status, 0, "without /proc files are opened, and others are not");
}

static void test_growing(void)
{
	FILE *file = csink_regular_fopen("file", 0, 8);
	char line[64];

	write_file("file", "one\ntwo\nthree\nfour\n", 0);
	ok(file && fgets(line, sizeof(line), file) && !strcmp(line, "one\n"), "a stream of a regular file is read");
	ok(fgets(line, sizeof(line), file) && !strcmp(line, "two\n") && !fgets(line, sizeof(line), file),
	   "a stream of a regular file ends at its limit, although the file has grown");
	fclose(file);
}

static int name_from(const char *path, const char **name)
{
	static struct csink_profile *p;
	struct csink_want want = {.address = 0x1010};
	uint32_t location;
	int named;

	csink_profile_free(p);
	p = csink_profile_create();
	location = want.location = csink_profile_location_add(p, 0, 0, NULL, 0);
	named = csink_perfmap_resolve(p, path, 0, &want, 1);
	*name = p->locations[location].nr_lines
			? csink_profile_text(p, p->functions[p->lines[p->locations[location].first_line].function].name)
			: "";
	return named;
}

static void test_maps(void)
{
	const char *name;

	write_file("map", "1000 20 old\n1000 20 new\n2000 20 other\n", 0);
	is_num(name_from("map", &name), 1, "a map of code made at run time");
	is_str(name, "new", "a perf map gives a name");
	write_file("map", "1000 20 old\n", 2LL << 40);
	is_num(name_from("map", &name), -EFBIG, "a perf map of 2 TB is refused: EFBIG");
	is_num(name_from("fifo", &name), -ENOEXEC, "a FIFO in its place is not waited for");
}

/* ---- memory ---- */

static void test_memory(void)
{
	struct rlimit before, small = {.rlim_cur = 64 << 20};
	struct csink_profile *p = csink_profile_create();
	uint64_t all = csink_memory_bytes();
	char text[32];

	getrlimit(RLIMIT_DATA, &before);
	small.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_DATA, &small);
	is_num((long long)csink_memory_bytes(), 64 << 20, "csink_memory_bytes() is the limit of RLIMIT_DATA");
	setrlimit(RLIMIT_DATA, &before);
	ok(all > (64 << 20), "without RLIMIT_DATA there is more memory");

	csink_profile_limit(p, 16 << 20);
	for (uint32_t i = 0; i < 2000000 && !csink_profile_error(p); i++) {
		snprintf(text, sizeof(text), "string %u", i);
		csink_profile_str(p, text);
	}
	ok(csink_profile_error(p) == -ENOMEM && csink_profile_is_over(p), "a profile ends where its limit is");
	ok(p->bytes <= 16 << 20 && p->nr_strings > 100000, "the limit is neither undershot nor exceeded");
	csink_profile_free(p);
}

static void test_facts(void)
{
	struct csink_profile *p = csink_profile_create();
	const char *text;
	bool right = true;

	for (int i = 0; i < 1000; i++) {
		csink_profile_fact_add(p, "even", "%d", 2 * i);
		csink_profile_fact_add(p, "odd", "%d", 2 * i + 1);
	}
	for (int i = 0; i < 1000; i++) {
		text = csink_profile_fact(p, "even", (uint32_t)i);
		right &= text && atoi(text) == 2 * i;
		text = i % 3 ? "" : csink_profile_fact(p, "odd", (uint32_t)i);
		right &= i % 3 || (text && atoi(text) == 2 * i + 1);
	}
	ok(right, "facts are found one after the other, whatever is asked between");
	ok(!csink_profile_fact(p, "even", 1000) && !csink_profile_fact(p, "ev", 0), "facts are found up to the last");
	is_str(csink_profile_fact(p, "even", 0), "0", "facts are found from the first again");
	csink_profile_free(p);
}

int main(void)
{
	int left;

	if (!mkdtemp(dir) || chdir(dir))
		return 1;
	test_open();
	test_unopened();
	test_without_proc();
	test_growing();
	test_maps();
	test_memory();
	test_facts();
	left = unlink("fifo") | unlink("link") | unlink("file") | unlink("map");
	return chdir("/") | rmdir(dir) | left | done();
}
