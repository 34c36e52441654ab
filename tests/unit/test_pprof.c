/* pprof files: what is written is read back; what is damaged or made to hurt is refused. */
#include "launcher/output/pprof.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "launcher/profile/profile.h"
#include "tests/unit/tap.h"

/* Two types, a mapping, an inlined function, labels of both kinds, comments, and values that need all ten bytes. */
static struct csink_profile *sample_profile(void)
{
	struct csink_profile *p = csink_profile_create();
	struct csink_profile_mapping mapping = {.start = 0x1000, .limit = 0x2000, .offset = 0x40, .has_functions = 1};
	struct csink_profile_function outer = {.name = csink_profile_str(p, "outer")},
				      inner = {.name = csink_profile_str(p, "ns::inner")};
	struct csink_profile_line lines[2] = {{.line = 7}, {.line = 300}};
	struct csink_profile_label labels[2] = {
		{.key = csink_profile_str(p, "pid"), .num = 42},
		{.key = csink_profile_str(p, "thread"), .str = csink_profile_str(p, "main")}};
	uint32_t stack[200], i;

	csink_profile_type_add(p, "samples", "count");
	csink_profile_type_add(p, "task-clock", "nanoseconds");
	p->default_type = 1;
	mapping.file = csink_profile_str(p, "/bin/prog");
	mapping.build_id = csink_profile_str(p, "abcdef0123");
	inner.system_name = csink_profile_str(p, "_ZN2ns5innerEv");
	inner.file = csink_profile_str(p, "/src/inner.cc");
	inner.start_line = 5;
	inner.language = csink_profile_str(p, "Java");
	lines[0].function = csink_profile_function_add(p, &inner);
	lines[1].function = csink_profile_function_add(p, &outer);
	csink_profile_mapping_add(p, &mapping);
	stack[0] = csink_profile_location_add(p, 1, 0x1010, lines, 2);
	for (i = 1; i < 200; i++) /* a stack that needs two bytes for its length */
		stack[i] = csink_profile_location_add(p, 1, 0x1100 + i, lines + 1, 1);
	csink_profile_sample_add(p, csink_profile_stack_add(p, stack, 200), csink_profile_labels_add(p, labels, 2),
				 (int64_t[]){3, 3000000});
	csink_profile_sample_add(p, csink_profile_stack_add(p, stack, 1), 0, (int64_t[]){-1, INT64_MAX});
	csink_profile_fact_add(p, "command", "%s", "prog\n--evil\033[31m");
	csink_profile_fact_add(p, "note", "%s", "one");
	csink_profile_fact_add(p, "note", "%s", "two");
	p->time_ns = 1700000000000000000;
	p->duration_ns = 5;
	p->period = 1000000;
	p->period_type = p->types[1];
	return p;
}

static void same_profile(const struct csink_profile *a, const struct csink_profile *b)
{
	const struct csink_profile_location *location = &b->locations[1];
	const struct csink_profile_function *function = &b->functions[b->lines[location->first_line].function];

	is_num(b->nr_types, a->nr_types, "pprof: the number of types is read back");
	is_num(b->default_type, a->default_type, "pprof: the default type is read back");
	is_num(b->nr_samples, a->nr_samples, "pprof: the number of samples is read back");
	is_num(b->values[1], 3000000, "pprof: a value is read back");
	is_num(b->values[2], -1, "pprof: a negative value is read back");
	is_num(b->values[3], INT64_MAX, "pprof: the largest value is read back");
	is_num(b->stacks[b->samples[0].stack].nr, 200, "pprof: a stack of 200 frames is read back");
	is_num(b->nr_locations, a->nr_locations, "pprof: the number of locations is read back");
	is_num(location->nr_lines, 2, "pprof: a location's inlined lines are read back");
	is_str(csink_profile_text(b, function->name), "ns::inner", "pprof: the innermost inlined function comes first");
	is_str(csink_profile_text(b, function->system_name), "_ZN2ns5innerEv", "pprof: a mangled name is read back");
	is_str(csink_profile_text(b, function->file), "/src/inner.cc", "pprof: a function's file is read back");
	is_num(function->start_line, 5, "pprof: a function's start line is read back");
	is_str(csink_profile_text(b, function->language), "Java", "pprof: a function's language is read back");
	is_num(b->lines[location->first_line].line, 7, "pprof: a line is read back");
	is_str(csink_profile_text(b, b->mappings[1].build_id), "abcdef0123", "pprof: a build-id is read back");
	is_num(b->mappings[1].offset, 0x40, "pprof: a mapping's offset is read back");
	is_num(b->mappings[1].has_functions, 1, "pprof: a mapping's flag is read back");
	is_num(b->label_sets[b->samples[0].labels].nr, 2, "pprof: a sample's labels are read back");
	is_num(b->labels[b->label_sets[b->samples[0].labels].first].num, 42, "pprof: a label's number is read back");
	is_str(csink_profile_fact(b, "command", 0), "prog --evil [31m", "pprof: a comment is read back, on one line");
	is_str(csink_profile_fact(b, "note", 1), "two", "pprof: the second comment of a key is read back");
	is_str(csink_profile_fact(b, "note", 2), NULL, "pprof: the number of comments of a key is read back");
	is_num(b->time_ns, a->time_ns, "pprof: the time is read back");
	is_num(b->period, a->period, "pprof: the period is read back");
}

