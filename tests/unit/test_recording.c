/* The reader of recordings: what is whole is read, what is damaged or hostile is refused or counted, never believed. */
#include "launcher/collect/recording_read.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/record.h"
#include "tests/unit/tap.h"

static int parse(const struct record *r, struct csink_recorded *rec, char *why)
{
	return csink_recorded_parse(r->bytes, r->size, rec, why, 160);
}

static struct record sample_record(void)
{
	struct record r = record_new(8);
	uint64_t frames[] = {0x1010, 0x1020}, weight = 5000;
	struct csink_rec_thread *thread;
	struct csink_rec_node *chain;
	uint32_t small = 70;

	/* A row before what it refers to, as in another thread's extent. */
	struct csink_rec_row *early = record_row(&r, NULL, NULL, 0x1001, 1, &weight);

	record_module(&r, "/lib/one.so", 0x1000, 0x1000, 0x2000);
	thread = record_thread(&r, 101, "worker");
	chain = record_chain(&r, 1500, 2, frames);
	early->thread = record_ref(&r, thread);
	early->node = record_ref(&r, chain);
	record_row(&r, thread, chain, 0x1004, 3, &weight);
	record_cell(&r, thread, chain - 1, 0x712345678008, 2, &small);
	record_note(&r, 1, "be careful");
	record_spawn(&r, CSINK_SPAWN_STATIC, "/bin/static");
	return r;
}

static void test_whole(void)
{
	struct record r = sample_record();
	struct csink_recorded rec;
	char why[160];

	is_num(parse(&r, &rec, why), 0, "a whole recording is read");
	is_num(rec.nr_modules, 1, "a whole recording has its module");
	is_num(rec.nr_threads, 1, "a whole recording has its thread");
	is_num(rec.nr_nodes, 3, "a whole recording has its callers");
	is_num(rec.nr_rows, 3, "a whole recording has its rows");
	is_num(rec.nr_notes, 1, "a whole recording has its note");
	is_num(rec.nr_spawns, 1, "a whole recording has its spawn");
	is_num(rec.nr_damaged, 0, "a whole recording has no damaged entry");
	is_num(rec.rows[0].thread, 0, "a row before its thread's entry finds its thread");
	is_num(rec.rows[0].node, 2, "a row before its callers' entry finds its callers");
	is_num(rec.nodes[2].pc, 0x1010, "a recording's callers are innermost first");
	is_num(rec.nodes[rec.nodes[2].parent].pc, 0x1020, "the next caller is the parent");
	is_num(rec.nodes[rec.nodes[2].root].pc, 1500, "the root has the time of its address space");
	is_num(rec.weights[1], 5000, "the first row has its weight");
	is_num(rec.weights[2], 70, "the third row has its weight");
	is_num(rec.rows[2].leaf, 0x712345678008, "the third row has its leaf");
	is_num(rec.rows[2].nr_samples, 2, "the third row has its number of samples");
	is_num(rec.rows[2].thread, 0, "the third row has its thread");
	is_num(rec.rows[2].node, 1, "the third row has its callers");
	is_str(rec.modules[0]->path, "/lib/one.so", "a module has its path");
	csink_recorded_free(&rec);
	free(r.bytes);
}

static void test_file(void)
{
	char directory[] = "/tmp/csink-rec.XXXXXX", path[64], why[160] = "";
	struct record r = sample_record();
	struct csink_recorded rec, copy;
	struct rusage before, after;

	if (!mkdtemp(directory))
		abort();
	snprintf(path, sizeof(path), "%s/1.0.rec", directory);
	record_write(&r, directory, "1.0.rec");
	is_num(csink_recorded_read(path, &rec, why, sizeof(why)), 0, "a recording is read from a file");
	is_num(rec.nr_rows, 3, "a recording from a file has its rows");
	csink_recorded_free(&rec);

	if (truncate(path, CSINK_REC_HEADER_BYTES + 64))
		abort();
	is_num(csink_recorded_read(path, &rec, why, sizeof(why)), 0, "a truncated recording is read");
	ok(rec.is_cut, "a truncated recording is known to be truncated");
	csink_recorded_free(&rec);

	/* A sparse file that claims to be full: 1 GiB of nothing. */
	r.header->nr_blocks = CSINK_REC_MAX_BYTES / CSINK_REC_BLOCK;
	record_write(&r, directory, "1.0.rec");
	if (truncate(path, CSINK_REC_MAX_BYTES))
		abort();
	getrusage(RUSAGE_SELF, &before);
	is_num(csink_recorded_read(path, &rec, why, sizeof(why)), 0, "a gigabyte of holes is read");
	is_num(rec.nr_rows, 3, "the rows between the holes are read");
	csink_recorded_free(&rec);
	is_num(csink_recorded_copy(path, &copy, why, sizeof(why)), 0, "a gigabyte of holes is copied");
	is_num(csink_recorded_parse_copy(&copy, &rec, why, sizeof(why)), 0, "the copy is parsed");
	is_num(rec.nr_rows, 3, "the copy has the rows between the holes");
	csink_recorded_free(&rec);
	csink_recorded_free(&copy);
	getrusage(RUSAGE_SELF, &after);
	ok(after.ru_maxrss - before.ru_maxrss < 64 * 1024, "a gigabyte of holes takes less than 64 MiB of memory");

	if (truncate(path, 0))
		abort();
	is_num(csink_recorded_read(path, &rec, why, sizeof(why)), -EBADMSG, "an empty file is refused");
	is_str(why, "too short for a recording (0 bytes)", "an empty file is refused with the reason");
	unlink(path);
	is_num(csink_recorded_read(path, &rec, why, sizeof(why)), -ENOENT, "a missing file: ENOENT");
	if (mkfifo(path, 0600))
		abort();
	is_num(csink_recorded_read(path, &rec, why, sizeof(why)), -EBADMSG, "a pipe is refused, and not waited for");
	unlink(path);
	is_num(csink_recorded_read(directory, &rec, why, sizeof(why)), -EBADMSG, "a directory is refused");
	rmdir(directory);
	free(r.bytes);
}

