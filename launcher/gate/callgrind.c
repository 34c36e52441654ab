/* Exact instruction counts by valgrind's callgrind: see callgrind.h. Its format is described in valgrind's manual. */
#include "launcher/gate/callgrind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/collect/run_directory.h"
#include "launcher/gate/counting.h"
#include "launcher/profile/profile.h"

#define MAX_BYTES (1ULL << 30) /* of one process's output, which has a line for each line of its code */

/* Names are given a number where they come first, "(3) main", and are the number alone later: "(3)". Files, functions
 * and objects have numbers of their own. */
struct names {
	csink_str_t *all; /* by number, in texts */
	uint32_t nr;
};

enum name_kind { NAME_FILE, NAME_FUNCTION, NAME_OBJECT, NR_NAME_KINDS };

struct reader {
	struct csink_gate_functions *functions;
	struct csink_gate_weights *weights;
	int side;
	struct csink_profile *texts;
	struct names names[NR_NAME_KINDS];
	const char *object, *file, *inlined_file; /* where costs belong now */
	const char *called_object, *called_function;
	int64_t function; /* index; < 0 before the first */
	uint64_t line;
	bool is_call; /* the next line is what a call cost, not what the function itself did */
	bool is_callgrind;
};

/* "(3) main", "(3)" or, without compression, "main" (then it is kept as number 0). */
static int read_name(struct reader *r, enum name_kind kind, char *text, const char **out)
{
	struct names *names = &r->names[kind];
	unsigned long number = 0;
	char *end = text;

	if (*text == '(' && text[1] >= '0' && text[1] <= '9') {
		number = strtoul(text + 1, &end, 10);
		if (*end != ')' || number > 10000000)
			return -EBADMSG;
		for (end++; *end == ' '; end++)
			;
	}
	if (*end && CSINK_GROW_INDEX(names->all, names->nr, (uint32_t)number))
		return -ENOMEM;
	if (*end)
		names->all[number] = csink_profile_str(r->texts, end);
	if (number >= names->nr || !names->all[number])
		return csink_profile_error(r->texts) ?: -EBADMSG;
	*out = csink_profile_text(r->texts, names->all[number]);
	return 0;
}

/* Without what compilers append to parts and copies of a function, and callgrind to recursive ones. */
static int64_t find_function(struct reader *r, const char *name, const char *object)
{
	static const char *const appended[] = {".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", "'"};
	char plain[1024];

	snprintf(plain, sizeof(plain), "%s", name);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(appended); i++) {
		char *at = strstr(plain, appended[i]);

		if (at && at != plain)
			*at = '\0';
	}
	/* "0x0000000000001234": code without a symbol. */
	if (!strncmp(plain, "0x", 2))
		snprintf(plain, sizeof(plain), "%s", CSINK_GATE_NO_NAME);
	return csink_gate_function_find(r->functions, plain, csink_base_name(object));
}

static int enter_function(struct reader *r, char *text)
{
	const char *name;
	int err = read_name(r, NAME_FUNCTION, text, &name);

	if (err)
		return err;
	r->function = find_function(r, name, r->object);
	r->inlined_file = r->file;
	if (r->function < 0)
		return (int)r->function;
	if ((uint32_t)r->function >= r->weights->nr)
		return csink_gate_weights_grow(r->weights, r->functions->nr);
	return 0;
}

/* A position counts from the one before: "+3", "-2", "*"; or it is one. Returns what is behind it. */
static char *read_position(struct reader *r, char *text)
{
	char *end = text + 1;

	if (*text == '+')
		r->line += strtoull(text + 1, &end, 10);
	else if (*text == '-')
		r->line -= strtoull(text + 1, &end, 10);
	else if (*text != '*')
		r->line = strtoull(text, &end, 0);
	return end;
}

static int add_cost(struct reader *r, char *text)
{
	double cost = strtod(read_position(r, text), NULL);
	int64_t callee;

	if (r->function < 0)
		return -EBADMSG;
	if (!r->is_call) {
		r->weights->self[r->function] += cost;
		r->weights->sum += cost;
		if (r->inlined_file == r->file)
			csink_gate_function_learn(r->functions, (uint32_t)r->function, r->side,
						  strcmp(r->file, "???") ? r->file : "", (int64_t)r->line);
		return 0;
	}
	r->is_call = false;
	callee = find_function(r, r->called_function, r->called_object);
	r->called_object = r->object;
	if (callee < 0)
		return (int)callee;
	return csink_gate_call_add(r->functions, (uint32_t)r->function, (uint32_t)callee, r->side, cost);
}

