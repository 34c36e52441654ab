/*
 * Names of V8's builtin functions in libraries that are stripped, as Debian's libnode is. V8 has a table of its own, in
 * which they are found by number, and exports functions that return where the code, this table, and the names are.
 * Source: V8's src/snapshot/embedded/embedded-data.h and src/builtins/builtins.cc, 10.2 to 12.4 (node 18 to 22).
 * Files are untrusted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/search.h"
#include "launcher/symbols/symbols_impl.h"

enum {
	MAX_SEGMENTS = 64,
	MIN_BUILTINS = 256,
	MAX_BUILTINS = 16384,
	MAX_NAME = 200,
	NAME_STRIDE = 24,   /* bytes from one name's address to the next */
	PLACES_HEAD = 24,   /* bytes before the first place: three hashes */
	PLACE_ALIGN = 32,   /* of functions, in the code */
	MAX_PLACE = 64,     /* bytes of a place: its offset and length, then what versions add */
	MAX_OTHER_NAMES = 8 /* fewer than so many may follow by chance */
};

/* What the functions return that V8 exports. */
enum result { CODE, CODE_BYTES, PLACES, PLACES_BYTES, NAMES, NR_RESULTS };

#define PREFIX "_ZN2v88internal"
static const char *const exported[NR_RESULTS] = {
	PREFIX "23DefaultEmbeddedBlobCodeEv",  PREFIX "27DefaultEmbeddedBlobCodeSizeEv",
	PREFIX "23DefaultEmbeddedBlobDataEv",  PREFIX "27DefaultEmbeddedBlobDataSizeEv",
	PREFIX "8Builtins4nameENS0_7BuiltinE",
};

/* Addresses of functions, in the order of their places. */
struct builtins {
	struct csink_span *code;
	uint64_t *names; /* addresses of the texts */
	uint32_t nr;
};

/* What a loaded segment has from an address on, and how many bytes of it; NULL if the file has none of it. */
static const uint8_t *segment_at(Elf *elf, uint64_t address, uint64_t *left)
{
	size_t file_bytes, nr_phdrs;
	const uint8_t *file = (const uint8_t *)elf_rawfile(elf, &file_bytes);
	GElf_Phdr phdr;

	if (!file || elf_getphdrnum(elf, &nr_phdrs))
		return NULL;
	for (size_t i = 0; i < CSINK_MIN(nr_phdrs, (size_t)MAX_SEGMENTS) && gelf_getphdr(elf, (int)i, &phdr); i++) {
		uint64_t from = address - phdr.p_vaddr;

		if (phdr.p_type != PT_LOAD || from >= phdr.p_filesz)
			continue;
		if (phdr.p_offset > file_bytes || phdr.p_filesz > file_bytes - phdr.p_offset)
			return NULL;
		*left = phdr.p_filesz - from;
		return file + phdr.p_offset + from;
	}
	return NULL;
}

/* So many bytes; NULL if they are not all in one segment. */
static const uint8_t *bytes_at(Elf *elf, uint64_t address, uint64_t nr)
{
	uint64_t left;
	const uint8_t *at = segment_at(elf, address, &left);

	return at && nr <= left ? at : NULL;
}

/* A number of so many bytes; 0 if it is not in the file. */
static uint64_t number_at(Elf *elf, uint64_t address, uint32_t bytes)
{
	const uint8_t *at = bytes_at(elf, address, bytes);

	return at ? csink_read_fixed(at, at + bytes, bytes) : 0;
}

/* Words of a file: the first one, the distance from one to the next, and what is found. */
struct words {
	uint64_t first, stride, *values;
	uint32_t nr;
};

static void take_relocation(void *arg, Elf_Scn *symbols, const GElf_Rela *rela)
{
	const struct words *words = arg;
	uint64_t from = rela->r_offset - words->first;

	(void)symbols;
	/* A relocation without an addend leaves the word that is in the file. */
	if (rela->r_addend && GELF_R_TYPE(rela->r_info) == R_X86_64_RELATIVE && from / words->stride < words->nr &&
	    from % words->stride == 0)
		words->values[from / words->stride] = (uint64_t)rela->r_addend;
}

/* What words hold once the file is loaded where its addresses begin: relocations have it, or the words themselves. */
static void read_pointers(Elf *elf, uint64_t first, uint64_t stride, uint64_t *pointers, uint32_t nr)
{
	struct words words = {first, stride, pointers, nr};

	for (uint32_t i = 0; i < nr; i++)
		pointers[i] = number_at(elf, first + i * stride, sizeof(pointers[i]));
	csink_elf_each_relocation(elf, take_relocation, &words);
}

#define STARTS_WITH(code, bytes) (!memcmp(code, bytes, sizeof(bytes) - 1))

