/* Images of code made at run time: what is read of them, and that damaged ones are read within their bounds. */
#include "preload/core/jit_image.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/collect/jit_images.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"
#include "tests/unit/tap.h"

enum { TEXT = 1, SYMBOLS, NAMES, DEBUG, RELOCATIONS, NR_SECTIONS };
enum { CODE = 0x7f0000001000, BYTES = 0x100 };

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64, ADDRESS_64 = R_X86_64_64, OTHER = R_X86_64_GOTPCREL };
#else
enum { MACHINE = EM_AARCH64, ADDRESS_64 = R_AARCH64_ABS64, OTHER = R_AARCH64_ADR_GOT_PAGE };
#endif

struct image {
	Elf64_Ehdr ehdr;
	Elf64_Shdr sections[NR_SECTIONS];
	Elf64_Sym symbols[3];
	Elf64_Rela relocations[1];
	uint64_t debug;
	char names[16];
};

static struct image good(void)
{
	struct image image = {.ehdr = {.e_ident = ELFMAG "\2\1\1",
				       .e_type = ET_REL,
				       .e_machine = MACHINE,
				       .e_shoff = offsetof(struct image, sections),
				       .e_shentsize = sizeof(Elf64_Shdr),
				       .e_shnum = NR_SECTIONS}};

	image.sections[TEXT] = (Elf64_Shdr){
		.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = CODE, .sh_size = BYTES};
	image.sections[SYMBOLS] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
					       .sh_offset = offsetof(struct image, symbols),
					       .sh_size = sizeof(image.symbols),
					       .sh_link = NAMES,
					       .sh_addralign = 8};
	image.sections[NAMES] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					     .sh_offset = offsetof(struct image, names),
					     .sh_size = sizeof(image.names),
					     .sh_addralign = 1};
	image.sections[DEBUG] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS, .sh_offset = offsetof(struct image, debug), .sh_size = sizeof(image.debug)};
	image.sections[RELOCATIONS] = (Elf64_Shdr){.sh_type = SHT_RELA,
						   .sh_offset = offsetof(struct image, relocations),
						   .sh_size = sizeof(image.relocations),
						   .sh_link = SYMBOLS,
						   .sh_info = DEBUG};
	image.symbols[1] = (Elf64_Sym){1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, TEXT, 0x10, 0x20};
	image.symbols[2] = (Elf64_Sym){7, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SHN_ABS, CODE + 0x40, 0x20};
	image.relocations[0] = (Elf64_Rela){0, ELF64_R_INFO(1UL, ADDRESS_64), 4};
	memcpy(image.names, "\0first\0second", 13);
	return image;
}

/* Link a copy of the exact size, and name three addresses: "first,second,?". */
static const char *names_of(const struct image *image, size_t bytes, char *to, size_t room)
{
	static const uint64_t addresses[] = {CODE + 0x18, CODE + 0x48, CODE + 0x80};
	struct csink_profile *p = csink_profile_create();
	uint8_t *copy = malloc(bytes ? bytes : 1);
	struct csink_object object = {.path = "[jit]", .image = copy, .nr_image = bytes};
	struct csink_want wants[3];

	*to = 0;
	memcpy(copy, image, bytes);
	for (int i = 0; i < 3; i++)
		wants[i] = (struct csink_want){addresses[i], csink_profile_location_add(p, 0, addresses[i], NULL, 0)};
	if (!csink_jit_image_link(copy, bytes) && csink_symbols_resolve(p, &object, wants, 3) >= 0) {
		for (int i = 0; i < 3; i++) {
			const struct csink_profile_location *location = &p->locations[wants[i].location];
			const char *name =
				location->nr_lines
					? csink_profile_text(p,
							     p->functions[p->lines[location->first_line].function].name)
					: "?";

			snprintf(to + strlen(to), room - strlen(to), "%s%s", i ? "," : "", name);
		}
	}
	csink_profile_free(p);
	free(copy);
	return to;
}

