/* See interpreters.h. */
#include "launcher/attach/interpreters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/attach/python_states.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/session/outside.h"
#include "preload/core/interpreter_signs.h"

#define UNREAD(language) language " frames are not read: attach reads those of CPython only"
#define OR_BY_MAP ", and names from /tmp/perf-PID.map if there is one"

static const struct {
	const char *sign;
	int type;
	const char *unread;
} others[] = {
	{CSINK_SIGN_PHP, STT_FUNC, UNREAD("PHP")},
	{CSINK_SIGN_PERL, STT_FUNC, UNREAD("Perl")},
	{CSINK_SIGN_RUBY, STT_OBJECT, UNREAD("Ruby")},
	{CSINK_SIGN_V8, STT_FUNC, UNREAD("JavaScript") OR_BY_MAP " (node --perf-basic-prof)"},
	{CSINK_SIGN_HOTSPOT, STT_OBJECT, UNREAD("Java") OR_BY_MAP},
};

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static const struct csink_object_file *looked_at; /* by copy() */

/* From the file, as it is before it is relocated: an address is the object's own. */
static bool copy(void *to, const void *from, size_t bytes)
{
	uint64_t at = (uintptr_t)from;
	const ElfW(Phdr) *segment = csink_object_file_segment(looked_at, at);

	return segment && bytes <= segment->p_filesz - (at - segment->p_vaddr) &&
	       csink_object_file_read(looked_at, to, bytes, segment->p_offset + (at - segment->p_vaddr));
}

static void find_python(struct csink_attach_object *object, const struct csink_elf_view *view)
{
	struct csink_python found;
	const ElfW(Phdr) * data;
	int is = csink_python_find(view, &found, &object->unread);

	if (is > 0 && !found.runtime)
		object->unread = "Python frames are not read: from outside only CPython 3.7 to 3.14 is supported";
	else if (is > 0)
		object->python = malloc(sizeof(*object->python));
	if (!object->python)
		return;
	data = csink_object_file_segment(looked_at, found.code_type);
	*object->python = (struct csink_attach_python){.file = object->python,
						       .object = found,
						       .data = data ? data->p_vaddr : 0,
						       .data_bytes = data ? data->p_filesz : 0};
}

void csink_attach_interpreter_find(struct csink_attach_object *object, const struct csink_object_file *file)
{
	struct csink_elf_view view;

	looked_at = file;
	if (!csink_elf_open(&view, 0, (const ElfW(Dyn) *)(uintptr_t)object->dynamic, copy))
		return;
	find_python(object, &view);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(others) && !object->python && !object->unread; i++) {
		if (csink_elf_look(&view, others[i].sign, others[i].type, NULL))
			object->unread = others[i].unread;
	}
}

void csink_attach_interpreter_guess(struct csink_attach_object *object)
{
	const char *name = csink_base_name(object->path);

	if (!strncmp(name, "python", 6) || !strncmp(name, "libpython", 9))
		object->unread = "Python frames are not read: the interpreter's file was deleted or replaced since the "
				 "program started (an upgrade?), or may not be opened: restart the program, or run "
				 "countersink as root";
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* A reason why frames are not read, and a process that it is of. */
struct unread {
	const char *reason;
	int32_t pid;
	uint32_t order; /* by the process's first image */
};

struct unreads {
	struct unread *at;
	uint32_t nr, cap;
};

static int compare_processes(const void *a, const void *b)
{
	const struct unread *left = a, *right = b;

	return CSINK_COMPARE((uintptr_t)left->reason, (uintptr_t)right->reason)
		       ?: CSINK_COMPARE(left->pid, right->pid)
			       ?: CSINK_COMPARE(left->order, right->order);
}

static int compare_order(const void *a, const void *b)
{
	const struct unread *left = a, *right = b;

	return CSINK_COMPARE(left->order, right->order);
}

/* A process has images, and an image objects, that share a reason: it is counted once for each. */
static void leave_once(struct unreads *all)
{
	uint32_t nr = 0;

	if (all->nr)
		qsort(all->at, all->nr, sizeof(*all->at), compare_processes);
	for (uint32_t i = 0; i < all->nr; i++) {
		if (!nr || all->at[nr - 1].reason != all->at[i].reason || all->at[nr - 1].pid != all->at[i].pid)
			all->at[nr++] = all->at[i];
	}
	all->nr = nr;
	if (nr)
		qsort(all->at, nr, sizeof(*all->at), compare_order);
}

/* Whether the library would read them, in a version that it knows. */
static bool is_read_inside(const char *unread)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(others); i++) {
		if (others[i].unread == unread)
			return true;
	}
	return false;
}

/* Add the reasons of an image. Without memory for one, that process is missing in the note. */
static void add_image(struct unreads *all, const struct csink_attach_image *image)
{
	for (uint32_t i = 0; i < image->nr_mappings; i++) {
		const char *reason = image->mappings[i].object->unread;

		if (reason)
			CSINK_APPEND(all->at, all->nr, all->cap, (struct unread){reason, image->pid, all->nr});
	}
}

/* Note the reason of the entry first with all its processes, and take out the entries that have it. */
static void note_reason(struct unreads *all, uint32_t first, bool in_run, struct csink_outside *outside)
{
	const char *reason = all->at[first].reason;
	char more[32] = "";
	uint32_t nr = 0;

	for (uint32_t i = first; i < all->nr; i++) {
		if (all->at[i].reason != reason)
			continue;
		all->at[i].reason = NULL;
		nr++;
	}
	if (nr > 1)
		snprintf(more, sizeof(more), " and %u more", nr - 1);
	csink_outside_note(outside, "%s%s (process %d%s)", reason,
			   is_read_inside(reason) && !in_run ? "; start the program with countersink to see them" : "",
			   all->at[first].pid, more);
}

void csink_attach_interpreters_note(const struct csink_attach_images *images, bool in_run,
				    struct csink_outside *outside)
{
	struct unreads all = {0};

	for (uint32_t i = 0; i < images->nr; i++) {
		const struct csink_attach_image *image = images->at[i];

		/* In a run, a process that the library is in records itself. */
		if (image->nr_rows && !image->is_left_out && !(in_run && image->is_injected))
			add_image(&all, image);
	}
	leave_once(&all);
	for (uint32_t i = 0; i < all.nr; i++) {
		if (all.at[i].reason)
			note_reason(&all, i, in_run, outside);
	}
	free(all.at);
}
