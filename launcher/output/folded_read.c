/* Reads folded stacks (folded.h): one pass, a line at a time. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/memory.h"
#include "launcher/base/message.h"
#include "launcher/output/folded.h"
#include "launcher/profile/profile.h"

#define MAX_FRAMES 65536 /* of one stack */
#define MAX_DIGITS 18    /* of a weight: always within 63 bits */

struct reader {
	struct csink_profile *p;
	uint32_t *stack; /* room for MAX_FRAMES, filled from its end: the innermost comes last in a line */
	uint32_t *locations;
	uint32_t nr_locations; /* by string id: the location of the function of that name; 0 none yet */
	char *why;
	size_t why_len;
};

bool csink_folded_is_text(const void *buf, size_t len)
{
	const unsigned char *at = buf, *end = at + CSINK_MIN(len, 4096);

	for (; at < end; at++) {
		if ((*at < ' ' && *at != '\t' && *at != '\n' && *at != '\r') || *at == 0x7f)
			return false;
	}
	return len > 0;
}

#define fail(r, line, what) csink_why(-EBADMSG, (r)->why, (r)->why_len, "line %" PRIu64 what, line)

/* All stacks with a function of that name meet at its one location. Returns 0 without memory. */
static uint32_t location_of(struct reader *r, const char *name, size_t len)
{
	csink_str_t id = csink_profile_strn(r->p, name, len);
	struct csink_profile_function function = {.name = id, .system_name = id};
	struct csink_profile_line line = {0};

	if (!id)
		return 0;
	if (CSINK_GROW_INDEX(r->locations, r->nr_locations, id))
		return 0;
	if (!r->locations[id]) {
		line.function = csink_profile_function_add(r->p, &function);
		r->locations[id] = csink_profile_location_add(r->p, 0, 0, &line, 1);
	}
	return r->locations[id];
}

/* The number that a line ends in; its decimals, which some tools write, are dropped. Returns the length of the stack
 * before it, 0 if there is no number. */
static size_t weight_of(const char *line, size_t len, int64_t *weight)
{
	size_t at = len, digits;

	while (at && line[at - 1] != ' ' && line[at - 1] != '\t')
		at--;
	for (digits = 0, *weight = 0; at + digits < len && line[at + digits] >= '0' && line[at + digits] <= '9';
	     digits++) {
		if (digits == MAX_DIGITS)
			return 0;
		*weight = *weight * 10 + (line[at + digits] - '0');
	}
	if (!digits)
		return 0;
	if (at + digits < len && line[at + digits] == '.')
		for (digits++; at + digits < len && line[at + digits] >= '0' && line[at + digits] <= '9';)
			digits++;
	if (at + digits != len)
		return 0;
	while (at && (line[at - 1] == ' ' || line[at - 1] == '\t'))
		at--;
	return at;
}

static int add_line(struct reader *r, const char *line, size_t len, uint64_t number)
{
	const char *end, *name = line;
	uint32_t at = MAX_FRAMES;
	int64_t weight;

	while (len && (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (!len || *line == '#')
		return 0;
	if (memchr(line, 0, len))
		return fail(r, number, " holds a NUL");
	len = weight_of(line, len, &weight);
	if (!len)
		return fail(r, number, " does not end in a number");
	for (end = line + len; name <= end; name += len + 1) {
		const char *semicolon = memchr(name, ';', end - name);

		len = (semicolon ? semicolon : end) - name;
		if (!len)
			continue;
		if (!at)
			return fail(r, number, " has more than 65536 functions");
		r->stack[--at] = location_of(r, name, len);
		if (!r->stack[at])
			return -ENOMEM;
	}
	csink_profile_sample_add(r->p, csink_profile_stack_add(r->p, r->stack + at, MAX_FRAMES - at), 0, &weight);
	return csink_profile_error(r->p);
}

static int parse(struct reader *r, const char *at, size_t len)
{
	const char *end = at + len, *newline;
	uint64_t number = 1;
	int err = csink_profile_type_add(r->p, "samples", "count") < 0 ? -ENOMEM : 0;

	for (; !err && at < end; at = newline + 1, number++) {
		newline = memchr(at, '\n', end - at);
		newline = newline ? newline : end;
		err = add_line(r, at, newline - at, number);
	}
	if (!err && !r->p->nr_samples)
		err = fail(r, (uint64_t)1, " and all others are empty");
	return err;
}

int csink_folded_parse(const void *buf, size_t len, struct csink_profile **out, char *why, size_t why_len)
{
	struct reader r = {.p = csink_profile_create(), .why = why, .why_len = why_len};
	int err = -ENOMEM;

	if (why_len)
		snprintf(why, why_len, "no memory");
	r.stack = malloc(MAX_FRAMES * sizeof(*r.stack));
	if (r.p && r.stack) {
		csink_profile_limit(r.p, csink_memory_bytes() / 2);
		err = parse(&r, buf, len);
	}
	if (r.p && csink_profile_is_over(r.p))
		snprintf(why, why_len, "it would take more than half of the memory there is");
	free(r.stack);
	free(r.locations);
	if (err)
		csink_profile_free(r.p);
	else
		*out = r.p;
	return err;
}
