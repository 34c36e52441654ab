/*
 * Reading what the plugin for qemu-user wrote: see qemu_read.h. The files come from the process of another program: all
 * that is read is checked. In the launcher's one thread.
 */
#include "launcher/gate/qemu_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "include/internal/simulated_counts.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/base/search.h"
#include "launcher/gate/fingerprint.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/disassemble.h"
#include "launcher/symbols/symbols.h"

#define NO_FILE UINT32_MAX
#define MAX_NAMES 6 /* programs that are named */

/* An instruction, or a place that a block calls. */
struct place {
	uint32_t file;
	uint32_t location; /* of the profile */
	uint64_t offset;
	uint64_t nr; /* executions */
};

/* A call or jump at the end of a block: from place to place, by offset in one file. */
struct call {
	uint32_t file, reserved;
	uint64_t from, to, nr;
};

struct reading {
	int dir;
	struct csink_sim_head head;
	char *text; /* head.nr_text bytes and a NUL */
	struct csink_sim_block *blocks;
	uint8_t *sizes;
	uint64_t *counts; /* of each block, of all processes */
	struct place *places;
	uint32_t nr_places, cap_places;
	struct call *calls;
	uint32_t nr_calls, cap_calls;
	struct csink_profile *profile;
};

/* ---- the files ---- */

/* Returns malloc'ed bytes, of which those behind the file's end are 0. */
static void *read_part(int fd, uint64_t at, uint64_t bytes)
{
	char *part = calloc(bytes + 1, 1);
	uint64_t got = 0;
	ssize_t n = 1;

	for (; part && got < bytes && n > 0; got += n > 0 ? (uint64_t)n : 0)
		n = pread(fd, part + got, bytes - got, (off_t)(at + got));
	return part;
}

static int read_blocks(struct reading *r)
{
	CSINK_AUTO_CLOSE int fd = openat(r->dir, CSINK_SIM_BLOCKS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct csink_sim_head *head = &r->head;

	if (fd < 0)
		return -errno;
	if (pread(fd, head, sizeof(*head), 0) != sizeof(*head) || head->magic != CSINK_SIM_MAGIC ||
	    head->version != CSINK_SIM_VERSION)
		return -EBADMSG;
	head->nr_text = CSINK_MIN(head->nr_text, CSINK_SIM_MAX_TEXT);
	head->nr_blocks = CSINK_MIN(head->nr_blocks, CSINK_SIM_MAX_BLOCKS);
	head->nr_sizes = CSINK_MIN(head->nr_sizes, CSINK_SIM_MAX_SIZES);
	r->text = read_part(fd, CSINK_SIM_TEXT_AT, head->nr_text);
	r->blocks = read_part(fd, CSINK_SIM_BLOCKS_AT, head->nr_blocks * (uint64_t)sizeof(*r->blocks));
	r->sizes = read_part(fd, CSINK_SIM_SIZES_AT, head->nr_sizes);
	r->counts = calloc((size_t)head->nr_blocks + 1, sizeof(*r->counts));
	return r->text && r->blocks && r->sizes && r->counts ? 0 : -ENOMEM;
}

static int read_counts(struct reading *r)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = fdopendir(dup(r->dir));
	const struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		CSINK_AUTO_CLOSE int fd = -1;
		CSINK_AUTO_FREE uint64_t *counts = NULL;

		if (strncmp(entry->d_name, CSINK_SIM_COUNTS, strlen(CSINK_SIM_COUNTS)))
			continue;
		fd = openat(r->dir, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			return -errno;
		counts = read_part(fd, 0, r->head.nr_blocks * (uint64_t)sizeof(*counts));
		if (!counts)
			return -ENOMEM;
		for (uint32_t i = 0; i < r->head.nr_blocks; i++)
			r->counts[i] += counts[i];
	}
	return 0;
}

/* ---- places ---- */

static bool is_block(const struct reading *r, const struct csink_sim_block *block)
{
	return block->nr && (uint64_t)block->sizes + block->nr <= r->head.nr_sizes &&
	       (block->file == NO_FILE || block->file < r->head.nr_text);
}

static int add_place(struct reading *r, uint32_t file, uint64_t offset, uint64_t nr)
{
	struct place place = {.file = file, .offset = offset, .nr = nr};

	return CSINK_APPEND(r->places, r->nr_places, r->cap_places, place) ? 0 : -ENOMEM;
}

