/*
 * Folded stacks, a line for each: "outermost;...;innermost weight", as flame graph tools read them. A line holds one
 * weight: that of the type that was chosen. Processes are the outermost frames where there are several.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/base/text.h"
#include "launcher/output/calltree.h"
#include "launcher/output/export.h"
#include "launcher/output/thread_names.h"
#include "launcher/profile/profile.h"
#include "launcher/profile/short_paths.h"

struct folding {
	FILE *out;
	const struct csink_profile *p;
	struct csink_calltree *tree;
	struct csink_threads threads;
	struct line {
		const char *process;
		uint32_t node;
		int64_t weight;
	} * lines;
	uint32_t nr_lines;
	const char **files; /* by frame: as it is shown, of a function that shares its name with others; or NULL */
};

struct named {
	const struct csink_frame *frame;
	uint32_t index;
};

static int compare_names(const void *left, const void *right)
{
	const struct named *a = left, *b = right;

	return strcmp(a->frame->name, b->frame->name)
		       ?: strcmp(csink_base_name(a->frame->file), csink_base_name(b->frame->file));
}

/* Functions of an interpreter with one name, in files of one base name, get their files: each __init__.py has a
 * <module>. */
static int distinguish_names(struct folding *f)
{
	uint32_t nr = f->tree->nr_frames, i, k;
	CSINK_AUTO_FREE struct named *named = calloc((size_t)nr + 1, sizeof(*named));

	f->files = calloc((size_t)nr + 1, sizeof(*f->files));
	if (!named || !f->files)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		named[i] = (struct named){&f->tree->frames[i], i};
		f->files[i] = f->tree->frames[i].is_interpreted ? f->tree->frames[i].file : "";
	}
	csink_short_paths(f->files, nr);
	qsort(named, nr, sizeof(*named), compare_names);
	for (i = 0; i < nr; i = k) {
		for (k = i + 1; k < nr && !compare_names(&named[k], &named[i]);)
			k++;
		if (k - i == 1)
			f->files[named[i].index] = "";
	}
	return 0;
}

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;

	return strcmp(a->process, b->process) ?: CSINK_COMPARE(a->node, b->node);
}

static void put_line(struct folding *f, const struct line *line, bool with_process)
{
	const uint32_t *path = csink_calltree_path(f->tree, line->node);
	uint32_t depth = f->tree->calls.nodes[line->node].depth;
	const char *between = "";

	if (with_process) {
		csink_text_put(f->out, CSINK_TEXT_FOLDED, *line->process ? line->process : "[unknown]");
		between = ";";
	}
	if (!depth && !with_process)
		fputs("[no stack]", f->out);
	for (uint32_t i = 0; i < depth; i++, between = ";") {
		fputs(between, f->out);
		csink_text_put(f->out, CSINK_TEXT_FOLDED, f->tree->frames[path[i]].name);
		if (*f->files[path[i]]) {
			fputs(" (", f->out);
			csink_text_put(f->out, CSINK_TEXT_FOLDED, f->files[path[i]]);
			fputc(')', f->out);
		}
	}
	fprintf(f->out, " %" PRId64 "\n", line->weight);
}

/* The same stack of functions may stand in the profile several times: other addresses, threads, times. */
static void put_lines(struct folding *f)
{
	bool with_process = false;
	struct line *line;

	qsort(f->lines, f->nr_lines, sizeof(*f->lines), compare_lines);
	/* What is of no known process stands first, and makes no two of one. */
	for (uint32_t i = 1; i < f->nr_lines; i++)
		with_process |= *f->lines[i - 1].process && strcmp(f->lines[i].process, f->lines[i - 1].process);
	for (uint32_t i = 0; i < f->nr_lines; i++) {
		line = &f->lines[i];
		if (i + 1 < f->nr_lines && !compare_lines(line, line + 1))
			line[1].weight = csink_add(line[1].weight, line->weight);
		else if (line->weight)
			put_line(f, line, with_process);
	}
}

static int fold(struct folding *f, uint32_t type)
{
	const struct csink_profile *p = f->p;
	const struct csink_thread_row *row;
	int err;

	f->lines = calloc(CSINK_MAX(p->nr_samples, 1), sizeof(*f->lines));
	if (!f->lines)
		return -ENOMEM;
	err = csink_calltree_build(&f->tree, p) ?: distinguish_names(f) ?: csink_threads_build(&f->threads, p);
	if (err)
		return err;
	for (row = f->threads.rows; row < f->threads.rows + f->threads.nr_rows; row++) {
		f->lines[f->nr_lines++] = (struct line){
			.process = f->threads.threads[row->thread].process,
			.node = f->tree->of_stack[0][p->samples[row->sample].stack],
			.weight = csink_profile_values(p, row->sample)[type],
		};
	}
	put_lines(f);
	return 0;
}

int csink_export_folded(FILE *out, const struct csink_profile *p, uint32_t type)
{
	struct folding f = {.out = out, .p = p};
	int err = type < p->nr_types ? fold(&f, type) : 0;

	csink_threads_free(&f.threads);
	csink_calltree_free(f.tree);
	free(f.lines);
	free(f.files);
	return err;
}
