/*
 * The Firefox Profiler's processed format, version 58 (its docs-developer/CHANGELOG-formats.md; the profiler upgrades
 * what is older than itself). A thread there has tables of its own; frames, functions and stacks are those of the call
 * tree that the thread's samples use.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"
#include "launcher/output/calltree.h"
#include "launcher/output/export.h"
#include "launcher/output/thread_names.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

#define FORMAT_VERSION 58
#define MARKER_VERSION 27 /* of the browser's own format */
#define NO_INDEX UINT32_MAX

struct firefox {
	FILE *out;
	const struct csink_profile *p;
	uint32_t type;
	struct csink_calltree *tree;
	const uint32_t *nodes; /* of each stack */
	struct csink_threads threads;
	struct csink_profile *texts; /* the list of strings, by id */
	struct csink_profile
		*files; /* the list of sources, which all threads share: the id of a file's name is its index + 1 */
	struct csink_profile *modules; /* likewise the thread's list of resources */
	uint32_t *stack_of_node;       /* in the thread at hand; NO_INDEX: none */
	uint32_t *func_of_frame;
	uint32_t *stacks, nr_stacks; /* nodes, in order of the thread's stack table */
	uint32_t *funcs, nr_funcs;   /* frames, in order of its function table */
};

/* "key":[value,...], of values of i, with null for what is not known. */
#define PUT_KNOWN(f, key, nr, is_known, fmt, value)                                                                    \
	do {                                                                                                           \
		fprintf((f)->out, "\"%s\":[", key);                                                                    \
		for (uint32_t i = 0; i < (nr); i++) {                                                                  \
			if (i)                                                                                         \
				putc(',', (f)->out);                                                                   \
			if (is_known)                                                                                  \
				fprintf((f)->out, fmt, value);                                                         \
			else                                                                                           \
				fputs("null", (f)->out);                                                               \
		}                                                                                                      \
		fputs("],", (f)->out);                                                                                 \
	} while (0)

#define PUT_LIST(f, key, nr, fmt, value) PUT_KNOWN(f, key, nr, true, fmt, value)

/* A text behind its key, which is written as it is. */
static void put_text(struct firefox *f, const char *key, const char *text)
{
	fputs(key, f->out);
	csink_json_quote(f->out, text, false);
}

/* ---- the tables of a thread ---- */

/* The index of a text in a list, which it is added to; its texts are in the list of strings, too. NO_INDEX: "". */
static uint32_t index_in(struct firefox *f, struct csink_profile *list, const char *text)
{
	csink_profile_str(f->texts, text);
	return csink_profile_str(list, text) - 1;
}

/* The strings of a list, by their indices. */
#define PUT_TEXTS(f, key, list)                                                                                        \
	PUT_LIST(f, key, (list)->nr_strings - 1, "%u", csink_profile_str((f)->texts, (list)->strings[i + 1].text))

static void take_node(struct firefox *f, uint32_t node)
{
	uint32_t frame;

	/* Parents have smaller numbers in the table: the path is taken from the root down. */
	for (uint32_t at = node; at && f->stack_of_node[at] == NO_INDEX; at = f->tree->calls.nodes[at].parent) {
		f->stack_of_node[at] = 0;
		f->stacks[f->nr_stacks++] = at;
		frame = f->tree->calls.nodes[at].row;
		if (f->func_of_frame[frame] == NO_INDEX) {
			f->func_of_frame[frame] = f->nr_funcs;
			f->funcs[f->nr_funcs++] = frame;
			index_in(f, f->modules, csink_base_name(f->tree->frames[frame].module));
			index_in(f, f->files, f->tree->frames[frame].file);
		}
	}
}

static int compare_nodes(const void *left, const void *right)
{
	return CSINK_COMPARE(*(const uint32_t *)left, *(const uint32_t *)right);
}

static int take_thread(struct firefox *f, const struct csink_thread *thread)
{
	const struct csink_thread_row *row = f->threads.rows + thread->first_row;

	memset(f->stack_of_node, 0xff, f->tree->calls.nr_nodes * sizeof(*f->stack_of_node));
	memset(f->func_of_frame, 0xff, f->tree->nr_frames * sizeof(*f->func_of_frame));
	csink_profile_free(f->modules);
	f->modules = csink_profile_create();
	if (!f->modules)
		return -ENOMEM;
	f->nr_stacks = f->nr_funcs = 0;
	for (uint32_t i = 0; i < thread->nr_rows; i++)
		take_node(f, f->nodes[f->p->samples[row[i].sample].stack]);
	qsort(f->stacks, f->nr_stacks, sizeof(*f->stacks), compare_nodes);
	for (uint32_t i = 0; i < f->nr_stacks; i++)
		f->stack_of_node[f->stacks[i]] = i;
	return csink_profile_error(f->modules);
}

