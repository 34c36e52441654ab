/* Functions by name: csink_elf_function says what dlsym(3) says, of every name that we interpose and of others. */
#include <dlfcn.h>
#include <elf.h>
#include <gnu/lib-names.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/core/elf_symbol.h"
#include "tests/unit/tap.h"

static const char *const interposed[] = {
#define X(name) #name,
	CSINK_REALS(X)
#undef X
};

/* One of several versions; one that is no function; some that are not there. */
static const char *const others[] = {
	"pthread_cond_wait", "regexec",        "fork", "malloc",           "qsort", "printf", "clock_gettime", "glob64",
	"_dl_find_object",   "__tls_get_addr", "",     "no_such_function", "csink"};

static void test_object(const char *soname, const char *const *names, size_t nr, const char *what)
{
	struct link_map *map = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
	size_t same = 0, there = 0;

	if (!map) {
		ok(0, "%s is loaded", soname);
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		void *want = dlsym(map, names[i]), *got = csink_elf_function(map, names[i]);
		Dl_info info;

		/* dlsym looks into what the object needs as well. */
		if (want && dladdr(want, &info) && (uintptr_t)info.dli_fbase != map->l_addr)
			want = NULL;
		same += got == want;
		there += got != NULL;
		if (got != want)
			fprintf(stderr, "#   %s of %s: got %p, want %p\n", names[i], soname, got, want);
	}
	ok(same == nr && there > 0, "%s: %zu of them, the others not", what, there);
	dlclose(map);
}

/* Of which dlsym has no list of its own; and sanitizers' libraries stand before it. */
static void test_linker(void)
{
	struct link_map *linker = dlopen(LD_SO, RTLD_LAZY | RTLD_NOLOAD);
	void *got = linker ? csink_elf_function(linker, "__tls_get_addr") : NULL;
	Dl_info info;

	ok(got && dladdr(got, &info) && (uintptr_t)info.dli_fbase == linker->l_addr && info.dli_saddr == got &&
		   !strcmp(info.dli_sname, "__tls_get_addr"),
	   "the dynamic linker's __tls_get_addr is found in its symbol table");
}

static uint32_t nr_copies;

/* An object whose hash table says that it has all names, in one list that never ends. */
static bool copy_endless(void *to, const void *from, size_t bytes)
{
	static const ElfW(Dyn) dynamic[] = {{DT_SYMTAB, {.d_ptr = 0x10000}},
					    {DT_STRTAB, {.d_ptr = 0x20000}},
					    {DT_GNU_HASH, {.d_ptr = 0x30000}},
					    {DT_NULL, {0}}};
	static const uint32_t head[] = {1, 1, 1, 40};
	uintptr_t at = (uintptr_t)from;

	memset(to, 0, bytes);
	if (at - (uintptr_t)0x1000 < sizeof(dynamic))
		memcpy(to, (const char *)dynamic + (at - 0x1000), bytes);
	else if (at == 0x30000)
		memcpy(to, head, bytes);
	else if (at == 0x30010 || at == 0x30018) /* the filter; the one bucket */
		memset(to, at == 0x30010 ? 0xff : 1, bytes);
	return ++nr_copies < 1000000;
}

static void test_damaged(void)
{
	struct csink_elf_view view;
	bool is_open = csink_elf_open(&view, 0, (const ElfW(Dyn) *)(uintptr_t)0x1000, copy_endless);
	bool is_found = is_open && csink_elf_look(&view, "fork", STT_FUNC, NULL);

	ok(is_open && !is_found && nr_copies < 100000, "a search in a damaged object ends (%u copies)", nr_copies);
}

int main(void)
{
	struct link_map *program = dlopen(NULL, RTLD_LAZY);

	test_object(LIBC_SO, interposed, CSINK_ARRAY_SIZE(interposed), "libc's functions that we interpose");
	test_object(LIBC_SO, others, CSINK_ARRAY_SIZE(others), "other functions of libc");
	test_linker();
	test_damaged();
	ok(program && !csink_elf_function(program, "main") && !csink_elf_function(program, "malloc"),
	   "imported and local symbols are not defined by the object");
	ok(!csink_elf_function(program, "stdout") &&
		   !csink_elf_function(dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD), "stdout"),
	   "a variable is no function");
	return done();
}
