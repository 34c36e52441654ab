/*
 * The search for the descriptor of GDB's JIT interface in the symbol table of a file (jit_symbol.c): this program's,
 * which does not export it, and has a large table.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/agent/unwind/code_copies.h"
#include "preload/agent/unwind/jit_impl.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"

/* Two thousand local symbols, whose names take more than SMALL_BYTES of jit_symbol.c. */
__asm__(".macro csink_test_symbol\n"
	".set test_jit_symbol_has_a_name_of_some_length_for_each_of_two_thousand_symbols_\\@, 4096\n"
	".endm\n"
	".rept 2000\n"
	"csink_test_symbol\n"
	".endr\n");

/* As linkers leave it in a library with a version script: a local symbol. */
static struct csink_gdb_descriptor __jit_debug_descriptor = {.version = 1};
/* Names that only begin or end like it. Linkers let it share the end of the latter; a local one comes first. */
uint64_t __jit_debug_descriptor_2[4], not__jit_debug_descriptor[4];
__attribute__((used)) static uint64_t quiz__jit_debug_descriptor[4];

static bool is_open_allowed = true;
static int nr_opened;

static bool may_open(void)
{
	nr_opened += is_open_allowed;
	return is_open_allowed;
}

static void have_closed(void)
{
}

/* How many bytes this process has read from files; -1: the kernel does not count them. */
static long bytes_read(void)
{
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
	char text[512] = "";
	long bytes = -1;

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "rchar: %ld", &bytes) != 1)
		bytes = -1;
	close(fd);
	return bytes;
}

static void check_search(void)
{
	long before = bytes_read(), now, later;

	csink_jit_meet();
	ok(csink_jit_wants_list(), "code of no object has run: a list is searched for");
	is_open_allowed = false;
	csink_jit_search_files(&setup_rec, true);
	ok(csink_jit_wants_list() && !csink_jit_is_on(), "while no descriptor may be opened, the search remains due");

	is_open_allowed = true;
	csink_jit_search_files(&setup_rec, false);
	now = bytes_read();
	ok(!csink_jit_wants_list() && !csink_jit_is_on(), "a sample finds no list in a large table");
	ok(atomic_load(&csink_jit_files_due), "a large table is left to housekeeping");
	if (before < 0)
		skip("a sample does not read a large table", "/proc/self/io cannot be read");
	else
		ok(now - before < 65536, "a sample does not read a large table (%ld bytes)", now - before);
	nr_opened = 0;
	csink_jit_search_files(&setup_rec, false);
	is_num(nr_opened, 0, "a sample after the first search opens no file");

	csink_jit_poll(&setup_rec, &setup_writer);
	later = bytes_read();
	ok(csink_jit_is_on() && atomic_load(&csink_jit_lists[0].at) == (uintptr_t)&__jit_debug_descriptor,
	   "housekeeping finds the list in a large table");
	if (before >= 0)
		ok(later - now > 100000, "housekeeping reads the large table (%ld bytes)", later - now);
#ifdef __SANITIZE_ADDRESS__
	ok(nr_opened >= 1, "housekeeping opens the file of the large table, and those of the sanitizer");
#else
	is_num(nr_opened, 1, "housekeeping opens the file of the large table alone");
#endif
	ok(!atomic_load(&csink_jit_files_due), "after housekeeping no file is left to search");
	nr_opened = 0;
	csink_jit_poll(&setup_rec, &setup_writer);
	is_num(nr_opened, 0, "housekeeping searches a large table once");
}

int main(void)
{
	if (setup_modules() < 0) {
		skip("a list in the symbol table of a file is found", "no recording could be created");
		return done();
	}
	csink_code_copies_set_guard(may_open, have_closed);
	csink_jit_begin();
	check_search();
	return done();
}