static void test_header(void)
{
	struct record r = sample_record();
	struct csink_recorded rec;
	char why[160] = "";

	r.header->magic++;
	is_num(parse(&r, &rec, why), -EBADMSG, "another magic number is refused");
	is_str(why, "not a recording", "another magic number is reported as no recording");
	r.header->magic--;
	r.header->version = 1009;
	is_num(parse(&r, &rec, why), -EPROTO, "another version is refused");
	ok(strstr(why, "version 1009") != NULL, "another version is reported with its number");
	r.header->version = CSINK_REC_VERSION;
	r.header->nr_events = CSINK_MAX_EVENTS + 1;
	is_num(parse(&r, &rec, why), -EBADMSG, "too many events are refused");
	r.header->nr_events = 1;
	memset(r.header->comm, 'x', sizeof(r.header->comm));
	memset(r.header->cmdline, 'x', sizeof(r.header->cmdline));
	memset(r.header->events[0].name, 'x', sizeof(r.header->events[0].name));
	r.header->engine = 77;
	is_num(parse(&r, &rec, why), 0, "unterminated texts are read");
	is_num(strlen(rec.header.comm), 15, "unterminated texts are terminated");
	is_num(strlen(rec.header.events[0].name), 63, "an unterminated event name is terminated");
	is_num(rec.header.engine, CSINK_ENGINE_NONE, "an engine that does not exist is none");
	csink_recorded_free(&rec);
	r.header->nr_blocks = UINT32_MAX;
	is_num(parse(&r, &rec, why), 0, "more blocks than bytes are read as far as possible");
	ok(rec.is_cut && rec.nr_rows == 3, "more blocks than bytes are reported as truncated");
	csink_recorded_free(&rec);
	free(r.bytes);
}

/* Change one 32-bit word of the first entry of a type. */
static void test_entry(uint16_t type, size_t offset, uint32_t value, uint32_t damaged, const char *what)
{
	struct record r = sample_record();
	struct csink_entry *entry = (struct csink_entry *)(r.bytes + CSINK_REC_HEADER_BYTES + 8);
	struct csink_recorded rec;
	char why[160], title[160];

	while (entry->type != type)
		entry = (struct csink_entry *)((char *)entry + entry->bytes);
	memcpy((char *)entry + offset, &value, sizeof(value));
	is_num(parse(&r, &rec, why), 0, what);
	snprintf(title, sizeof(title), "%s: the number of damaged entries", what);
	is_num(rec.nr_damaged, damaged, title);
	csink_recorded_free(&rec);
	free(r.bytes);
}

