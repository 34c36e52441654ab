/*
 * A just-in-time compiler of its own kind, which registers its code by GDB's JIT interface: ELF images in memory.
 *
 * made_jit shares MS     two functions, of which `heavy` runs three times as long as `light`
 * made_jit tables MS     the same without frame pointers: the images have unwind tables
 * made_jit fork MS       as shares, in the process and in a forked child
 * made_jit map MS        only `heavy` is registered; a map for perf names both, as mapped_heavy and mapped_light
 * made_jit reuse MS      one place for code, one image and one entry: in turn `even`, which run_even() calls, and
 *                        `odd`, which run_odd() calls for three times as long; a turn takes about 0.2 ms
 * made_jit threads MS N  N threads, each of which does that, or makes code and gives all its memory back
 * made_jit many MS N     N functions at a time, of which the first and the last run
 *
 * made_jit HOW MS        `heavy` and `light` run, but are not registered as they should be:
 *          empty         not at all
 *          version       in a list of another version
 *          damaged       by images that are none
 *          ring          in a list without an end
 *          cut           by an image, and an entry, whose memory is gone
 *
 * The descriptor is not exported, unless the program is linked with -rdynamic.
 */
#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

struct entry {
	struct entry *next, *prev;
	const void *file;
	uint64_t bytes;
};

struct descriptor {
	uint32_t version, action;
	struct entry *relevant, *first;
};

enum { NONE, REGISTER, UNREGISTER, CODE_BYTES = 4096, MAX_MANY = 20000 };