/* The instructions of a block, and where it goes. */
static int add_block(struct reading *r, const struct csink_sim_block *block, uint64_t nr)
{
	uint64_t offset = block->offset, last = offset;
	int err = 0;

	for (uint32_t i = 0; i < block->nr && !err; i++) {
		err = add_place(r, block->file, last = offset, nr);
		offset += r->sizes[block->sizes + i];
	}
	if (!err && block->target && block->file != NO_FILE) {
		struct call call = {.file = block->file, .from = last, .to = block->target, .nr = nr};

		err = CSINK_APPEND(r->calls, r->nr_calls, r->cap_calls, call) ? 0 : -ENOMEM;
		err = err ?: add_place(r, block->file, block->target, 0);
	}
	return err;
}

CSINK_COMPARE_BY(compare_places, struct place, file, offset)

static int add_blocks(struct reading *r)
{
	uint32_t nr = 0;
	int err = 0;

	for (uint32_t i = 0; i < r->head.nr_blocks && !err; i++) {
		if (r->counts[i] && !is_block(r, &r->blocks[i]))
			return -EBADMSG;
		if (r->counts[i])
			err = add_block(r, &r->blocks[i], r->counts[i]);
	}
	if (err || !r->nr_places)
		return err;
	qsort(r->places, r->nr_places, sizeof(*r->places), compare_places);
	for (uint32_t i = 1; i < r->nr_places; i++) {
		if (compare_places(&r->places[nr], &r->places[i]))
			r->places[++nr] = r->places[i];
		else
			r->places[nr].nr += r->places[i].nr;
	}
	r->nr_places = nr + 1;
	return 0;
}

/* ---- names ---- */

/* Offsets of a file to addresses as its headers count; those in no segment stay as they are. */
static void to_addresses(const char *path, struct csink_want *wants, uint32_t nr)
{
	CSINK_AUTO_CLOSE int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	for (uint32_t i = 0; elf && i < nr; i++)
		csink_code_address(elf, wants[i].address, &wants[i].address);
	elf_end(elf);
}

/* The places of one file: nr from first on. */
static int name_places(struct reading *r, uint32_t first, uint32_t nr)
{
	struct csink_profile *p = r->profile;
	const char *path = r->places[first].file == NO_FILE ? NULL : r->text + r->places[first].file + 1;
	struct csink_profile_mapping mapping = {.limit = UINT64_MAX};
	CSINK_AUTO_FREE struct csink_want *wants = calloc(nr, sizeof(*wants));
	CSINK_AUTO_FREE char *id_text = NULL;
	uint32_t id = 0;
	int err;

	if (!wants)
		return -ENOMEM;
	if (path) {
		id_text = csink_gate_library_id(path);
		if (!id_text)
			return -ENOMEM;
		mapping.file = csink_profile_str(p, path);
		mapping.build_id = csink_profile_str(p, id_text);
		id = csink_profile_mapping_add(p, &mapping);
	}
	for (uint32_t i = 0; i < nr; i++) {
		struct place *place = &r->places[first + i];

		place->location = csink_profile_location_add(p, id, place->offset, NULL, 0);
		wants[i] = (struct csink_want){place->offset, place->location};
	}
	if (!path || csink_profile_error(p))
		return csink_profile_error(p);
	to_addresses(path, wants, nr);
	err = csink_symbols_resolve(p, &(struct csink_object){.path = path}, wants, nr);
	/* Without names: all of it is one function of that file. */
	return err == -ENOMEM ? err : csink_profile_error(p);
}

static int make_profile(struct reading *r)
{
	int err = 0;
	uint32_t end;

	r->profile = csink_profile_create();
	if (!r->profile)
		return -ENOMEM;
	csink_profile_type_add(r->profile, "instructions", "count");
	for (uint32_t i = 0; i < r->nr_places && !err; i = end) {
		for (end = i; end < r->nr_places && r->places[end].file == r->places[i].file; end++)
			;
		err = name_places(r, i, end - i);
	}
	for (uint32_t i = 0; i < r->nr_places && !err; i++) {
		int64_t nr = (int64_t)r->places[i].nr;

		if (nr)
			csink_profile_sample_add(
				r->profile, csink_profile_stack_add(r->profile, &r->places[i].location, 1), 0, &nr);
	}
	return err ?: csink_profile_error(r->profile);
}

/* ---- calls ---- */

/* The function, of the symbol table, at a place. Returns its index, -ENOENT or -ENOMEM. */
static int64_t function_at(const struct reading *r, struct csink_gate_functions *functions, uint32_t file,
			   uint64_t offset)
{
	const struct csink_profile *p = r->profile;
	struct place key = {.file = file, .offset = offset};
	const struct place *place = bsearch(&key, r->places, r->nr_places, sizeof(key), compare_places);
	const struct csink_profile_location *location;
	const struct csink_profile_line *line;

	if (!place)
		return -ENOENT;
	location = &p->locations[place->location];
	if (!location->nr_lines)
		return -ENOENT;
	line = &p->lines[location->first_line + location->nr_lines - 1];
	return csink_gate_function_find(functions, csink_profile_text(p, p->functions[line->function].name),
					csink_base_name(csink_profile_text(p, p->mappings[location->mapping].file)));
}

