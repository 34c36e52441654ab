/*
 * ELF images that just-in-time compilers register with debuggers (GDB's JIT interface): symbols, and often unwind
 * tables and lines, of code that was made at run time. Read from a copy: agent and launcher do. An image may have any
 * content: what is handed out here lies within it. Context of everything here: signal.
 */
#ifndef CSINK_JIT_IMAGE_H
#define CSINK_JIT_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

struct csink_jit_image {
	const uint8_t *at;
	uint64_t bytes;
	uint16_t type;          /* ET_REL, ET_EXEC or ET_DYN */
	uint32_t nr_sections;   /* at sections, each of sizeof(Elf64_Shdr) */
	uint64_t sections;      /* offset */
	uint32_t symbols;       /* index of the section SHT_SYMTAB, failing that SHT_DYNSYM; 0: none */
	bool has_code_sections; /* else symbols say where code is */
};

/* Addresses of code, [start, end). */
struct csink_jit_range {
	uint64_t start, end;
};

/** Check the header. Returns false if the image is none of this machine, or has no sections. @at need not be aligned.
 */
bool csink_jit_image_open(struct csink_jit_image *image, const void *at, uint64_t bytes);

/** Copy out a section's header. Returns false if there is none, or its contents are not within the image. */
bool csink_jit_image_section(const struct csink_jit_image *image, uint32_t index, Elf64_Shdr *section);

/** Copy out a symbol of the section that image->symbols is the index of, which is @table. False: there is none. */
bool csink_jit_image_symbol(const struct csink_jit_image *image, const Elf64_Shdr *table, uint64_t index,
			    Elf64_Sym *symbol);

/** A symbol's run-time address; 0: it has none. In an image of type ET_REL values count from the symbol's section. */
uint64_t csink_jit_image_address(const struct csink_jit_image *image, const Elf64_Sym *symbol);

/**
 * The next range of code: of sections that have it at a run-time address; failing those, of functions.
 * @at  where to go on; 0 at first.
 * Returns false after the last one.
 */
bool csink_jit_image_next(const struct csink_jit_image *image, uint64_t *at, struct csink_jit_range *range);

#endif