struct descriptor __jit_debug_descriptor = {1, NONE, NULL, NULL};
void __jit_debug_register_code(void);
__attribute__((noinline)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(struct entry *entry)
{
	pthread_mutex_lock(&lock);
	entry->prev = NULL;
	entry->next = __jit_debug_descriptor.first;
	if (entry->next)
		entry->next->prev = entry;
	__jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
	__jit_debug_descriptor.action = REGISTER;
	__jit_debug_register_code();
	pthread_mutex_unlock(&lock);
}

static void take_out(struct entry *entry)
{
	pthread_mutex_lock(&lock);
	if (entry->prev)
		entry->prev->next = entry->next;
	else
		__jit_debug_descriptor.first = entry->next;
	if (entry->next)
		entry->next->prev = entry->prev;
	__jit_debug_descriptor.relevant = entry;
	__jit_debug_descriptor.action = UNREGISTER;
	__jit_debug_register_code();
	pthread_mutex_unlock(&lock);
}

/* ---- code: void f(uint64_t rounds) ---- */

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
/* push rbp; mov rbp, rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
static const unsigned char with_fp[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
/* push rbp; xor ebp, ebp; sub rsp, 16; 1: dec rdi; jnz 1b; add rsp, 16; pop rbp; ret */
static const unsigned char with_table[] = {0x55, 0x31, 0xed, 0x48, 0x83, 0xec, 0x10, 0x48, 0xff,
					   0xcf, 0x75, 0xfb, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
/* Where the code's address and size go in: */
enum { FRAME_START = 32, FRAME_BYTES = 36 };
static const unsigned char frames[] = {
	20,   0,  0,  0,         0,  0,    0,  0,  1,    'z', 'R', 0,    1,  0x78, 16, 1, 0x1b,
	12,   7,  8,  0x80 | 16, 1,  0,    0,                                                /* CIE */
	28,   0,  0,  0,         28, 0,    0,  0,  0,    0,   0,   0,    0,  0,    0,  0, 0, /* its FDE */
	0x41, 14, 16, 0x86,      2,  0x46, 14, 32, 0x49, 14,  16,  0x41, 14, 8,    0,        /* rules */
	0,    0,  0,  0};
#else
enum { MACHINE = EM_AARCH64 };
/* stp x29, x30, [sp, -16]!; mov x29, sp; 1: subs x0, x0, 1; b.ne 1b; ldp x29, x30, [sp], 16; ret */
static const unsigned char with_fp[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x04, 0x00, 0xf1,
					0xe1, 0xff, 0xff, 0x54, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static void *map(void)
{
	void *at = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	return at;
}

static size_t put_code(char *at, bool has_table)
{
	size_t bytes = sizeof(with_fp);

	memcpy(at, with_fp, bytes);
#if defined(__x86_64__)
	if (has_table) {
		int32_t start = -(int32_t)(CODE_BYTES / 2 + FRAME_START);

		bytes = sizeof(with_table);
		memcpy(at, with_table, bytes);
		memcpy(at + CODE_BYTES / 2, frames, sizeof(frames));
		memcpy(at + CODE_BYTES / 2 + FRAME_START, &start, 4);
		memcpy(at + CODE_BYTES / 2 + FRAME_BYTES, &(uint32_t){(uint32_t)bytes}, 4);
	}
#endif
	(void)has_table;
	__builtin___clear_cache(at, at + CODE_BYTES);
	return bytes;
}

/* ---- its image ---- */

struct image {
	Elf64_Ehdr ehdr;
	Elf64_Shdr sections[6]; /* none, .text, .eh_frame, .symtab, .strtab, .shstrtab */
	Elf64_Sym symbols[2];
	char names[64], section_names[48];
};

#define OFFSET(member) offsetof(struct image, member)

static void describe(struct image *image, const char *name, const void *code, size_t bytes, bool has_table)
{
	static const char section_names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";

	memset(image, 0, sizeof(*image));
	memcpy(image->ehdr.e_ident, ELFMAG "\2\1\1", 7);
	image->ehdr.e_type = ET_REL;
	image->ehdr.e_machine = MACHINE;
	image->ehdr.e_version = 1;
	image->ehdr.e_ehsize = sizeof(image->ehdr);
	image->ehdr.e_shoff = OFFSET(sections);
	image->ehdr.e_shentsize = sizeof(image->sections[0]);
	image->ehdr.e_shnum = 6;
	image->ehdr.e_shstrndx = 5;
	image->sections[1] = (Elf64_Shdr){.sh_name = 1,
					  .sh_type = SHT_NOBITS,
					  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					  .sh_addr = (uintptr_t)code,
					  .sh_size = bytes,
					  .sh_addralign = 16};
#if defined(__x86_64__)
	if (has_table)
		image->sections[2] = (Elf64_Shdr){.sh_name = 7,
						  .sh_type = SHT_NOBITS,
						  .sh_flags = SHF_ALLOC,
						  .sh_addr = (uintptr_t)code + CODE_BYTES / 2,
						  .sh_size = sizeof(frames),
						  .sh_addralign = 8};
#endif
	(void)has_table;
	image->sections[3] = (Elf64_Shdr){.sh_name = 17,
					  .sh_type = SHT_SYMTAB,
					  .sh_offset = OFFSET(symbols),
					  .sh_size = sizeof(image->symbols),
					  .sh_link = 4,
					  .sh_info = 1,
					  .sh_addralign = 8,
					  .sh_entsize = sizeof(Elf64_Sym)};
	image->sections[4] = (Elf64_Shdr){.sh_name = 25,
					  .sh_type = SHT_STRTAB,
					  .sh_offset = OFFSET(names),
					  .sh_size = sizeof(image->names),
					  .sh_addralign = 1};
	image->sections[5] = (Elf64_Shdr){.sh_name = 33,
					  .sh_type = SHT_STRTAB,
					  .sh_offset = OFFSET(section_names),
					  .sh_size = sizeof(image->section_names),
					  .sh_addralign = 1};
	image->symbols[1] = (Elf64_Sym){
		.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_size = bytes};
	snprintf(image->names + 1, sizeof(image->names) - 1, "%s", name);
	memcpy(image->section_names, section_names, sizeof(section_names));
}

struct function {
	void (*code)(uint64_t rounds);
	struct image *image;
	struct entry *entry;
};

static struct function make(const char *name, bool has_table)
{
	struct function f = {.image = malloc(sizeof(*f.image)), .entry = malloc(sizeof(*f.entry))};
	void *code = map();

	describe(f.image, name, code, put_code(code, has_table), has_table);
	*f.entry = (struct entry){.file = f.image, .bytes = sizeof(*f.image)};
	f.code = (void (*)(uint64_t))code;
	return f;
}

/* ---- work ---- */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* In rounds of different length: of equal ones, samples at their own rate would see the same part again and again. */
static void run_both(uint64_t ms, struct function heavy, struct function light)
{
	uint32_t random = 1;

	for (uint64_t end = now_ms() + ms; now_ms() < end;) {
		uint64_t n = 50000 + (random = random * 1103515245 + 12345) % 100000;

		heavy.code(3 * n);
		light.code(n);
	}
}

static _Thread_local volatile uint64_t nr_even, nr_odd; /* or the compiler would make one of the two */

__attribute__((noinline)) static void run_even(struct function f, uint64_t rounds)
{
	f.code(rounds);
	nr_even++;
}

__attribute__((noinline)) static void run_odd(struct function f, uint64_t rounds)
{
	f.code(rounds);
	nr_odd++;
}

static void *reuse(void *data)
{
	uint64_t ms = (uintptr_t)data, nr = 0;
	struct function f = make("even", false);

	for (uint64_t end = now_ms() + ms; now_ms() < end; nr++) {
		describe(f.image, nr % 2 ? "odd" : "even", (void *)f.code, sizeof(with_fp), false);
		add(f.entry);
		if (nr % 2)
			run_odd(f, 600000);
		else
			run_even(f, 200000);
		take_out(f.entry);
	}
	munmap((void *)f.code, CODE_BYTES);
	free(f.image);
	free(f.entry);
	return NULL;
}

/* Images of their own pages, given back at once. */
static void *come_and_go(void *data)
{
	for (uint64_t end = now_ms() + (uintptr_t)data; now_ms() < end;) {
		struct image *image = map();
		struct function f = make("passing", true);

		memcpy(image, f.image, sizeof(*image));
		f.entry->file = image;
		add(f.entry);
		run_even(f, 50000);
		take_out(f.entry);
		munmap((void *)f.code, CODE_BYTES);
		munmap(image, CODE_BYTES);
		free(f.image);
		free(f.entry);
	}
	return NULL;
}

static void threads(uint64_t ms, uint64_t nr)
{
	pthread_t all[64];

	nr = nr < 64 ? nr : 64;
	for (uint64_t i = 0; i < nr; i++)
		pthread_create(&all[i], NULL, i % 2 ? come_and_go : reuse, (void *)(uintptr_t)ms);
	for (uint64_t i = 0; i < nr; i++)
		pthread_join(all[i], NULL);
}

static void many(uint64_t ms, uint64_t nr)
{
	struct function first = {0}, last = {0};
	char name[32];

	for (uint64_t i = 0; i < nr && i < MAX_MANY; i++) {
		snprintf(name, sizeof(name), "made_%llu", (unsigned long long)i);
		last = make(name, false);
		add(last.entry);
		first = i ? first : last;
	}
	run_both(ms, first, last);
}

/* Lines of a map for perf. */
static void write_map(struct function heavy, struct function light)
{
	char path[64];
	FILE *to;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	to = fopen(path, "w");
	if (!to)
		exit(1);
	fprintf(to, "%lx 40 mapped_heavy\n%lx 40 mapped_light\n", (unsigned long)heavy.code, (unsigned long)light.code);
	fclose(to);
	printf("%d ", (int)getpid());
}

static void spoil(const char *how, struct function *heavy, struct function *light)
{
	if (!strcmp(how, "map")) {
		take_out(light->entry);
		write_map(*heavy, *light);
	}
	if (!strcmp(how, "version"))
		__jit_debug_descriptor.version = 2;
	if (!strcmp(how, "ring"))
		heavy->entry->next = light->entry;
	if (!strcmp(how, "cut")) {
		void *gone = map();

		munmap(gone, CODE_BYTES);
		heavy->entry->file = gone;
		light->entry->next = (struct entry *)((char *)gone + 64);
	}
	if (!strcmp(how, "damaged")) {
		memset(heavy->image->sections, 0xff, sizeof(heavy->image->sections));
		light->image->sections[3].sh_offset = UINT64_MAX - 8;
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	uint64_t ms = arg_num(argc, argv, 2, 100), nr = arg_num(argc, argv, 3, 4);
	struct function heavy = make("heavy", !strcmp(how, "tables")), light = make("light", !strcmp(how, "tables"));

	if (!strcmp(how, "reuse"))
		reuse((void *)(uintptr_t)ms);
	else if (!strcmp(how, "threads"))
		threads(ms, nr);
	else if (!strcmp(how, "many"))
		many(ms, nr);
	else {
		if (strcmp(how, "empty") != 0) {
			add(heavy.entry);
			add(light.entry);
		}
		spoil(how, &heavy, &light);
		if (!strcmp(how, "fork") && !fork()) {
			run_both(ms, heavy, light);
			_exit(0);
		}
		run_both(ms, heavy, light);
		wait(NULL);
	}
	puts("done");
	return 0;
}
