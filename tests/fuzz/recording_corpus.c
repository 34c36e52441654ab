/* recording_corpus DIR: seeds for fuzz_recording, in its short form: small recordings with every kind of entry. */
#include <stddef.h>

#include "tests/unit/record.h"

#define HEAD_BYTES offsetof(struct csink_rec_header, exe)

static const char *directory;

static void save(const struct record *r, const char *name)
{
	char path[4096];
	size_t rest = r->at - CSINK_REC_HEADER_BYTES;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, r->bytes, HEAD_BYTES) != (ssize_t)HEAD_BYTES ||
	    write(fd, r->bytes + CSINK_REC_HEADER_BYTES, rest) != (ssize_t)rest) {
		perror(path);
		exit(1);
	}
	close(fd);
	free(r->bytes);
}

static struct csink_rec_row *add_rows(struct record *r, uint32_t nr)
{
	uint64_t frames[] = {0x401000, 0x7f0000001000 | CSINK_FRAME_EXACT, 0x402000},
		 weights[CSINK_MAX_EVENTS] = {1000};
	uint32_t small[CSINK_MAX_EVENTS] = {3000};
	struct csink_rec_thread *thread = record_thread(r, 100, "main");
	struct csink_rec_row *row = NULL;

	record_module(r, "/fuzz/prog", 0, 0x400000, 0x410000)->load_ns = 1;
	record_module(r, "/fuzz/libc.so", 0x7f0000000000, 0x7f0000000000, 0x7f0000100000)->unload_ns = 5000;
	record_module(r, "[vdso]", 0x7ffff0000000, 0x7ffff0000000, 0x7ffff0002000)->is_vdso = 1;
	for (uint32_t i = 0; i < nr; i++) {
		struct csink_rec_node *chain = record_chain(r, 2000 + i, i % 4, frames);

		row = record_row(r, thread, chain, 0x401000 + i, 1, weights);
		record_cell(r, thread, chain, 0x402000 + i, 2, small);
	}
	return row;
}

static void add_moments(struct record *r, const struct csink_rec_row *row)
{
	struct csink_rec_timeline *line =
		record_entry(r, CSINK_ENTRY_TIMELINE, 0, sizeof(*line) + 4 * sizeof(line->moments[0]));

	line->nr = 3;
	line->base_ns = 1500;
	for (uint32_t i = 0; i < line->nr; i++)
		line->moments[i] = (struct csink_rec_moment){record_ref(r, row), i, 333};
}

int main(int argc, char **argv)
{
	/* Of processes that went on: what fuzz_recording.c makes of the number. */
	static const struct {
		const char *name;
		uint32_t seq;
	} later[] = {{"later", 1}, {"later-changed", 1 | 4 | 32 | 300 << 6}, {"cut", 2}};
	struct record r;

	if (argc != 2)
		return 2;
	directory = argv[1];
	r = record_new(4);
	save(&r, "empty");
	r = record_new(4);
	add_rows(&r, 1);
	save(&r, "row");
	r = record_new(4);
	add_moments(&r, add_rows(&r, 3));
	save(&r, "timeline");
	r = record_new(4);
	r.header->nr_events = CSINK_MAX_EVENTS;
	r.header->losses[CSINK_LOSS_BAD_STACK] = 3;
	r.header->unstored[0] = 7;
	for (uint32_t i = 1; i < CSINK_MAX_EVENTS; i++) {
		r.header->events[i].flags = 1u << i;
		snprintf(r.header->events[i].name, sizeof(r.header->events[i].name), "event-%u", i);
	}
	add_rows(&r, 2);
	save(&r, "events");
	r = record_new(4);
	record_note(&r, 1, "a warning: of something");
	record_note(&r, 0, "a note");
	record_spawn(&r, CSINK_SPAWN_STATIC, "/fuzz/static");
	add_rows(&r, 1);
	save(&r, "texts");
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		r = record_new(4);
		r.header->seq = later[i].seq;
		record_spawn(&r, CSINK_SPAWN_STATIC, "/fuzz/static");
		add_moments(&r, add_rows(&r, 3));
		save(&r, later[i].name);
	}
	return 0;
}