static void test_round_trip(const char *directory)
{
	struct csink_profile *p = sample_profile(), *back = NULL;
	char path[256], old[270], why[160];
	struct stat st;
	void *buf;
	size_t len;

	snprintf(path, sizeof(path), "%s/x.pb.gz", directory);
	snprintf(old, sizeof(old), "%s.old", path);
	is_num(csink_pprof_write(p, path), 0, "a profile is written");
	is_num(csink_pprof_read(path, &back, why, sizeof(why)), 0, "a profile is read");
	same_profile(p, back);
	csink_profile_free(back);
	is_num(csink_pprof_encode(p, &buf, &len), 0, "a profile is encoded without gzip");
	is_num(csink_pprof_parse(buf, len, &back, why, sizeof(why)), 0, "a profile without gzip is parsed");
	csink_profile_free(back);
	free(buf);

	umask(022);
	is_num(csink_pprof_write(p, path), 0, "a profile is written over an older file");
	ok(!stat(old, &st), "a replaced profile keeps its other link");
	ok(!stat(path, &st) && (st.st_mode & 0777) == 0644, "a replaced profile has the mode of a new file");
	is_num(csink_pprof_write(p, path), 0, "a profile is written over an existing .old file");
	is_num(csink_pprof_write(p, directory), -EISDIR, "a directory cannot be written: EISDIR");
	snprintf(path, sizeof(path), "%s/no/x.pb.gz", directory);
	is_num(csink_pprof_write(p, path), -ENOENT, "a file in a missing directory cannot be written: ENOENT");
	is_num(csink_pprof_write(p, "/dev/full"), -ENOSPC, "a full device is an error");
	snprintf(path, sizeof(path), "%s/link", directory);
	if (symlink("x.pb.gz", path))
		abort();
	is_num(csink_pprof_write(p, path), 0, "a link is written through");
	ok(!lstat(path, &st) && S_ISLNK(st.st_mode), "a link that was written through stays a link");
	csink_profile_free(p);
}

static void refuse(const void *buf, size_t len, const char *want, const char *what)
{
	struct csink_profile *p = NULL;
	char why[160] = "";
	int err = csink_pprof_parse(buf, len, &p, why, sizeof(why));

	is_num(err, -EBADMSG, what);
	if (want)
		is_str(why, want, "a refused profile's reason is reported");
	if (!err)
		csink_profile_free(p);
}

static size_t gzip(const void *in, size_t len, unsigned char *out, size_t size)
{
	z_stream z = {.next_in = (void *)in, .avail_in = len, .next_out = out, .avail_out = size};

	deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	deflate(&z, Z_FINISH);
	len = size - z.avail_out;
	deflateEnd(&z);
	return len;
}

static void test_refused(void)
{
	static const unsigned char no_types[] = {0x32, 0x00};
	static const unsigned char bad_string[] = {0x0a, 0x02, 0x08, 0x05, 0x32, 0x00};
	static const unsigned char bad_sample[] = {0x0a, 0x00, 0x32, 0x00, 0x12, 0x03, 0x0a, 0x01, 0x09};
	static const unsigned char twice[] = {0x0a, 0x00, 0x32, 0x00, 0x2a, 0x02, 0x08, 0x01, 0x2a, 0x02, 0x08, 0x01};
	static const unsigned char few_values[] = {0x0a, 0x00, 0x32, 0x00, 0x12, 0x00};
	static const unsigned char many_values[] = {0x0a, 0x00, 0x32, 0x00, 0x12, 0x04, 0x12, 0x02, 0x01, 0x01};
	unsigned char packed[256];
	size_t len;

	refuse("", 0, "the file is empty", "nothing");
	refuse("hello, world\n", 13, NULL, "a text");
	refuse("\x7f"
	       "ELF\2\1\1",
	       7, NULL, "an ELF file");
	refuse("PERFILE2xxxxxxxx", 16, NULL, "a perf.data file");
	refuse("\x1f\x8b", 2, "truncated gzip stream", "a gzip head");
	refuse("\x1f\x8b\x08garbage, no deflate at all", 28, NULL, "a gzip head and garbage");
	refuse(no_types, sizeof(no_types), "not a pprof profile", "a profile without sample types");
	refuse(bad_string, sizeof(bad_string), "a damaged sample type", "a string that is not there");
	refuse(bad_sample, sizeof(bad_sample), "a damaged sample", "a location that is not there");
	refuse(few_values, sizeof(few_values), "a damaged sample", "a sample with too few values");
	refuse(many_values, sizeof(many_values), "a damaged sample", "a sample with too many values");
	refuse(twice, sizeof(twice), "an id that is used twice", "an id that comes twice");
	len = gzip("garbage, but packed", 19, packed, sizeof(packed));
	refuse(packed, len, NULL, "packed garbage");
	refuse(packed, len - 1, "truncated gzip stream", "a gzip stream without its last byte");
	packed[len - 5] ^= 1;
	refuse(packed, len, "damaged gzip stream", "a gzip stream with a wrong checksum");
}

