/* The launcher's hash: the published function, a key of each process's own, and no way to prepare equal slots. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/base/hash.h"
#include "launcher/base/table.h"
#include "tests/unit/tap.h"

enum { NR = 4096, SLOTS = 4 * NR };

/* With a key of zeros it is what Python 3.11 and Rust hash with: these are Python's, PYTHONHASHSEED=0. */
static void test_published(void)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} known[] = {
		{"a", 0x407448d2b89b1813ULL},
		{"abcdefg", 0x6db12aae9070f506ULL},
		{"abcdefgh", 0x3f7b849c0b8e35eaULL},
		{"countersink, a profiler", 0x3e9aa12afde91e0cULL},
	};
	uint64_t key[2] = {csink_hash_key[0], csink_hash_key[1]};
	unsigned char bytes[64];

	ok(key[0] && key[1], "a key is drawn before main");
	memset(csink_hash_key, 0, sizeof(key));
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		ok(csink_hash_bytes(known[i].text, strlen(known[i].text)) == known[i].hash, "SipHash-1-3 of \"%s\"",
		   known[i].text);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	ok(csink_hash_bytes(bytes, 64) == 0x75e05fd5bbc870c6ULL, "SipHash-1-3 of 64 bytes");
	memcpy(csink_hash_key, key, sizeof(key));
}

static void test_own_key(const char *self)
{
	uint64_t theirs[2] = {0};
	int fds[2], status;
	ssize_t got;
	pid_t pid;

	if (pipe(fds))
		exit(1);
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		execl(self, self, "key", (char *)NULL);
		_exit(1);
	}
	close(fds[1]);
	got = read(fds[0], theirs, sizeof(theirs));
	close(fds[0]);
	waitpid(pid, &status, 0);
	ok(got == sizeof(theirs) && theirs[0] != csink_hash_key[0] && theirs[1] != csink_hash_key[1],
	   "another process draws another key");
}

/* Of NR keys in 4 NR slots, random ones take about 0.88 NR different slots; prepared ones for a known hash a few. */
static void is_spread(const uint64_t *hashes, const char *what)
{
	static unsigned char taken[SLOTS];
	uint32_t nr = 0;

	memset(taken, 0, sizeof(taken));
	for (uint32_t i = 0; i < NR; i++) {
		nr += !taken[hashes[i] % SLOTS];
		taken[hashes[i] % SLOTS] = 1;
	}
	ok(nr > NR * 3 / 4, "%s take slots of their own: %u of %u", what, nr, NR);
}

/* What collided in each of the hashes that were here before. */
static void test_prepared(void)
{
	const uint64_t multiplier = 0x9e3779b97f4a7c15ULL, stop = 0xd6e8feb86659fd93ULL;
	static uint64_t hashes[NR];
	uint64_t inverse = multiplier;
	unsigned char text[16];

	for (int i = 0; i < 6; i++)
		inverse *= 2 - multiplier * inverse;
	for (uint64_t i = 0; i < NR; i++) {
		memcpy(text, &i, 8);
		memcpy(text + 8, &stop, 8);
		hashes[i] = csink_hash_bytes(text, sizeof(text));
	}
	is_spread(hashes, "texts that end in the word that emptied a product");
	for (uint64_t i = 0; i < NR; i++)
		hashes[i] = csink_hash_pair(i * inverse, 1);
	is_spread(hashes, "addresses that are multiples of a multiplier's inverse");
	for (uint64_t i = 0; i < NR; i++)
		hashes[i] = csink_hash_pair(i << 32, 1);
	is_spread(hashes, "addresses that are multiples of a table's size");
	for (uint64_t i = 0; i < NR; i++)
		hashes[i] = csink_hash_pair(i << 16, 0);
	is_spread(hashes, "process numbers that are multiples of a table's size");
}

/* Each number is put in twice: its second id replaces the first. */
static void test_table(void)
{
	struct csink_table table = {0};
	struct csink_slot *slot = NULL;
	uint32_t numbers[NR], nr_found = 0;
	int err = 0;

	for (uint32_t i = 0; i < NR && !err; i++) {
		uint32_t number = numbers[i] = i / 2 * 4096, hash = csink_hash_number(number);

		err = csink_table_room(&table);
		CSINK_TABLE_PROBE(table, hash, slot, numbers[id - 1] == number);
		csink_table_set(&table, slot, hash, i + 1);
	}
	ok(!err && table.nr == NR / 2 && table.nr <= table.mask / 2,
	   "a table counts an id that replaces another once, and is at most half full");
	for (uint32_t i = 1; i < NR; i += 2) {
		CSINK_TABLE_PROBE(table, csink_hash_number(numbers[i]), slot, numbers[id - 1] == numbers[i]);
		nr_found += slot->id == i + 1;
	}
	ok(nr_found == NR / 2, "a look-up finds the last id of each number: %u of %u", nr_found, NR / 2);
	csink_table_free(&table);
	ok(!table.slots && !table.nr, "a released table is empty");
}

/* Values of the authors' test suite. */
static void test_fnv(void)
{
	uint64_t foo = csink_hash_fnv(CSINK_HASH_FNV_BEGIN, "foo", 3);

	ok(csink_hash_fnv(CSINK_HASH_FNV_BEGIN, "a", 1) == 0xaf63dc4c8601ec8cULL &&
		   csink_hash_fnv(foo, "bar", 3) == 0x85944171f73967e8ULL,
	   "the hash for names of files is FNV-1a, also in parts");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return write(STDOUT_FILENO, csink_hash_key, sizeof(csink_hash_key)) != sizeof(csink_hash_key);
	test_published();
	test_fnv();
	test_own_key(argv[0]);
	test_prepared();
	test_table();
	return done();
}