static void whole(void)
{
	struct image from = good();
	struct csink_jit_image image;
	struct csink_jit_range range;
	uint64_t at = 0;
	char text[128];

	ok(csink_jit_image_open(&image, &from, sizeof(from)) && image.symbols == SYMBOLS, "an image is opened");
	ok(csink_jit_image_next(&image, &at, &range) && range.start == CODE && range.end == CODE + BYTES &&
		   !csink_jit_image_next(&image, &at, &range),
	   "the code of an image is its section");
	ok(!strcmp(names_of(&from, sizeof(from), text, sizeof(text)), "first,second,?"),
	   "symbols of a section, and absolute ones, name code (%s)", text);
	from.sections[TEXT].sh_addr = 0;
	from.symbols[1].st_value = CODE;
	at = 0;
	ok(csink_jit_image_open(&image, &from, sizeof(from)) && csink_jit_image_next(&image, &at, &range) &&
		   range.start == CODE && range.end == CODE + 0x20 && csink_jit_image_next(&image, &at, &range) &&
		   range.start == CODE + 0x40 && !csink_jit_image_next(&image, &at, &range),
	   "without an address of a section, code is where functions are");
	from = good();
	ok(!csink_jit_image_link((uint8_t *)&from, sizeof(from)) && from.debug == CODE + 0x10 + 4 &&
		   from.symbols[1].st_value == CODE + 0x10 && from.ehdr.e_type == ET_EXEC,
	   "relocations of debug information are applied");
	from = good();
	from.relocations[0].r_info = ELF64_R_INFO(1UL, OTHER);
	ok(!csink_jit_image_link((uint8_t *)&from, sizeof(from)) && from.sections[DEBUG].sh_type == SHT_NOBITS,
	   "debug information with others is left out");
}

static void refused(void)
{
	struct csink_jit_image image;
	struct image from = good();

	from.ehdr.e_machine = EM_386;
	ok(!csink_jit_image_open(&image, &from, sizeof(from)), "an image of another machine is refused");
	from = good();
	from.ehdr.e_shnum = UINT16_MAX;
	ok(!csink_jit_image_open(&image, &from, sizeof(from)), "more sections than there is room for");
	from = good();
	from.ehdr.e_shoff = UINT64_MAX - 8;
	ok(!csink_jit_image_open(&image, &from, sizeof(from)), "sections outside of the image");
	ok(csink_jit_image_link((uint8_t *)&from, sizeof(from)) == -ENOEXEC, "such an image is not linked");
}

/* Each byte with other values, and each length: under the sanitizers, and with copies of the exact size, a read too far
 * is seen. */
static void damaged(void)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct csink_jit_range range;
	struct csink_jit_image image;
	uint32_t nr_wrong = 0;
	char text[2048];

	for (size_t i = 0; i < sizeof(struct image) * CSINK_ARRAY_SIZE(values); i++) {
		struct image from = good();
		uint64_t at = 0;

		((uint8_t *)&from)[i / CSINK_ARRAY_SIZE(values)] = values[i % CSINK_ARRAY_SIZE(values)];
		if (csink_jit_image_open(&image, &from, sizeof(from))) {
			while (csink_jit_image_next(&image, &at, &range))
				nr_wrong += range.start >= range.end || range.end > 1ULL << 48;
		}
		names_of(&from, sizeof(from), text, sizeof(text));
	}
	ok(!nr_wrong, "ranges of damaged images are ranges of addresses");
	for (size_t bytes = 0; bytes < sizeof(struct image); bytes++) {
		struct image from = good();

		nr_wrong += !strcmp(names_of(&from, bytes, text, sizeof(text)), "first,second,?") &&
			    bytes < offsetof(struct image, names);
	}
	ok(!nr_wrong, "an image that is cut short has no names that lie behind its end");
}

int main(void)
{
	whole();
	refused();
	damaged();
	return done();
}