static int add_calls(const struct reading *r, struct csink_gate_functions *functions, int side)
{
	int err = 0;

	for (uint32_t i = 0; i < r->nr_calls && !err; i++) {
		const struct call *call = &r->calls[i];
		int64_t caller = function_at(r, functions, call->file, call->from);
		int64_t callee = function_at(r, functions, call->file, call->to);

		if (caller == -ENOMEM || callee == -ENOMEM)
			return -ENOMEM;
		/* A jump within a function is none. */
		if (caller >= 0 && callee >= 0 && caller != callee)
			err = csink_gate_call_add(functions, (uint32_t)caller, (uint32_t)callee, side,
						  (double)call->nr);
	}
	return err;
}

/* ---- what was not counted ---- */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int name_programs(const struct reading *r, struct csink_gate_uncounted *uncounted)
{
	CSINK_AUTO_FREE const char **names = NULL;
	uint32_t nr = 0, cap = 0, distinct = 0;

	for (uint32_t at = 0; at < r->head.nr_text; at += (uint32_t)strlen(r->text + at) + 1) {
		const char *name;

		if (r->text[at] != CSINK_SIM_PROGRAM)
			continue;
		name = csink_base_name(r->text + at + 1);
		if (!CSINK_APPEND(names, nr, cap, name))
			return -ENOMEM;
	}
	uncounted->nr_programs = nr + r->head.nr_lost_programs;
	if (nr)
		qsort(names, nr, sizeof(*names), compare_texts);
	for (uint32_t i = 0, end; i < nr; i = end) {
		for (end = i; end < nr && !strcmp(names[i], names[end]); end++)
			;
		if (distinct++ >= MAX_NAMES)
			continue;
		csink_append(uncounted->programs, sizeof(uncounted->programs), "%s%.60s", distinct > 1 ? ", " : "",
			     names[i]);
		if (end - i > 1)
			csink_append(uncounted->programs, sizeof(uncounted->programs), " (%u)", end - i);
	}
	if (distinct > MAX_NAMES)
		csink_append(uncounted->programs, sizeof(uncounted->programs), ", ...");
	return 0;
}

static int find_uncounted(const struct reading *r, struct csink_gate_uncounted *uncounted)
{
	*uncounted = (struct csink_gate_uncounted){.nr_calls = r->head.nr_calls,
						   .nr_blocks = r->head.nr_lost_blocks,
						   .nr_processes = r->head.nr_lost_processes,
						   .has_threads = r->head.has_threads};
	return name_programs(r, uncounted);
}

/* ---- all ---- */

static int fill(struct reading *r, struct csink_gate_functions *functions, struct csink_gate_placement *placement,
		struct csink_gate_run *run, struct csink_gate_uncounted *uncounted)
{
	int err = read_blocks(r) ?: read_counts(r) ?: add_blocks(r) ?: make_profile(r);

	err = err ?: csink_gate_take(functions, r->profile, NULL, -1, run->side, &run->weights);
	if (err)
		return err;
	/* There are no stacks, and no samples. */
	free(run->weights.total);
	run->weights.total = NULL;
	run->weights.nr_samples = 0;
	return csink_gate_placement_learn(placement, run->side, r->profile) ?: add_calls(r, functions, run->side)
		       ?: csink_gate_weights_grow(&run->weights, functions->nr) ?: find_uncounted(r, uncounted);
}

int csink_gate_qemu_read(const char *directory, struct csink_gate_functions *functions,
			 struct csink_gate_placement *placement, struct csink_gate_run *run,
			 struct csink_gate_uncounted *uncounted, char *why, size_t why_size)
{
	CSINK_AUTO_CLOSE int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct reading r = {.dir = dir};
	int err = dir < 0 ? -errno : fill(&r, functions, placement, run, uncounted);

	if (err)
		snprintf(why, why_size, "%s",
			 err == -ENOENT    ? "qemu did not load the plugin"
			 : err == -EBADMSG ? "its counts are damaged"
					   : strerror(-err));
	csink_profile_free(r.profile);
	free(r.text);
	free(r.blocks);
	free(r.sizes);
	free(r.counts);
	free(r.places);
	free(r.calls);
	return err;
}