/*
 * The address that such a function returns, or that of the variable whose value it returns (is_variable); of the one
 * with a builtin's number, that of the first name. False: it is another one.
 */
static bool decode(Elf *elf, uint64_t function, uint64_t *address, bool *is_variable)
{
	uint64_t constant, left;
	const uint8_t *in_file = segment_at(elf, function, &left);
	uint8_t code[32] = {0}, *at = code;
	bool is_relative = true;

	if (!in_file)
		return false;
	memcpy(code, in_file, CSINK_MIN(left, sizeof(code)));
	if (STARTS_WITH(at, "\xf3\x0f\x1e\xfa")) /* endbr64 */
		at += 4;
	if (STARTS_WITH(at, "\x48\x63\xff")) /* movslq %edi,%rdi */
		at += 3;
	if (STARTS_WITH(at, "\x48\x8d") && (at[2] & 0xc7) == 0x04 && at[3] == 0x7f) /* lea (%rdi,%rdi,2) */
		at += 4;
	*is_variable = false;
	if (STARTS_WITH(at, "\x48\x8d\x05")) { /* lea (%rip),%rax */
		at += 3;
	} else if (STARTS_WITH(at, "\x48\x8b\x05")) { /* mov (%rip),%rax */
		at += 3;
		*is_variable = true;
	} else if (STARTS_WITH(at, "\x8b\x05")) { /* mov (%rip),%eax */
		at += 2;
		*is_variable = true;
	} else {
		is_relative = false;
		if (STARTS_WITH(at, "\xb8")) /* mov $,%eax */
			at += 1;
		else if (STARTS_WITH(at, "\x48\x8b\x04\xc5")) /* mov (,%rax,8),%rax */
			at += 4;
		else
			return false;
	}
	constant = (uint64_t)(int64_t)(int32_t)csink_read_fixed(at, at + 4, 4);
	at += 4;
	*address = is_relative ? function + (uint64_t)(at - code) + constant : constant;
	*is_variable |= STARTS_WITH(at, "\x48\x8b\x00") || STARTS_WITH(at, "\x8b\x00"); /* mov (%rax),%rax */
	return true;
}

/* Is it the text at an offset of a section? */
static bool is_text(const Elf_Data *section, uint64_t offset, const char *text, size_t bytes)
{
	return offset < section->d_size && bytes <= section->d_size - offset &&
	       !memcmp((const char *)section->d_buf + offset, text, bytes);
}

static bool find_exported(Elf *elf, uint64_t *functions)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = csink_elf_section(elf, SHT_DYNSYM, NULL, &shdr);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t nr = data && shdr.sh_entsize ? CSINK_MIN(data->d_size / shdr.sh_entsize, INT32_MAX) : 0;
	/* In place of elf_strptr(), which takes longer: some libraries have 100,000 symbols. */
	Elf_Scn *texts_scn = nr ? elf_getscn(elf, shdr.sh_link) : NULL;
	Elf_Data *texts = texts_scn ? elf_getdata(texts_scn, NULL) : NULL;
	uint32_t found = 0;
	GElf_Sym sym;

	if (!texts || !texts->d_buf)
		return false;
	for (size_t i = 0; i < nr && gelf_getsym(data, (int)i, &sym); i++) {
		if (!sym.st_value || !is_text(texts, sym.st_name, PREFIX, strlen(PREFIX)))
			continue;
		for (uint32_t k = 0; k < NR_RESULTS; k++) {
			if (functions[k] || !is_text(texts, sym.st_name, exported[k], strlen(exported[k]) + 1))
				continue;
			functions[k] = sym.st_value;
			found++;
		}
	}
	return found == NR_RESULTS;
}

/* What each function returns; of sizes, the number. */
static bool find_results(Elf *elf, uint64_t *results)
{
	uint64_t functions[NR_RESULTS] = {0};

	if (!find_exported(elf, functions))
		return false;
	for (uint32_t i = 0; i < NR_RESULTS; i++) {
		bool is_number = i == CODE_BYTES || i == PLACES_BYTES, is_variable;

		/* Of some versions, code and places are variables, too. */
		if (!decode(elf, functions[i], &results[i], &is_variable) ||
		    (is_number != is_variable && (is_number || i == NAMES)))
			return false;
		if (is_number)
			results[i] = number_at(elf, results[i], 4);
		else if (is_variable)
			read_pointers(elf, results[i], sizeof(results[i]), &results[i], 1);
	}
	return results[CODE] && results[PLACES] && results[NAMES];
}

