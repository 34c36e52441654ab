/* Limits on what reading names from a file may cost: see symbols_limits.h. */
#include "launcher/symbols/symbols_limits.h"

#include <gelf.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/regular.h"
#include "launcher/symbols/symbols_impl.h"

/* What compressed sections of one file may unpack to. Those of compilers unpack to less than ten times their size. */
#define MAX_UNPACKED (64ULL << 20)
#define MAX_RATIO 32

/* ---- compressed sections ---- */

/* ".zdebug_*", the older form: "ZLIB" and the size, its highest byte first. 0: not compressed so. */
static uint64_t old_size(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr, size_t strndx)
{
	const char *name = elf_strptr(elf, strndx, shdr->sh_name);
	Elf_Data *data = name && !strncmp(name, ".zdebug", 7) ? elf_rawdata(scn, NULL) : NULL;
	const unsigned char *bytes = data ? data->d_buf : NULL;
	uint64_t size = 0;

	if (!bytes || data->d_size < 12 || memcmp(bytes, "ZLIB", 4))
		return 0;
	for (int i = 4; i < 12; i++)
		size = size << 8 | bytes[i];
	return size;
}

bool csink_elf_hides_names(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn))) {
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_STRTAB && shdr.sh_flags & SHF_COMPRESSED)
			return true;
	}
	return false;
}

bool csink_elf_is_bomb(Elf *elf)
{
	uint64_t packed = 0, unpacked = 0, size;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Chdr chdr;
	size_t strndx;

	if (elf_getshdrstrndx(elf, &strndx))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		if (shdr.sh_flags & SHF_COMPRESSED)
			size = gelf_getchdr(scn, &chdr) ? chdr.ch_size : 0;
		else
			size = old_size(elf, scn, &shdr, strndx);
		if (!size)
			continue;
		if (__builtin_add_overflow(unpacked, size, &unpacked))
			return true;
		packed += CSINK_MIN(shdr.sh_size, 1ULL << 40);
	}
	return unpacked > MAX_UNPACKED && unpacked / MAX_RATIO > packed;
}

/* ---- debug information ---- */

/* What malloc has given out. A sanitizer's says 0: then time alone is limited. */
static uint64_t bytes_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/*
 * A small file can cause much work: each of 100,000 units may ask for the last of 100,000 abbreviations, which libdw
 * keeps for each unit again; each entry may name the same list of a million ranges.
 */
void csink_spending_begin(struct csink_spending *spending, uint64_t file_bytes)
{
	*spending = (struct csink_spending){
		.end_ns = csink_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 5 * CSINK_NS_PER_S +
			  file_bytes / (16 << 20) * CSINK_NS_PER_S,
		.max_bytes = bytes_in_use() + (192ULL << 20) + 4 * file_bytes,
	};
}

bool csink_spending_check(struct csink_spending *spending)
{
	if (spending->checks++ % 16) /* malloc walks its lists to count */
		return spending->is_over;
	if (csink_clock_ns(CLOCK_THREAD_CPUTIME_ID) > spending->end_ns || bytes_in_use() > spending->max_bytes)
		spending->is_over = true;
	return spending->is_over;
}

/* ---- files that lose their end ---- */

static struct {
	struct sigaction before;
	volatile sig_atomic_t depth, is_cut;
} guard;

/*
 * A page of a truncated file was read: map zeros in its place, which readers recognize as damage. mmap is
 * safe here: the fault comes from a read of ours, never from inside another mmap.
 */
static void on_cut(int signo, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr & ~(page - 1);

	(void)context;
	if (info->si_code == BUS_ADRERR && mmap((void *)at, page, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
		guard.is_cut = 1;
		return;
	}
	signal(signo, SIG_DFL); /* it comes again */
}

void csink_cut_guard_begin(void)
{
	struct sigaction act = {.sa_sigaction = on_cut, .sa_flags = SA_SIGINFO};

	if (guard.depth++)
		return;
	guard.is_cut = 0;
	sigaction(SIGBUS, &act, &guard.before);
}

bool csink_cut_guard_end(void)
{
	bool is_cut = guard.is_cut;

	if (!--guard.depth)
		sigaction(SIGBUS, &guard.before, NULL);
	return is_cut;
}

/* ---- files that other files name ---- */

static bool is_trap(const char *path)
{
	CSINK_AUTO_CLOSE int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);
	bool is_trap;
	Elf *elf;

	if (fd < 0) /* what libdw cannot open either, except for other kinds of files */
		return fd == -ENOEXEC;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	is_trap = elf && (csink_elf_hides_names(elf) || csink_elf_is_bomb(elf));
	elf_end(elf);
	return is_trap;
}

bool csink_is_trap(const char *dir, const char *name)
{
	char path[4096];
	int len;

	if (*name == '/')
		return is_trap(name);
	len = snprintf(path, sizeof(path), "%s/%s", dir, name);
	return len < 0 || (size_t)len >= sizeof(path) || is_trap(path);
}

bool csink_is_trap_beside(const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	char dir[4096];

	if (!slash || (size_t)(slash - file) >= sizeof(dir))
		return csink_is_trap(".", name);
	memcpy(dir, file, slash - file);
	dir[slash - file] = 0;
	return csink_is_trap(dir, name);
}