static void put_stacks(struct firefox *f)
{
	const struct csink_tree_node *nodes = f->tree->calls.nodes;

	fputs("\"stackTable\":{", f->out);
	PUT_LIST(f, "frame", f->nr_stacks, "%u", f->func_of_frame[nodes[f->stacks[i]].row]);
	PUT_KNOWN(f, "prefix", f->nr_stacks, nodes[f->stacks[i]].parent, "%u",
		  f->stack_of_node[nodes[f->stacks[i]].parent]);
	fprintf(f->out, "\"length\":%u},\n", f->nr_stacks);
}

/* A frame for each function: category 1 is code, 2 what was accounted and not sampled. */
static void put_functions(struct firefox *f)
{
	const struct csink_frame *frames = f->tree->frames;
	uint32_t nr = f->nr_funcs;

	fputs("\"frameTable\":{", f->out);
	PUT_LIST(f, "address", nr, "%d", -1);
	PUT_LIST(f, "inlineDepth", nr, "%d", 0);
	PUT_LIST(f, "category", nr, "%d", frames[f->funcs[i]].is_pseudo ? 2 : 1);
	PUT_LIST(f, "subcategory", nr, "%d", 0);
	PUT_LIST(f, "func", nr, "%u", i);
	PUT_LIST(f, "nativeSymbol", nr, "%s", "null");
	PUT_LIST(f, "innerWindowID", nr, "%s", "null");
	PUT_LIST(f, "line", nr, "%s", "null");
	PUT_LIST(f, "column", nr, "%s", "null");
	fprintf(f->out, "\"length\":%u},\n\"funcTable\":{", nr);
	PUT_LIST(f, "name", nr, "%u", csink_profile_str(f->texts, frames[f->funcs[i]].name));
	PUT_LIST(f, "isJS", nr, "%s", "false");
	PUT_LIST(f, "relevantForJS", nr, "%s", "false");
	PUT_LIST(f, "resource", nr, "%d", (int)index_in(f, f->modules, csink_base_name(frames[f->funcs[i]].module)));
	PUT_KNOWN(f, "source", nr, *frames[f->funcs[i]].file, "%u", index_in(f, f->files, frames[f->funcs[i]].file));
	PUT_KNOWN(f, "lineNumber", nr, frames[f->funcs[i]].start_line > 0, "%" PRId64, frames[f->funcs[i]].start_line);
	PUT_LIST(f, "columnNumber", nr, "%s", "null");
	fprintf(f->out, "\"length\":%u},\n\"resourceTable\":{", nr);
	nr = f->modules->nr_strings - 1;
	PUT_LIST(f, "lib", nr, "%s", "null");
	PUT_TEXTS(f, "name", f->modules);
	PUT_LIST(f, "host", nr, "%s", "null");
	PUT_LIST(f, "type", nr, "%d", 1);
	fprintf(f->out, "\"length\":%u},\n", nr);
	fputs("\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},\n",
	      f->out);
}

/* ---- samples ---- */

static bool is_time(const struct firefox *f)
{
	return !strcmp(csink_profile_text(f->p, f->p->types[f->type].unit), "nanoseconds");
}

/* Is it CPU time, so that the profiler may draw how busy the thread was? */
static bool is_cpu(const struct firefox *f)
{
	const char *name = csink_profile_fact(f->p, CSINK_FACT_CPU_TYPE, 0);

	return name && !strcmp(name, csink_profile_text(f->p, f->p->types[f->type].name)) && is_time(f);
}

/* Milliseconds from the start of the profile. Without times, samples follow each other as long as they weigh. */
static void put_times(struct firefox *f, const struct csink_thread *thread)
{
	const struct csink_thread_row *row = f->threads.rows + thread->first_row;
	int64_t first = f->threads.first_ns, at = 0;

	fputs("\"time\":[", f->out);
	for (uint32_t i = 0; i < thread->nr_rows; i++) {
		if (first != CSINK_NO_TIME)
			at = row[i].time_ns == CSINK_NO_TIME ? 0 : row[i].time_ns - first;
		fprintf(f->out, i ? ",%.6f" : "%.6f", (double)at / 1e6);
		if (first == CSINK_NO_TIME)
			at = csink_add(at, is_time(f) ? csink_profile_values(f->p, row[i].sample)[f->type] : 1000000);
	}
	fputs("],", f->out);
}

static void put_samples(struct firefox *f, const struct csink_thread *thread)
{
	const struct csink_thread_row *row = f->threads.rows + thread->first_row;
	const struct csink_profile_sample *samples = f->p->samples;
	uint32_t nr = thread->nr_rows;

	fputs("\"samples\":{", f->out);
	PUT_KNOWN(f, "stack", nr, f->nodes[samples[row[i].sample].stack], "%u",
		  f->stack_of_node[f->nodes[samples[row[i].sample].stack]]);
	put_times(f, thread);
	if (is_time(f))
		PUT_LIST(f, "weight", nr, "%.6f", (double)csink_profile_values(f->p, row[i].sample)[f->type] / 1e6);
	else
		PUT_LIST(f, "weight", nr, "%" PRId64, csink_profile_values(f->p, row[i].sample)[f->type]);
	if (is_cpu(f))
		PUT_LIST(f, "threadCPUDelta", nr, "%" PRId64, csink_profile_values(f->p, row[i].sample)[f->type]);
	fprintf(f->out, "\"weightType\":\"%s\",\"length\":%u},\n", is_time(f) ? "tracing-ms" : "samples", nr);
}