/* NULL: there is no name at this address. */
static const char *name_at(Elf *elf, uint64_t address)
{
	static const char usual[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	uint64_t left;
	const char *name = (const char *)segment_at(elf, address, &left);
	size_t length = name ? strnlen(name, CSINK_MIN(left, MAX_NAME)) : 0;

	return length && length < CSINK_MIN(left, MAX_NAME) && strspn(name, usual) == length ? name : NULL;
}

/* Read the places as a version has them that needs so many bytes for one. False: this one does not. */
static bool read_places(struct builtins *builtins, const uint8_t *places, const uint64_t *results, uint32_t bytes)
{
	uint64_t last = 0;

	if (results[PLACES_BYTES] < PLACES_HEAD || (results[PLACES_BYTES] - PLACES_HEAD) / bytes < builtins->nr)
		return false;
	for (uint32_t i = 0; i < builtins->nr; i++) {
		const uint8_t *at = places + PLACES_HEAD + (uint64_t)i * bytes;
		uint64_t offset = csink_read_fixed(at, at + 4, 4), end = offset + csink_read_fixed(at + 4, at + 8, 4);

		if (offset % PLACE_ALIGN || offset < last || end == offset || end > results[CODE_BYTES])
			return false;
		builtins->code[i] = (struct csink_span){results[CODE] + offset, results[CODE] + end};
		last = end;
	}
	return true;
}

/* Find the builtins of a file. nr is 0 if it has none, or has them in another way. Returns 0 or -ENOMEM. */
static int find_builtins(struct builtins *builtins, Elf *elf)
{
	uint64_t results[NR_RESULTS];
	const uint8_t *places;
	GElf_Ehdr ehdr;
	uint32_t nr = 0;

	*builtins = (struct builtins){0};
	if (!gelf_getehdr(elf, &ehdr) || ehdr.e_machine != EM_X86_64 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB || !find_results(elf, results))
		return 0;
	places = bytes_at(elf, results[PLACES], results[PLACES_BYTES]);
	if (!places)
		return 0;
	builtins->names = calloc(MAX_BUILTINS, sizeof(*builtins->names));
	builtins->code = calloc(MAX_BUILTINS, sizeof(*builtins->code));
	if (!builtins->names || !builtins->code)
		return -ENOMEM;
	read_pointers(elf, results[NAMES], NAME_STRIDE, builtins->names, MAX_BUILTINS);
	while (nr < MAX_BUILTINS && name_at(elf, builtins->names[nr]))
		nr++;
	for (builtins->nr = nr; builtins->nr >= MIN_BUILTINS && builtins->nr + MAX_OTHER_NAMES > nr; builtins->nr--)
		for (uint32_t bytes = 8; bytes <= MAX_PLACE; bytes += 4)
			if (read_places(builtins, places, results, bytes))
				return 0;
	builtins->nr = 0;
	return 0;
}

static void free_builtins(struct builtins *builtins)
{
	free(builtins->names);
	free(builtins->code);
}

static bool is_unnamed(const struct csink_batch *batch, uint32_t want)
{
	return !batch->found[want].function && !batch->found[want].is_done;
}

int csink_elf_v8_builtins(struct csink_batch *batch, Elf *elf)
{
	struct csink_profile_function function = {0};
	char text[MAX_NAME + sizeof("Builtins_")];
	struct builtins builtins;
	uint32_t first = 0, last = UINT32_MAX;
	int err;

	while (first < batch->nr && !is_unnamed(batch, first))
		first++;
	if (first == batch->nr)
		return 0;
	err = find_builtins(&builtins, elf);
	for (uint32_t i = first; !err && i < batch->nr && builtins.nr; i++) {
		uint64_t address = batch->wants[i].address;
		uint32_t at = CSINK_LOWER(builtins.nr, k, builtins.code[k].low <= address);

		if (!at || address >= builtins.code[at - 1].high || !is_unnamed(batch, i))
			continue;
		if (at != last) { /* addresses of one function are neighbours */
			snprintf(text, sizeof(text), "Builtins_%s", name_at(elf, builtins.names[at - 1]));
			function.name = function.system_name = csink_profile_str(batch->p, text);
			last = at;
		}
		batch->found[i].function = csink_profile_function_add(batch->p, &function);
	}
	free_builtins(&builtins);
	return err;
}

int csink_elf_v8_bounds(struct csink_bounds *bounds, Elf *elf)
{
	struct builtins builtins;
	int err = find_builtins(&builtins, elf);

	for (uint32_t i = 0; i < builtins.nr && !err; i++) {
		if (csink_bounds_hold(bounds, builtins.code[i].low))
			err = csink_bounds_add(bounds, builtins.code[i].low);
		if (!err && csink_bounds_hold(bounds, builtins.code[i].high))
			err = csink_bounds_add(bounds, builtins.code[i].high);
	}
	free_builtins(&builtins);
	return err;
}
