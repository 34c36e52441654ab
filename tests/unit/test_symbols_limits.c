/* What files that names come from may cost: a file that shrinks while it is read, names that cost too much. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/profile/demangle.h"
#include "launcher/symbols/symbols_limits.h"
#include "tests/unit/tap.h"

enum { PAGES = 8 };

static volatile unsigned char *map_file(int *fd, size_t page)
{
	char path[] = "/tmp/countersink-limits.XXXXXX";
	unsigned char *bytes = malloc(PAGES * page);
	void *map;

	*fd = mkstemp(path);
	unlink(path);
	memset(bytes, 'x', PAGES * page);
	if (*fd < 0 || write(*fd, bytes, PAGES * page) != (ssize_t)(PAGES * page))
		exit(1);
	free(bytes);
	map = mmap(NULL, PAGES * page, PROT_READ, MAP_PRIVATE, *fd, 0);
	if (map == MAP_FAILED)
		exit(1);
	return map;
}

/* The signal that a child dies of when it reads behind the end with no guard; 0: it exits. */
static int dies_of(volatile unsigned char *at)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGBUS, SIG_DFL); /* a sanitizer's own handler exits */
		_exit(*at == 'x');
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_cut(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sigaction before, after;
	volatile unsigned char *map;
	int fd;

	sigaction(SIGBUS, NULL, &before);
	map = map_file(&fd, page);
	csink_cut_guard_begin();
	ok(map[5 * page] == 'x', "a whole file reads as it is");
	csink_cut_guard_begin();
	if (ftruncate(fd, (off_t)page + 10))
		exit(1);
	is_num(map[5 * page + 7], 0, "behind the end of one that was cut there are zeros");
	is_num(map[page + 9], 'x', "before its end a file that was cut is unchanged");
	is_num(map[2 * page], 0, "pages behind the cut are zeros");
	ok(csink_cut_guard_end(), "the inner reader is informed");
	ok(csink_cut_guard_end(), "the outer reader is informed of the cut");
	sigaction(SIGBUS, NULL, &after);
	ok(before.sa_handler == after.sa_handler, "SIGBUS has its former disposition");
	is_num(dies_of(map + 6 * page), SIGBUS, "outside it the fault is one");
	csink_cut_guard_begin();
	ok(!csink_cut_guard_end(), "the next file was not cut");
	close(fd);
}

static void test_names(void)
{
	bool refused;
	char *text = csink_demangle("_ZN3foo3barEi", 1, &refused);

	csink_demangle_begin();
	is_str(text, "foo::bar(int)", "a C++ name is demangled");
	free(text);
	text = csink_demangle("_RNvC5crate4main", 0, &refused);
	is_str(text, "crate::main", "a Rust name is demangled");
	free(text);
	text = csink_demangle("_D3foo3barFiZv", 0, &refused);
	is_str(text, "foo.bar(int)", "a D name is demangled");
	free(text);
	ok(!csink_demangle("main", 0, &refused) && !refused, "a C name is not mangled");
	is_num(csink_demangle_refused(), 0, "no demangled name is counted as refused");
	text = csink_demangle(
		"_D3foo3barFAQbQdQfQhQjQlQnQpQrQtQvQxQzQbQdQfQhQjQlQnQpQrQtQvQxQzQbQdQfQhQjQlQnQpQrQtQvQxQzZv", 0,
		&refused);
	ok(!text && refused, "a D name that repeats itself too often is refused");
	is_num(csink_demangle_refused(), 1, "refused names are counted");
}

int main(void)
{
	test_cut();
	test_names();
	return done();
}
