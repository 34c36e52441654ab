/*
 * lines_corpus DIR FILE...: seeds for fuzz_lines out of ELF files with debugging information: line tables that are
 * small, each with the texts of its file where those are few.
 */
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_lines.h"

#define MAX_TABLE 6000
#define MAX_TEXTS 6000
#define MAX_OF_FILE 40

static unsigned int nr_seeds;

static const Elf_Data *section(Elf *elf, const char *wanted)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (!name || strcmp(name, wanted) || shdr.sh_type == SHT_NOBITS)
			continue;
		if (shdr.sh_flags & SHF_COMPRESSED)
			elf_compress(scn, 0, 0);
		return elf_rawdata(scn, NULL);
	}
	return NULL;
}

static void write_seed(const char *dir, const uint8_t *table, size_t bytes, const Elf_Data *texts)
{
	static const uint8_t set_address[] = {0, 9, 2}; /* an opcode with 9 bytes: number 2, and the address */
	const uint8_t *at = memmem(table, bytes, set_address, sizeof(set_address));
	struct fuzz_lines_head head = {.step = 3, .text_bytes = texts ? (uint16_t)texts->d_size : 0};
	char path[4096];
	FILE *out;

	if (!at || table + bytes - at < 3 + 8)
		return;
	memcpy(&head.first, at + 3, sizeof(head.first));
	snprintf(path, sizeof(path), "%s/seed-%04u", dir, nr_seeds++);
	out = fopen(path, "w");
	if (!out)
		return;
	fwrite(&head, 1, sizeof(head), out);
	if (head.text_bytes)
		fwrite(texts->d_buf, 1, head.text_bytes, out);
	fwrite(table, 1, bytes, out);
	fclose(out);
}

static void take_tables(const char *dir, const Elf_Data *lines, const Elf_Data *texts)
{
	const uint8_t *at = lines->d_buf, *end = at + lines->d_size;
	uint32_t bytes, nr = 0;
	uint16_t version;

	while (end - at > 16 && nr < MAX_OF_FILE) {
		memcpy(&bytes, at, 4);
		memcpy(&version, at + 4, 2);
		if (bytes > (size_t)(end - at) - 4)
			return;
		if (bytes < MAX_TABLE && (version < 5 || (texts && texts->d_size < MAX_TEXTS))) {
			write_seed(dir, at, bytes + 4, version < 5 ? NULL : texts);
			nr++;
		}
		at += bytes + 4;
	}
}

static void take_file(const char *dir, const char *path)
{
	int fd = open(path, O_RDONLY);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	const Elf_Data *lines = elf && elf_kind(elf) == ELF_K_ELF ? section(elf, ".debug_line") : NULL;

	if (lines && lines->d_buf)
		take_tables(dir, lines, section(elf, ".debug_line_str"));
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: lines_corpus DIR FILE...\n");
		return 2;
	}
	elf_version(EV_CURRENT);
	for (int i = 2; i < argc; i++)
		take_file(argv[1], argv[i]);
	printf("%u seeds\n", nr_seeds);
	return nr_seeds == 0;
}