static void test_entries(void)
{
	size_t parent = sizeof(struct csink_rec_nodes) + sizeof(struct csink_rec_node) +
			offsetof(struct csink_rec_node, parent);

	/* What is behind the end of an extent is lost with it: a row's callers, and the two other rows. */
	test_entry(CSINK_ENTRY_NODES, 0, 4, 2, "an entry shorter than its head ends the extent");
	test_entry(CSINK_ENTRY_NODES, 0, 20, 2, "an entry of a size that is no multiple of 8, too");
	test_entry(CSINK_ENTRY_NODES, 0, 0xfffffff8, 2, "an entry longer than the extent, too");
	test_entry(CSINK_ENTRY_NODES, offsetof(struct csink_rec_nodes, nr), 0xffffffff, 4,
		   "a count of more nodes than bytes is refused");
	test_entry(CSINK_ENTRY_NODES, parent, 0xffffffff, 4, "a node with a caller behind the end has none");
	test_entry(CSINK_ENTRY_NODES, parent, 1, 4, "a node with a header for a caller, too");
	test_entry(CSINK_ENTRY_CELLS, offsetof(struct csink_rec_cells, nr), 0x10000000, 1,
		   "a count of more cells than bytes is refused");
	test_entry(CSINK_ENTRY_ROW, offsetof(struct csink_rec_row, node), 0xffffffff, 1,
		   "a row with callers behind the end is kept without them");
	test_entry(CSINK_ENTRY_ROW, offsetof(struct csink_rec_row, node), 1, 1, "a row with a header for callers, too");
	test_entry(CSINK_ENTRY_ROW, offsetof(struct csink_rec_row, thread), 0xffffffff, 1,
		   "a row with a thread behind the end is kept without it");
	test_entry(CSINK_ENTRY_MODULE, offsetof(struct csink_rec_module, build_id_len), 0x0000ff, 1,
		   "a module with a build-id that is too long is left out");
	test_entry(CSINK_ENTRY_MODULE, offsetof(struct csink_rec_module, path), 0x41414141, 0,
		   "a path may be anything that ends");
	test_entry(CSINK_ENTRY_THREAD, 4, 999, 3, "an entry of a type to come is stepped over");
}

static void test_tables(void)
{
	struct record r = record_new(64);
	struct csink_recorded rec;
	char why[160];

	record_code(&r, CSINK_CODE_PYTHON_LINES, "f", "f.py", NULL, CSINK_CODE_MAX_TABLE);
	record_code(&r, CSINK_CODE_PYTHON_LINES, "g", "g.py", NULL, CSINK_CODE_MAX_TABLE + 1);
	is_num(parse(&r, &rec, why), 0, "a recording with long line tables is read");
	is_num(rec.nr_codes, 1, "a line table of as many bytes as the library writes is taken");
	is_num(rec.nr_damaged, 1, "a longer one counts as damage");
	csink_recorded_free(&rec);
	free(r.bytes);
}

/* Nodes that call each other in a ring, and more callers than any stack has. */
static void test_rings(void)
{
	static uint64_t frames[CSINK_MAX_DEPTH + 1];
	struct csink_rec_node *inner, *deep, *good;
	struct record r = record_new(32);
	struct csink_recorded rec;
	uint64_t weight = 1;
	char why[160];

	memset(frames, 1, sizeof(frames));
	good = record_chain(&r, 1, CSINK_MAX_DEPTH, frames);
	inner = record_chain(&r, 1, 3, frames);
	(inner - 2)->parent = record_ref(&r, inner);
	deep = record_chain(&r, 1, CSINK_MAX_DEPTH + 1, frames);
	record_row(&r, NULL, good, 0x1000, 1, &weight);
	record_row(&r, NULL, inner, 0x1000, 1, &weight);
	record_row(&r, NULL, deep, 0x1000, 1, &weight);
	is_num(parse(&r, &rec, why), 0, "callers in a ring are survived");
	ok(rec.rows[0].node != CSINK_RECORDED_NONE, "the deepest stack is taken");
	is_num(rec.nodes[rec.rows[0].node].depth, CSINK_MAX_DEPTH, "the deepest stack has its depth");
	is_num(rec.rows[1].node, CSINK_RECORDED_NONE, "a cycle of callers is refused");
	is_num(rec.rows[2].node, CSINK_RECORDED_NONE, "a deeper stack is refused");
	is_num(rec.nr_damaged, 2, "a cycle and a deeper stack count as damage");
	csink_recorded_free(&rec);
	free(r.bytes);
}

/* Any byte changed to anything: nothing crashes (run it with SAN=address,undefined). */
static void test_fuzz(void)
{
	struct record r = sample_record();
	size_t used = r.at, i, tries = 0, nr_cut = 0;
	struct csink_recorded rec;
	uint32_t seed = 1, k;
	unsigned char *copy = malloc(r.size);
	char why[160];

	for (i = 0; i < used * 4; i++) {
		memcpy(copy, r.bytes, r.size);
		for (k = 0; k < 1 + i % 3; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 8) % used] = seed >> 24;
		}
		if (!csink_recorded_parse(copy, r.size - i % 64 * 8, &rec, why, sizeof(why)))
			csink_recorded_free(&rec);
		tries++;
	}
	/* Every length, and some of those that end in the empty rest. */
	for (i = 0; i < r.size; i += i < used + 64 ? 1 : 61) {
		nr_cut++;
		if (!csink_recorded_parse(r.bytes, i, &rec, why, sizeof(why)))
			csink_recorded_free(&rec);
	}
	ok(tries == used * 4, "%zu damaged recordings and %zu cut ones are survived", tries, nr_cut);
	free(copy);
	free(r.bytes);
}

int main(void)
{
	test_whole();
	test_file();
	test_header();
	test_entries();
	test_tables();
	test_rings();
	test_fuzz();
	return done();
}
