/*
 * An empty shared library of another machine or word size, which keeps that machine's glibc loader silent about our
 * entry in LD_PRELOAD (preload/core/preload_entry.h). It defines nothing and needs nothing.
 *
 * No compiler for that machine is needed: the file is this structure. The Makefile compiles it for our own machine with
 * STUB_BITS, STUB_MACHINE and STUB_FLAGS set, and copies the section .stub into the file. All machines in question are
 * little-endian, as is ours. Source: elf(5), System V ABI.
 */
#include <elf.h>
#include <stddef.h>

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define Elf(type) JOIN(Elf, STUB_BITS, _##type)

/* The largest page that such a machine's loader may have. */
#define PAGE 0x10000

struct stub {
	Elf(Ehdr) header;
	Elf(Phdr) load, dynamic, stack;
	Elf(Dyn) entries[7];
	Elf(Sym) no_symbol;
	Elf(Word) hash[4]; /* one bucket and one symbol, the null one */
	char strings[24];
};

#define NAME "libcountersink.so" /* the same as the library's, so that it satisfies no dependency on another one */

/* The loader adds the load address to pointers in the dynamic section, so the only segment is writable. */
__attribute__((section(".stub"), used)) static struct stub stub = {
	.header =
		{
			.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, STUB_BITS == 32 ? ELFCLASS32 : ELFCLASS64,
				    ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE},
			.e_type = ET_DYN,
			.e_machine = STUB_MACHINE,
			.e_version = EV_CURRENT,
			.e_phoff = offsetof(struct stub, load),
			.e_flags = STUB_FLAGS,
			.e_ehsize = sizeof(Elf(Ehdr)),
			.e_phentsize = sizeof(Elf(Phdr)),
			.e_phnum = 3,
		},
	.load =
		{
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W,
			.p_filesz = sizeof(stub),
			.p_memsz = sizeof(stub),
			.p_align = PAGE,
		},
	.dynamic =
		{
			.p_type = PT_DYNAMIC,
			.p_flags = PF_R | PF_W,
			.p_offset = offsetof(struct stub, entries),
			.p_vaddr = offsetof(struct stub, entries),
			.p_paddr = offsetof(struct stub, entries),
			.p_filesz = sizeof(stub.entries),
			.p_memsz = sizeof(stub.entries),
			.p_align = sizeof(stub.header.e_entry),
		},
	/* Without it the loader would make the program's stack executable. */
	.stack = {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W},
	.entries =
		{
			{.d_tag = DT_SONAME, .d_un.d_val = 1},
			{.d_tag = DT_HASH, .d_un.d_ptr = offsetof(struct stub, hash)},
			{.d_tag = DT_STRTAB, .d_un.d_ptr = offsetof(struct stub, strings)},
			{.d_tag = DT_STRSZ, .d_un.d_val = sizeof(stub.strings)},
			{.d_tag = DT_SYMTAB, .d_un.d_ptr = offsetof(struct stub, no_symbol)},
			{.d_tag = DT_SYMENT, .d_un.d_val = sizeof(stub.no_symbol)},
			{.d_tag = DT_NULL},
		},
	.hash = {1, 1, 0, 0},
	.strings = "\0" NAME,
};