/* "key=value", the keys that say where costs belong. Returns 1 if it is none of these. */
static int read_key(struct reader *r, char *line)
{
	static const struct {
		const char *key;
		enum name_kind kind;
		size_t where;
	} keys[] = {
		{"ob=", NAME_OBJECT, offsetof(struct reader, object)},
		{"fl=", NAME_FILE, offsetof(struct reader, file)},
		{"fi=", NAME_FILE, offsetof(struct reader, inlined_file)},
		{"fe=", NAME_FILE, offsetof(struct reader, inlined_file)},
		{"cob=", NAME_OBJECT, offsetof(struct reader, called_object)},
		{"cfn=", NAME_FUNCTION, offsetof(struct reader, called_function)},
	};
	const char *ignored;
	int err;

	if (!strncmp(line, "fn=", 3))
		return enter_function(r, line + 3);
	if (!strncmp(line, "cfi=", 4) || !strncmp(line, "cfl=", 4))
		return read_name(r, NAME_FILE, line + 4, &ignored);
	if (!strncmp(line, "calls=", 6)) {
		r->is_call = true;
		return 0;
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(keys); i++) {
		size_t len = strlen(keys[i].key);

		if (strncmp(line, keys[i].key, len))
			continue;
		err = read_name(r, keys[i].kind, line + len, (const char **)((char *)r + keys[i].where));
		/* Calls are within the object, unless they say otherwise. */
		if (!err && keys[i].where == offsetof(struct reader, object))
			r->called_object = r->object;
		return err;
	}
	return 1;
}

static int read_line(struct reader *r, char *line)
{
	int err;

	line[strcspn(line, "\n")] = '\0';
	if (!*line || *line == '#')
		return 0;
	r->is_callgrind |= !strncmp(line, "creator: callgrind", 18) || !strncmp(line, "events:", 7);
	if ((*line >= '0' && *line <= '9') || strchr("+-*", *line))
		return add_cost(r, line);
	err = read_key(r, line);
	return err == 1 ? 0 : err; /* a line of the head */
}

int csink_gate_callgrind_read(const char *path, struct csink_gate_functions *functions,
			      struct csink_gate_placement *placement, struct csink_gate_run *run, char *why,
			      size_t why_size)
{
	struct reader r = {.functions = functions,
			   .weights = &run->weights,
			   .side = run->side,
			   .texts = csink_profile_create(),
			   .object = "",
			   .file = "",
			   .inlined_file = "",
			   .called_object = "",
			   .called_function = "",
			   .function = -1};
	CSINK_AUTO_FCLOSE FILE *f = csink_regular_fopen(path, O_NOFOLLOW, MAX_BYTES);
	CSINK_AUTO_FREE char *line = NULL;
	size_t size = 0;
	int err = !f ? -errno : !r.texts ? -ENOMEM : 0;

	while (!err && getline(&line, &size, f) > 0)
		err = read_line(&r, line);
	if (!err && !r.is_callgrind)
		err = -EBADMSG;
	if (!err) /* those that are only called are known now, too */
		err = csink_gate_weights_grow(&run->weights, functions->nr);
	for (uint32_t i = 0; !err && i < r.names[NAME_OBJECT].nr; i++) {
		if (r.names[NAME_OBJECT].all[i])
			err = csink_gate_placement_add(placement, run->side,
						       csink_profile_text(r.texts, r.names[NAME_OBJECT].all[i]));
	}
	if (err)
		snprintf(why, why_size, "%s",
			 err == -EBADMSG ? "not an output file of callgrind" : csink_regular_why(err));
	for (int kind = 0; kind < NR_NAME_KINDS; kind++)
		free(r.names[kind].all);
	csink_profile_free(r.texts);
	return err;
}

/* ---- a run ---- */

static int read_directory(struct csink_gate_series *series, const char *directory, struct csink_gate_run *run)
{
	CSINK_AUTO_CLOSEDIR DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[512], why[CSINK_WHY_BYTES];
	uint32_t nr = 0;
	int err = dir ? 0 : -errno;

	while (!err && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "callgrind.", 10))
			continue;
		snprintf(path, sizeof(path), "%s/%.200s", directory, entry->d_name);
		err = csink_gate_callgrind_read(path, &series->data->functions, &series->placement, run, why,
						sizeof(why));
		if (err)
			snprintf(series->error, sizeof(series->error), "callgrind's output cannot be read: %s", why);
		nr++;
	}
	if (!err && !nr)
		return csink_why(-ENOENT, series->error, sizeof(series->error),
				 "callgrind wrote nothing: can valgrind run this command?");
	return err;
}

static char **wrap(char **argv, const char *directory, char *out_file, size_t size)
{
	static const char *const before[] = {"valgrind", "-q", "--tool=callgrind", "--trace-children=yes",
					     "--error-exitcode=0"};
	size_t nr = 0, n = CSINK_ARRAY_SIZE(before);
	char **wrapped;

	while (argv[nr])
		nr++;
	wrapped = calloc(nr + n + 2, sizeof(*wrapped));
	if (!wrapped)
		return NULL;
	snprintf(out_file, size, "--callgrind-out-file=%s/callgrind.%%p", directory);
	for (size_t i = 0; i < n; i++)
		wrapped[i] = (char *)before[i];
	wrapped[n++] = out_file;
	memcpy(wrapped + n, argv, nr * sizeof(*argv));
	return wrapped;
}

int csink_gate_callgrind_run(struct csink_gate_series *series, struct csink_gate_run *run, const char *directory)
{
	char out_file[CSINK_RUN_DIRECTORY_PATH + 64];
	CSINK_AUTO_FREE char **argv = wrap(series->plan->argv[run->side], directory, out_file, sizeof(out_file));
	int err = argv ? csink_gate_run_under(series, argv, "valgrind") : -ENOMEM;

	return err ?: read_directory(series, directory, run);
}
