/*
 * Objects that the loader has and the snapshot has not: they are looked for once, and not in each sample. Refreshes are
 * counted by an object without headers, which each of them asks the loader about.
 */
#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "preload/agent/unwind/cfi_row.h"
#include "preload/agent/unwind/find_object.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"

/* Its builds link all libraries, so that none is loaded here; and it reads the headers itself. */
#if defined(DLFO_STRUCT_HAS_EH_DBASE) && !defined(__SANITIZE_ADDRESS__)
enum { NR_SAMPLES = 1000 };

static int (*find_object)(void *, struct dl_find_object *);
static struct link_map *wiped, *listed; /* without headers; in the snapshot */
static uint64_t its, code_of_listed;    /* code of its own */
static int nr_refreshes;
static char data[64];

static int count_refreshes(void *address, struct dl_find_object *found)
{
	nr_refreshes += wiped && address == (void *)wiped->l_ld;
	return find_object(address, found);
}

/* Returns the address of a function of it, 0 if it is not there. */
static uint64_t load(const char *name, const char *function, struct link_map **map)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	return handle && !dlinfo(handle, RTLD_DI_LINKMAP, map) ? (uintptr_t)dlsym(handle, function) : 0;
}

/* What samples in turn at two addresses do; returns how often they refreshed. */
static int sample(uint64_t one, uint64_t other)
{
	static struct csink_module_memo memo;
	uint64_t pcs[] = {one, other};

	nr_refreshes = 0;
	for (int i = 0; i < NR_SAMPLES; i++)
		if (!csink_modules_current(pcs[i % 2], &memo))
			csink_modules_refresh_at(pcs[i % 2], &memo, &setup_rec, &setup_writer, 2);
	return nr_refreshes;
}

static void test_missed(void)
{
	uint64_t libc = (uintptr_t)dlsym(RTLD_DEFAULT, "printf"), here = (uintptr_t)sample;
	struct csink_module module;

	ok(!csink_modules_find(its, &module), "an object is loaded that the snapshot does not have");
	is_num(sample(its, libc), 1, "an object without headers is looked for once");
	ok(!csink_modules_find(its, &module), "an object without headers is not found");
	is_num(sample((uintptr_t)data, here), 1, "the object of code in a program's data is looked for once");
	is_num(sample((uintptr_t)data, its), 0, "of two that are missed, each is remembered");
	code_of_listed = load("libelf.so.1", "elf_begin", &listed);
	is_num(sample(code_of_listed, its), 2, "when the list has changed, an object is looked for again");
	ok(csink_modules_find(code_of_listed, &module) && module.link_map == listed,
	   "an object that comes while others are missed is found at its first sample");
}

/* Not even the loader reads the page again. */
static void test_protected(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *own = (void *)(getauxval(AT_PHDR) & ~(page - 1));
	struct csink_module module;

	mprotect((void *)wiped->l_addr, page, PROT_NONE);
	is_num(csink_row_kind(csink_row_compile(its, true)), CSINK_ROW_NO_CFI,
	       "code of an object whose headers could never be read has no table");
	mprotect((void *)listed->l_addr, page, PROT_NONE);
	ok(csink_row_kind(csink_row_compile(code_of_listed, true)) != CSINK_ROW_NO_CFI,
	   "code of an object whose headers cannot be read any more has its table");
	mprotect((void *)listed->l_addr, page, PROT_READ);
	is_num(csink_modules_refresh_last(&setup_rec, &setup_writer, 3), 0,
	       "a refresh at the end does not read headers that cannot be read");
	mprotect(own, page, PROT_NONE);
	csink_modules_init(&setup_rec, &setup_writer);
	mprotect(own, page, PROT_READ);
	ok(!csink_modules_find((uintptr_t)test_protected, &module) &&
		   csink_modules_find((uintptr_t)find_object, &module),
	   "a forked child of a program whose headers cannot be read has the other objects");
}

int main(void)
{
	is_num(setup_modules(), 0, "a module snapshot is there");
	is_num(csink_walk_dwarf_init(), 0, "the walker is ready");
	if (!csink_find_object) {
		skip("objects that are missed", "the C library has no _dl_find_object()");
		return done();
	}
	find_object = csink_find_object;
	csink_find_object = count_refreshes;
	its = load("libz.so.1", "deflate", &wiped);
	if (!its || mprotect((void *)wiped->l_addr, 4096, PROT_READ | PROT_WRITE))
		return 1;
	memset((void *)wiped->l_addr, 0, sizeof(ElfW(Ehdr)));
	test_missed();
	test_protected();
	return done();
}
#else
int main(void)
{
	skip("objects that are missed", "the C library has no _dl_find_object(), or AddressSanitizer is in the way");
	return done();
}
#endif
