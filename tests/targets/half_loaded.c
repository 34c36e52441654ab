/*
 *	half_loaded OBJECT    loads go_part.c, uses CPU time meanwhile, and if that failed, runs code that it makes
 *where the object's was half_loaded OBJECT closefrom closes all descriptors before, and prints how often the object's
 *file was opened
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"
#include "kill_at.h"

enum { WATCH = 9 };

static uintptr_t code; /* of the newest object */

static void find_code(void)
{
	const struct link_map *map = _r_debug.r_map;
	const ElfW(Ehdr) * ehdr;
	const ElfW(Phdr) * phdr;

	while (map->l_next)
		map = map->l_next;
	ehdr = (const ElfW(Ehdr) *)map->l_addr;
	phdr = (const ElfW(Phdr) *)(map->l_addr + ehdr->e_phoff);
	for (int i = 0; i < ehdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_flags & PF_X)
			code = map->l_addr + (phdr[i].p_vaddr & -4096UL);
}

static void nothing(void)
{
}

/* The loader calls it to relocate what refers to half_loaded_meanwhile(). */
static void (*resolve(void))(void)
{
	find_code();
	guest_burn(400);
	return nothing;
}

void half_loaded_meanwhile(void) __attribute__((ifunc("resolve")));

static void run_there(void)
{
	/* 1: dec %rdi; jne 1b; ret */
	static const uint8_t loop[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
	void *page = mmap((void *)code, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			  -1, 0);

	if (page != (void *)code || !memcpy(page, loop, sizeof(loop)) || mprotect(page, 4096, PROT_READ | PROT_EXEC))
		exit(4);
	((void (*)(uint64_t))page)(100 * 1000 * 1000);
}

/* A file that is mapped stays open, so the loader's descriptor makes no event. */
static int nr_closed(void)
{
	char events[4096] __attribute__((aligned(8)));
	ssize_t bytes = read(WATCH, events, sizeof(events));

	return bytes > 0 ? (int)(bytes / (ssize_t)sizeof(struct inotify_event)) : 0;
}

int main(int argc, char **argv)
{
	bool closes = argc > 2 && !strcmp(argv[2], "closefrom");
	void *object;

	if (argc > 2 && !closes)
		kill_at(SYS_pread64);
	if (closes) {
		closefrom(3);
		if (dup2(inotify_init1(IN_NONBLOCK | IN_CLOEXEC), WATCH) != WATCH ||
		    inotify_add_watch(WATCH, argv[1], IN_CLOSE) < 0)
			return 5;
	}
	object = dlopen(argv[1], RTLD_NOW);
	printf("%s\n", object ? "loaded" : "not loaded");
	if (!object && code)
		run_there();
	guest_burn(200);
	if (closes)
		printf("opened besides: %d\n", nr_closed());
	return 3;
}