static int put_thread(struct firefox *f, uint32_t index)
{
	const struct csink_thread *thread = &f->threads.threads[index];
	const char *name = *thread->thread ? thread->thread : *thread->process ? thread->process : "all threads";
	int err = take_thread(f, thread);

	if (err)
		return err;
	fputs("{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
	      "\"unregisterTime\":null,\"pausedRanges\":[],",
	      f->out);
	put_text(f, "\"name\":", name);
	put_text(f, ",\"processName\":", *thread->process ? thread->process : "process");
	fprintf(f->out, ",\"isMainThread\":%s,\"pid\":\"%d\",\"tid\":%d,\n",
		thread->pid == thread->tid ? "true" : "false", thread->pid, thread->tid);
	put_samples(f, thread);
	fputs("\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],\"category\":[],"
	      "\"length\":0},\n",
	      f->out);
	put_stacks(f);
	put_functions(f);
	fputs("\"usedInnerWindowIDs\":[]}", f->out);
	return 0;
}

/* ---- the profile ---- */

static void put_meta(struct firefox *f)
{
	const char *command = csink_profile_fact(f->p, CSINK_FACT_COMMAND, 0);
	const char *kernel = csink_profile_fact(f->p, CSINK_FACT_KERNEL, 0);
	const char *cpu = csink_profile_fact(f->p, CSINK_FACT_CPU, 0);

	fprintf(f->out,
		"{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":%.6f,\"startTime\":%.3f,"
		"\"processType\":0,\"stackwalk\":1,\"debug\":false,\"symbolicated\":true,\"markerSchema\":[],"
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},",
		MARKER_VERSION, FORMAT_VERSION, (double)CSINK_MAX(f->p->period, 1) / 1e6,
		f->threads.first_ns == CSINK_NO_TIME ? (double)f->p->time_ns / 1e6 : (double)f->threads.first_ns / 1e6);
	fputs("\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
	      "{\"name\":\"Code\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
	      "{\"name\":\"Not sampled\",\"color\":\"orange\",\"subcategories\":[\"Other\"]}],",
	      f->out);
	put_text(f, "\"product\":", command ? command : "countersink");
	put_text(f, ",\"importedFrom\":", "countersink " CSINK_VERSION);
	put_text(f, ",\"oscpu\":", kernel ? kernel : "Linux");
	put_text(f, ",\"CPUName\":", cpu ? cpu : "");
	fputs("},\n\"libs\":[],\"pages\":[],\n\"threads\":[", f->out);
}

static int export(struct firefox *f)
{
	int err = csink_threads_build(&f->threads, f->p) ?: csink_calltree_build(&f->tree, f->p);

	if (err)
		return err;
	f->nodes = f->tree->of_stack[0];
	f->texts = csink_profile_create();
	f->files = csink_profile_create();
	f->stack_of_node = calloc(f->tree->calls.nr_nodes, sizeof(*f->stack_of_node));
	f->stacks = calloc(f->tree->calls.nr_nodes, sizeof(*f->stacks));
	f->func_of_frame = calloc((size_t)f->tree->nr_frames + 1, sizeof(*f->func_of_frame));
	f->funcs = calloc((size_t)f->tree->nr_frames + 1, sizeof(*f->funcs));
	if (!f->texts || !f->files || !f->stack_of_node || !f->stacks || !f->func_of_frame || !f->funcs)
		return -ENOMEM;
	put_meta(f);
	for (uint32_t i = 0; i < f->threads.nr_threads && !err; i++) {
		fputs(i ? ",\n" : "\n", f->out);
		err = put_thread(f, i);
	}
	fputs("],\n\"shared\":{\"sources\":{", f->out);
	PUT_LIST(f, "uuid", f->files->nr_strings - 1, "%s", "null");
	PUT_TEXTS(f, "filename", f->files);
	fprintf(f->out, "\"length\":%u},\"stringArray\":[", f->files->nr_strings - 1);
	for (uint32_t i = 0; i < f->texts->nr_strings; i++) {
		fputs(i ? ",\n" : "", f->out);
		csink_json_quote(f->out, f->texts->strings[i].text, false);
	}
	fputs("]}}\n", f->out);
	return err ?: csink_profile_error(f->files) ?: csink_profile_error(f->texts);
}

int csink_export_firefox(FILE *out, const struct csink_profile *p, uint32_t type)
{
	struct firefox f = {.out = out, .p = p, .type = type};
	int err = type < p->nr_types ? export(&f) : -ENOENT;

	csink_threads_free(&f.threads);
	csink_calltree_free(f.tree);
	csink_profile_free(f.texts);
	csink_profile_free(f.files);
	csink_profile_free(f.modules);
	free(f.stack_of_node);
	free(f.func_of_frame);
	free(f.stacks);
	free(f.funcs);
	return err;
}
