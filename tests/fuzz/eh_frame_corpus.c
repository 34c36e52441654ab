/*
 * eh_frame_corpus DIR FILE...: seeds for fuzz_eh_frame out of ELF files. Of each file's frame entries those are taken
 * whose instructions use a set of operations that no earlier seed has; each becomes one small object: a header with one
 * entry, its CIE, its FDE.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SEEDS 2000
#define MAX_BYTES 4096

struct file {
	const uint8_t *bytes;
	size_t size;
};

static uint64_t seen[MAX_SEEDS];
static unsigned int nr_seen;

static uint32_t word(const struct file *f, uint64_t at)
{
	uint32_t value = 0;

	if (at <= f->size && f->size - at >= 4)
		memcpy(&value, f->bytes + at, 4);
	return value;
}

/* A set of operations, roughly: a bit for each value that a byte of the instructions has, folded. */
static int is_new(const uint8_t *code, uint32_t bytes)
{
	uint64_t set = 0;

	for (uint32_t i = 0; i < bytes; i++)
		set |= 1ULL << (code[i] >= 0x40 ? 48 + (code[i] >> 6) : code[i] % 48);
	for (unsigned int i = 0; i < nr_seen; i++)
		if (seen[i] == set)
			return 0;
	if (nr_seen == MAX_SEEDS)
		return 0;
	seen[nr_seen++] = set;
	return 1;
}

static void put_word(uint8_t *to, uint32_t value)
{
	memcpy(to, &value, 4);
}

static void write_seed(const char *dir, const struct file *f, uint64_t cie, uint64_t fde)
{
	uint32_t cie_bytes = word(f, cie) + 4, fde_bytes = word(f, fde) + 4;
	uint8_t seed[20 + 2 * MAX_BYTES] = {1, 0x1b, 0x03, 0x3b};
	char path[4096];
	FILE *out;

	if (cie_bytes > MAX_BYTES || fde_bytes > MAX_BYTES || cie + cie_bytes > f->size || fde + fde_bytes > f->size)
		return;
	if (!is_new(f->bytes + fde + 16, fde_bytes - 16))
		return;
	put_word(seed + 4, 16);
	put_word(seed + 8, 1);
	memcpy(seed + 20, f->bytes + cie, cie_bytes);
	memcpy(seed + 20 + cie_bytes, f->bytes + fde, fde_bytes);
	put_word(seed + 16, 20 + cie_bytes);
	put_word(seed + 20 + cie_bytes + 4, cie_bytes + 4);
	/* the code's start is relative to its own place, and the table's entry to the header */
	put_word(seed + 20 + cie_bytes + 8, 0x1000);
	put_word(seed + 12, 20 + cie_bytes + 8 + 0x1000);
	snprintf(path, sizeof(path), "%s/seed-%04u", dir, nr_seen);
	out = fopen(path, "w");
	if (!out)
		return;
	fwrite(seed, 1, 20 + cie_bytes + fde_bytes, out);
	fclose(out);
}

static void take_entries(const char *dir, const struct file *f, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at + 16 < end && word(f, at) && word(f, at) < 0xfffffff0; at += word(f, at) + 4) {
		uint32_t back = word(f, at + 4);

		if (back && back <= at + 4 - start && word(f, at) >= 16)
			write_seed(dir, f, at + 4 - back, at);
	}
}

static void take_file(const char *dir, const char *name)
{
	int fd = open(name, O_RDONLY);
	const Elf64_Ehdr *ehdr;
	const Elf64_Shdr *shdr;
	struct stat st;
	struct file f;

	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(*ehdr))
		return;
	f.size = (size_t)st.st_size;
	f.bytes = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (f.bytes == MAP_FAILED)
		return;
	ehdr = (const Elf64_Ehdr *)f.bytes;
	if (!memcmp(ehdr->e_ident, ELFMAG, SELFMAG) && ehdr->e_shoff < f.size &&
	    (f.size - ehdr->e_shoff) / sizeof(*shdr) >= ehdr->e_shnum && ehdr->e_shstrndx < ehdr->e_shnum) {
		shdr = (const Elf64_Shdr *)(f.bytes + ehdr->e_shoff);
		for (int i = 0; i < ehdr->e_shnum; i++) {
			const char *section =
				(const char *)f.bytes + shdr[ehdr->e_shstrndx].sh_offset + shdr[i].sh_name;

			if (!strcmp(section, ".eh_frame") && shdr[i].sh_offset + shdr[i].sh_size <= f.size)
				take_entries(dir, &f, shdr[i].sh_offset, shdr[i].sh_offset + shdr[i].sh_size);
		}
	}
	munmap((void *)f.bytes, f.size);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: eh_frame_corpus DIR FILE...\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		take_file(argv[1], argv[i]);
	printf("%u seeds\n", nr_seen);
	return nr_seen == 0;
}
