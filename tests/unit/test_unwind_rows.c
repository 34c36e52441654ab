/* The cache of rows: threads that overwrite each other's, and objects that are loaded where others were. */
#include "preload/agent/unwind/cfi_row.h"
#include "tests/unit/tap.h"
#include "tests/unit/walk_setup.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

struct text {
	uintptr_t start, end;
};

struct wanted {
	const char *name; /* or NULL: ... */
	uintptr_t bias;   /* ... the one with this bias */
	struct text text;
};

static int find_text(struct dl_phdr_info *info, size_t size, void *data)
{
	struct wanted *wanted = data;

	(void)size;
	if (wanted->name ? !strstr(info->dlpi_name, wanted->name) : info->dlpi_addr != wanted->bias)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_X)
			wanted->text = (struct text){info->dlpi_addr + phdr->p_vaddr,
						     info->dlpi_addr + phdr->p_vaddr + phdr->p_memsz};
	}
	return 1;
}

static struct text text_of(const char *name, uintptr_t bias)
{
	struct wanted wanted = {name, bias, {0, 0}};

	dl_iterate_phdr(find_text, &wanted);
	return wanted.text;
}

#define NR_HAMMERS 4
#define NR_ADDRESSES 4096

static csink_row_t rows[NR_ADDRESSES];
static struct text libc_text;
static atomic_ulong nr_wrong;

/* Few slots, many addresses: entries are overwritten by all threads all the time. */
static uintptr_t hammered(uint64_t i)
{
	return libc_text.start + 16384 * (i % 64) + i / 64 % 64;
}

static void *hammer(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 7919 + 1, mix = csink_row_mix(csink_modules_unloads());

	for (int i = 0; i < 300000; i++) {
		seed = seed * 6364136223846793005UL + 1;
		if (csink_row_find(hammered(seed >> 40), true, mix) != rows[(seed >> 40) % NR_ADDRESSES])
			nr_wrong++;
	}
	return NULL;
}

static void check_cache(void)
{
	pthread_t threads[NR_HAMMERS];

	libc_text = text_of("libc.so", 0);
	for (uint64_t i = 0; i < NR_ADDRESSES; i++)
		rows[i] = csink_row_compile(hammered(i), true);
	for (uintptr_t i = 0; i < NR_HAMMERS; i++)
		pthread_create(&threads[i], NULL, hammer, (void *)i);
	for (int i = 0; i < NR_HAMMERS; i++)
		pthread_join(threads[i], NULL);
	is_num((long)nr_wrong, 0, "rows stay right while four threads overwrite each other's");
}

/* Rows of an object's code, out of the cache and made anew: how many are the same. */
static int count_same(struct text text, int *nr)
{
	uint64_t mix = csink_row_mix(csink_modules_unloads());
	int same = 0;

	for (uintptr_t pc = (text.start + 15) & ~15UL; pc < text.end; pc += 16, ++*nr)
		same += csink_row_find(pc, true, mix) == csink_row_compile(pc, true);
	return same;
}

/* Another object where one was: its rows must not be those of the old one. */
static void check_reload(void)
{
	static const char *const names[] = {"libcrypto.so.3", "libz.so.1", "libelf.so.1", "liblzma.so.5", "libdw.so.1"};
	struct text last = {0, 0}, text;
	int nr = 0, nr_same = 0, nr_overlaps = 0;
	uint32_t now = 1;

	for (size_t n = 0; n < 4 * CSINK_ARRAY_SIZE(names); n++) {
		void *handle = dlopen(names[n % CSINK_ARRAY_SIZE(names)], RTLD_NOW | RTLD_LOCAL);
		struct link_map *map;

		if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
			continue;
		csink_modules_refresh(&setup_rec, &setup_writer, ++now);
		text = text_of(NULL, map->l_addr);
		nr_overlaps += text.start < last.end && last.start < text.end && text.start != last.start;
		last = text;
		nr_same += count_same(text, &nr);
		dlclose(handle);
		csink_modules_refresh(&setup_rec, &setup_writer, ++now);
	}
	printf("# %d rows, %d times where another object was\n", nr, nr_overlaps);
	if (nr_overlaps)
		is_num(nr_same, nr, "an object loaded at an earlier object's address has its own rows");
	else
		skip("an object loaded at an earlier object's address has its own rows",
		     "the loader never used an address again");
}

int main(void)
{
	is_num(setup_modules(), 0, "a module snapshot is there");
	is_num(csink_walk_dwarf_init(), 0, "the walker is ready");
	check_cache();
	check_reload();
	return done();
}