/* A megabyte that unpacks to a gigabyte. */
static void test_bomb(void)
{
	size_t size = 2 << 20, zeros_len = 1 << 20, i;
	unsigned char *out = malloc(size), *zeros = calloc(1, zeros_len);
	z_stream z = {.next_out = out, .avail_out = size};

	deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	for (i = 0; i < 1024; i++) {
		z.next_in = zeros;
		z.avail_in = zeros_len;
		deflate(&z, i == 1023 ? Z_FINISH : Z_NO_FLUSH);
	}
	refuse(out, size - z.avail_out, "unpacked it is larger than 128 MiB, far more than a profile of its size",
	       "a bomb");
	deflateEnd(&z);
	free(out);
	free(zeros);
}

/* Any byte changed, any length: nothing crashes (run it with SAN=address,undefined). */
static void test_fuzz(void)
{
	struct csink_profile *p = sample_profile(), *back;
	uint32_t seed = 7, k, read = 0;
	unsigned char *copy;
	char why[160];
	void *buf;
	size_t len, i;

	csink_pprof_encode(p, &buf, &len);
	copy = malloc(len);
	for (i = 0; i < 20000; i++) {
		memcpy(copy, buf, len);
		for (k = 0; k < 1 + i % 4; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 8) % len] = seed >> 24;
		}
		if (!csink_pprof_parse(copy, len - i % 32, &back, why, sizeof(why))) {
			csink_profile_free(back);
			read++;
		}
	}
	for (i = 0; i < len; i++) {
		if (!csink_pprof_parse(buf, i, &back, why, sizeof(why)))
			csink_profile_free(back);
	}
	ok(read < 20000, "20000 damaged profiles are survived (%u made sense)", read);
	free(copy);
	free(buf);
	csink_profile_free(p);
}

/* Ids need not be dense or in order, lists need not be packed: others write so. */
static void test_others(void)
{
	static const unsigned char bytes[] = {
		0x12, 0x09, 0x08, 0xe8, 0x07, 0x08, 0x07, 0x10, 0x05, 0x10, 0x06, /* sample: locations 1000, 7; values
										     5, 6 */
		0x22, 0x07, 0x08, 0xe8, 0x07, 0x22, 0x02, 0x08, 0x63,             /* location 1000 in function 99 */
		0x22, 0x06, 0x08, 0x07, 0x22, 0x02, 0x08, 0x03,                   /* location 7 in function 3 */
		0x2a, 0x04, 0x08, 0x63, 0x10, 0x02, 0x2a, 0x04, 0x08, 0x03, 0x10, 0x03, /* functions 99 "b", 3 "c" */
		0x0a, 0x02, 0x08, 0x01, 0x0a, 0x00,                                     /* types "a", "" */
		0x32, 0x00, 0x32, 0x01, 'a',  0x32, 0x01, 'b',  0x32, 0x01, 'c',  0xf8,
		0x01, 0x01, 0xfd, 0x01, 1,    2,    3,    4, /* unknown fields, a number and 4 bytes */
	};
	struct csink_profile *p = NULL;
	char why[160] = "";

	if (!is_num(csink_pprof_parse(bytes, sizeof(bytes), &p, why, sizeof(why)), 0,
		    "a profile in another order is read")) {
		printf("# %s\n", why);
		return;
	}
	is_num(p->nr_samples, 1, "a profile in another order has its sample");
	is_num(p->values[1], 6, "a profile in another order has its values");
	is_str(csink_profile_text(p, p->functions[p->lines[p->locations[p->stack_ids[0]].first_line].function].name),
	       "b", "a profile in another order has its leaf");
	is_num(p->default_type, 1, "the last type is the default");
	csink_profile_free(p);
}

int main(void)
{
	char directory[] = "/tmp/csink-pprof.XXXXXX", command[64];

	if (!mkdtemp(directory))
		abort();
	test_round_trip(directory);
	test_refused();
	test_bomb();
	test_fuzz();
	test_others();
	snprintf(command, sizeof(command), "rm -r %s", directory);
	if (system(command))
		return 1;
	return done();
}
