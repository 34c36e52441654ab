/*
 * The file of a mapped object, or the vdso in our own memory: its headers, and what they say where is. Files are
 * untrusted: everything is checked against what can be read. Nothing of the file is mapped: it may shrink.
 */
#ifndef CSINK_OBJECT_FILE_H
#define CSINK_OBJECT_FILE_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#define CSINK_FILE_MAX_PHDR 64

struct csink_object_file {
	int fd; /* -1: memory */
	const char *memory;
	uint64_t memory_bytes; /* 0: as many as are asked for: it is trusted */
	bool is_32;            /* of 32-bit words: the headers below are made of its own */
	ElfW(Ehdr) head;
	ElfW(Phdr) phdr[CSINK_FILE_MAX_PHDR];
	uint32_t nr_phdr;
};

/** Read the headers. False: it is no ELF file. fd or memory is set. */
bool csink_object_file_begin(struct csink_object_file *file);

/** Read bytes at an offset. False: there are fewer. */
bool csink_object_file_read(const struct csink_object_file *file, void *to, size_t bytes, uint64_t offset);

/** The loaded segment that has an address, NULL if none has. No segment that is returned ends behind the last address.
 */
const ElfW(Phdr) * csink_object_file_segment(const struct csink_object_file *file, uint64_t vaddr);

/** Find a section that is loaded, by its name, and lies in a segment where the section's header says. */
bool csink_object_file_section(const struct csink_object_file *file, const char *name, ElfW(Shdr) * found);

#endif
