/* What a program file is, of files whose headers no linker writes: see program_file.h. */
#include "preload/core/program_file.h"
#include "tests/unit/tap.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { NR_DYNAMIC = 300 };

static struct {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	char loaders[2][64];
	Elf64_Dyn dynamic[NR_DYNAMIC];
} file;
static char path[] = "/tmp/csink-program.XXXXXX";

/* The loader of this program. */
static const char *own_loader(void)
{
	const Elf64_Phdr *phdr = (const Elf64_Phdr *)getauxval(AT_PHDR);
	uint64_t bias = 0;

	for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) {
		if (phdr[i].p_type == PT_PHDR)
			bias = (uintptr_t)phdr - phdr[i].p_vaddr;
		if (phdr[i].p_type == PT_INTERP)
			return (const char *)(bias + phdr[i].p_vaddr);
	}
	return "";
}

static void make(const char *first, const char *second)
{
	size_t at[] = {offsetof(typeof(file), loaders[0]), offsetof(typeof(file), loaders[1]),
		       offsetof(typeof(file), dynamic)};
	size_t bytes[] = {strlen(first) + 1, strlen(second) + 1, sizeof(file.dynamic)};

	memset(&file, 0, sizeof(file));
	memcpy(file.header.e_ident, ELFMAG, SELFMAG);
	file.header.e_ident[EI_CLASS] = ELFCLASS64;
#if defined(__x86_64__)
	file.header.e_machine = EM_X86_64;
#else
	file.header.e_machine = EM_AARCH64;
#endif
	file.header.e_phoff = offsetof(typeof(file), segments);
	file.header.e_phentsize = sizeof(Elf64_Phdr);
	file.header.e_phnum = 3;
	for (int i = 0; i < 3; i++)
		file.segments[i] =
			(Elf64_Phdr){.p_type = i < 2 ? PT_INTERP : PT_DYNAMIC, .p_offset = at[i], .p_filesz = bytes[i]};
	strcpy(file.loaders[0], first);
	strcpy(file.loaders[1], second);
	for (int i = 0; i < NR_DYNAMIC; i++)
		file.dynamic[i].d_tag = DT_DEBUG;
}

static int kind_of(void)
{
	enum csink_program_kind kind;
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd < 0 || write(fd, &file, sizeof(file)) != sizeof(file) || fchmod(fd, 0755))
		abort();
	close(fd);
	fd = csink_program_open(AT_FDCWD, path, &kind);
	if (fd < 0)
		return -1;
	close(fd);
	return (int)kind;
}

int main(void)
{
	const char *loader = own_loader();

	close(mkstemp(path));
	make(loader, "/lib/ld-musl-x86_64.so.1");
	file.dynamic[0].d_tag = DT_NEEDED;
	is_num(kind_of(), CSINK_PROGRAM_OWN, "of two loaders the first one counts: this C library's");
	make("/lib/ld-musl-x86_64.so.1", loader);
	is_num(kind_of(), CSINK_PROGRAM_LIBC, "of two loaders the first one counts: another C library's");
	make(loader, "");
	file.dynamic[1].d_tag = DT_NULL;
	is_num(kind_of(), CSINK_PROGRAM_STATIC, "a program that has a loader, and needs no library");
	make(loader, "");
	file.dynamic[NR_DYNAMIC - 1].d_tag = DT_NULL;
	is_num(kind_of(), CSINK_PROGRAM_OWN, "hundreds of entries are not read to their end");
	make(loader, "");
	file.segments[2].p_type = PT_NULL;
	is_num(kind_of(), CSINK_PROGRAM_OWN, "a program that has a loader, and no list of what it needs");
	unlink(path);
	return done();
}
