/*
 * libFuzzer target: bytes as a recording, from its file to a profile and the report of it. So that mutations meet what
 * matters, the input leaves out what is long and free: it begins with the header up to its strings, and goes on with
 * the first extent; magic, version and size are put right. Some are also written twice behind one another, the second
 * time with less in it: as a process that went on leaves it (struct csink_rec_cut). Sanitizers judge.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/recording_format.h"
#include "launcher/collect/collect.h"
#include "launcher/collect/recording_read.h"
#include "launcher/output/report.h"
#include "launcher/profile/profile.h"

#define HEAD_BYTES offsetof(struct csink_rec_header, exe)
#define MAX_BLOCKS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/countersink-fuzz.XXXXXX";
static FILE *nowhere;

static void remove_directory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/100.0.rec", directory);
	unlink(path);
	rmdir(directory);
}

static void set_up(void)
{
	nowhere = fopen("/dev/null", "we");
	if (!nowhere || !mkdtemp(directory))
		abort();
	atexit(remove_directory);
}

/* As the library lays it out. Returns the number of bytes. */
static size_t expand(const uint8_t *data, size_t size, uint8_t *to)
{
	struct csink_rec_header *header = (struct csink_rec_header *)to;
	size_t head = CSINK_MIN(size, HEAD_BYTES), room = (size_t)MAX_BLOCKS * CSINK_REC_BLOCK - CSINK_REC_HEADER_BYTES;
	size_t rest = CSINK_MIN(size - head, room);

	memset(to, 0, (size_t)MAX_BLOCKS * CSINK_REC_BLOCK);
	memcpy(to, data, head);
	memcpy(to + CSINK_REC_HEADER_BYTES, data + head, rest);
	header->magic = CSINK_REC_MAGIC;
	header->version = CSINK_REC_VERSION;
	header->header_bytes = CSINK_REC_HEADER_BYTES;
	memset(&header->cut, 0, sizeof(header->cut));
	return CSINK_REC_HEADER_BYTES + (rest + CSINK_REC_BLOCK - 1) / CSINK_REC_BLOCK * CSINK_REC_BLOCK;
}

/* A root is reached from every node that a row has. */
static void check_climb(const struct csink_recorded *rec, uint32_t at)
{
	uint32_t steps = 0;

	for (; at != CSINK_RECORDED_NONE; at = rec->nodes[at].parent) {
		const struct csink_recorded_node *node = &rec->nodes[at];

		if (at >= rec->nr_nodes || steps++ > CSINK_MAX_DEPTH || node->root >= rec->nr_nodes)
			abort();
		if (node->depth ? node->parent == CSINK_RECORDED_NONE : node->root != at)
			abort();
	}
}

/* What the reader promises about everything that it hands out. */
static void check_promises(const struct csink_recorded *rec)
{
	for (uint32_t i = 0; i < rec->nr_rows; i++) {
		const struct csink_recorded_row *row = &rec->rows[i];

		for (uint32_t k = 0; k < rec->header.nr_events; k++)
			*(volatile const uint64_t *)&rec->weights[i * rec->header.nr_events + k];
		if (row->thread != CSINK_RECORDED_NONE && row->thread >= rec->nr_threads)
			abort();
		if (row->node != CSINK_RECORDED_NONE && row->node >= rec->nr_nodes)
			abort();
		if (csink_recorded_row_at(rec, row->ref) != i)
			abort();
		check_climb(rec, row->node);
	}
	for (uint32_t i = 0; i < rec->nr_notes; i++)
		if (strlen(rec->notes[i]->text) >= rec->notes[i]->head.bytes)
			abort();
	for (uint32_t i = 0; i < rec->nr_spawns; i++)
		if (strlen(rec->spawns[i]->path) >= rec->spawns[i]->head.bytes)
			abort();
	for (uint32_t i = 0; i < rec->nr_modules; i++)
		if (strlen(rec->modules[i]->path) >= rec->modules[i]->head.bytes)
			abort();
	for (uint32_t i = 0; i < rec->nr_timelines; i++)
		for (uint32_t k = 0; k < rec->timelines[i]->nr; k++)
			csink_recorded_row_at(rec, rec->timelines[i]->moments[k].row);
}

static void make_profile(const uint8_t *bytes, size_t size, const uint8_t *second, size_t nr_second)
{
	struct csink_report_options options;
	struct csink_profile *profile;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/100.0.rec", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || write(fd, second, nr_second) != (ssize_t)nr_second)
		abort();
	close(fd);
	if (csink_collect(directory, NULL, &profile))
		return;
	csink_report_options_init(&options, nowhere);
	csink_report_print(nowhere, profile, &options);
	csink_profile_free(profile);
}

/* As it was before, behind itself, and a little changed; where that lies is taken from a word of the header. */
static void make_later_profile(const uint8_t *data, size_t size)
{
	static uint8_t bytes[MAX_BLOCKS * CSINK_REC_BLOCK], second[MAX_BLOCKS * CSINK_REC_BLOCK];
	struct csink_rec_header *header = (struct csink_rec_header *)bytes;
	size_t length, nr_second, from;

	length = expand(data, size, bytes);
	/* The same header, with a part of what follows it: later entries are missing. */
	from = header->seq & 4 && size > HEAD_BYTES ? size - (size - HEAD_BYTES) / 2 : size;
	nr_second = expand(data, from, second);
	header->cut.at = header->seq & 8 ? header->seq >> 8 : length;
	header->cut.bytes = header->seq & 16 ? header->seq >> 6 & ~7U : nr_second;
	header->cut.is_continued = header->seq & 1;
	header->collected = header->seq & 2 ? CSINK_REC_COLLECTED : 0;
	if (header->seq & 32)
		second[CSINK_REC_HEADER_BYTES + (header->seq >> 6) % (nr_second - CSINK_REC_HEADER_BYTES + 1)] ^= 1;
	make_profile(bytes, length, second, nr_second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[MAX_BLOCKS * CSINK_REC_BLOCK];
	struct csink_recorded rec;
	char why[160];
	size_t length;

	if (!nowhere)
		set_up();
	length = expand(data, size, bytes);
	if (csink_recorded_parse(bytes, length, &rec, why, sizeof(why)) == 0) {
		check_promises(&rec);
		csink_recorded_free(&rec);
	}
	make_profile(bytes, length, NULL, 0);
	if (((const struct csink_rec_header *)bytes)->seq & 3)
		make_later_profile(data, size);
	return 0;
}
