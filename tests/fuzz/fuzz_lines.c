/*
 * libFuzzer target: bytes as the line table of a unit and the section that its names are in. Some addresses are looked
 * up in it, twice with the same result; every file is named. Sanitizers judge, also of what is read behind a section.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/symbols/symbols_impl.h"
#include "tests/fuzz/fuzz_lines.h"

#define NR_WANTS 64
#define OUR_UNIT 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tried {
	struct csink_want wants[NR_WANTS];
	struct csink_found found[NR_WANTS];
};

/* The sections are copied, so that a byte read behind one of them is seen. */
static struct csink_bytes copy(const uint8_t *from, size_t nr)
{
	uint8_t *to = malloc(nr + !nr);

	if (!to)
		abort();
	if (nr)
		memcpy(to, from, nr);
	return (struct csink_bytes){to, nr};
}

static void cut_texts(struct csink_bytes *texts)
{
	const uint8_t *last = texts->nr ? memrchr(texts->at, 0, texts->nr) : NULL;

	texts->nr = last ? (size_t)(last - texts->at) + 1 : 0;
}

static void want(struct tried *t, const struct fuzz_lines_head *head)
{
	uint64_t address = head->first;

	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < NR_WANTS; i++, address += head->step) {
		if (i && address < t->wants[i - 1].address) /* they are sorted */
			address = t->wants[i - 1].address;
		t->wants[i].address = address;
		t->found[i].unit = head->others >> i % 16 & 1 ? OUR_UNIT + 1 : OUR_UNIT;
	}
}

static void check(const struct csink_profile *p, const struct tried *t)
{
	for (uint32_t i = 0; i < NR_WANTS; i++) {
		const struct csink_found *found = &t->found[i];

		if (found->file >= p->nr_strings || (found->unit != OUR_UNIT && (found->line || found->file)))
			abort();
	}
}

static void try(struct csink_profile *p, const struct csink_line_sections *sections, const struct fuzz_lines_head *head,
		struct tried *t)
{
	struct csink_batch batch = {.p = p, .wants = t->wants, .found = t->found, .nr = NR_WANTS};
	struct csink_lines *lines;
	int err;

	want(t, head);
	err = csink_lines_open(sections, 0, head->flags & 1 ? NULL : "/home/directory", &lines);
	if (err == -ENOTSUP)
		return;
	if (err)
		abort();
	csink_lines_find(lines, &batch, OUR_UNIT, 1, NR_WANTS - 1);
	for (uint64_t file = 0; file < 300; file++)
		csink_lines_file(lines, p, file);
	if (csink_lines_file(lines, p, UINT64_MAX))
		abort();
	csink_lines_close(lines);
	check(p, t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_line_sections sections;
	struct tried once, twice;
	struct fuzz_lines_head head;
	struct csink_profile *p;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	if (head.text_bytes > size)
		return 0;
	sections.str = sections.line_str = copy(data, head.text_bytes);
	sections.line = copy(data + head.text_bytes, size - head.text_bytes);
	cut_texts(&sections.line_str);
	cut_texts(&sections.str);
	p = csink_profile_create();
	if (!p)
		abort();
	try(p, &sections, &head, &once);
	try(p, &sections, &head, &twice);
	if (memcmp(once.found, twice.found, sizeof(once.found)))
		abort();
	csink_profile_free(p);
	free((void *)sections.line.at);
	free((void *)sections.line_str.at);
	return 0;
}
