/* Why frames of attached interpreters are not read: a note for each reason, in which each process counts once. */
#include "launcher/attach/interpreters.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/tap.h"

#define NR_REASONS 40

static char reasons[NR_REASONS][16];
static struct csink_attach_object objects[NR_REASONS];
static struct csink_attach_mapping mappings[NR_REASONS];
static struct csink_attach_image images[3 * NR_REASONS], *pointers[3 * NR_REASONS];
static struct csink_attach_images all = {.at = pointers};

/* An image of a process with one object, whose frames are not read for this reason. */
static void add(int32_t pid, uint32_t reason)
{
	images[all.nr] =
		(struct csink_attach_image){.pid = pid, .nr_rows = 1, .mappings = &mappings[reason], .nr_mappings = 1};
	pointers[all.nr] = &images[all.nr];
	all.nr++;
}

static bool has_note(const struct csink_outside *outside, const char *text)
{
	for (uint32_t i = 0; i < outside->nr_notes; i++) {
		if (!strcmp(outside->notes[i], text))
			return true;
	}
	return false;
}

static void forget(struct csink_outside *outside)
{
	for (uint32_t i = 0; i < outside->nr_notes; i++)
		free(outside->notes[i]);
	free(outside->notes);
	memset(outside, 0, sizeof(*outside));
	all.nr = 0;
}

int main(void)
{
	struct csink_outside outside = {0};

	for (uint32_t i = 0; i < NR_REASONS; i++) {
		snprintf(reasons[i], sizeof(reasons[i]), "reason %u", i);
		objects[i].unread = reasons[i];
		mappings[i].object = &objects[i];
	}

	/* Each of two processes executes another program in turn. */
	for (int i = 0; i < 4; i++)
		add(i % 2 ? 200 : 300, 0);
	add(200, 1);
	csink_attach_interpreters_note(&all, false, &outside);
	is_num(outside.nr_notes, 2, "a note for each reason");
	ok(has_note(&outside, "reason 0 (process 300 and 1 more)"), "a process that has several images counts once");
	ok(has_note(&outside, "reason 1 (process 200)"), "one process for another reason");
	forget(&outside);

	for (uint32_t i = 0; i < NR_REASONS; i++)
		add(100 + (int32_t)i, i);
	csink_attach_interpreters_note(&all, false, &outside);
	is_num(outside.nr_notes, NR_REASONS, "as many notes as there are reasons");
	ok(has_note(&outside, "reason 39 (process 139)"), "the last one has its own process");
	forget(&outside);

	csink_attach_interpreters_note(&all, false, &outside);
	is_num(outside.nr_notes, 0, "no note where there is no such process");
	return done();
}
