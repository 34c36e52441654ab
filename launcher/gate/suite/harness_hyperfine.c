/*
 * hyperfine: the command line says which commands it would run, with each combination of parameters, and these are run
 * without it; or a file that it exported (--export-json) has them. As hyperfine has it, a command is a line for a
 * shell, but one that needs none is run without. A run of the command is one iteration.
 */
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/json_read.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/gate/suite/hyperfine_impl.h"
#include "launcher/session/find_program.h"

#define MAX_EXPORT (64 << 20)

/* ---- commands ---- */

/* A copy of a text with the parameters of the combination. malloc'ed; NULL without memory. */
static char *fill_in(const struct csink_hyperfine_line *parsed, const char *text)
{
	char *filled = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&filled, &bytes);

	while (out && *text) {
		uint32_t i = parsed->nr_parameters;

		for (i = 0; *text == '{' && i < parsed->nr_parameters; i++) {
			size_t len = strlen(parsed->parameters[i].name);

			if (!strncmp(text + 1, parsed->parameters[i].name, len) && text[1 + len] == '}') {
				fputs(parsed->parameters[i].values.all[parsed->parameters[i].at], out);
				text += len + 2;
				break;
			}
		}
		if (*text && (*text != '{' || i == parsed->nr_parameters))
			fputc(*text++, out);
	}
	if (out && fclose(out)) {
		free(filled);
		return NULL;
	}
	return filled;
}

/* "exit 1": what no program is called may be the shell's own. */
static bool is_program(const char *name)
{
	static struct csink_program program;

	return !csink_program_find(name, &program);
}

static int put_command(struct csink_suite *suite, const struct csink_hyperfine_line *parsed, int side, const char *line,
		       struct csink_suite_words *argv)
{
	/* Wildcards are of the directory where the side runs. */
	struct csink_suite_job there = {.dir = (char *)suite->dirs[side]};
	bool needs_shell = false, is_builtin;
	int entered = csink_suite_enter(&there);
	char **words;

	if (entered < 0)
		return CSINK_SUITE_WHY(suite, entered, "%.200s: %s", there.dir, strerror(-entered));
	words = csink_gate_command_split(parsed->shell ? parsed->shell : line, &needs_shell);
	is_builtin = words && words[0] && !parsed->shell && !parsed->no_shell && !is_program(words[0]);
	csink_suite_leave(&there, entered);
	if (!words || !words[0] || (needs_shell && (parsed->shell || parsed->no_shell))) {
		free(words);
		return CSINK_SUITE_WHY(suite, -EINVAL, "hyperfine: '%.200s' is no command%s",
				       parsed->shell ? parsed->shell : line, needs_shell ? " without a shell" : "");
	}
	if (is_builtin)
		csink_suite_put_shell(argv, line);
	else
		csink_suite_put_all(argv, words);
	if (parsed->shell) {
		csink_suite_put(argv, "-c");
		csink_suite_put(argv, "%s", line);
	}
	free(words);
	return 0;
}

/* The name that the command was given, or itself; with its parameters, where nothing else distinguishes it. */
static char *name_command(const struct csink_hyperfine_line *parsed, uint32_t command)
{
	bool is_named = parsed->names.nr && command < parsed->names.nr;
	const char *text = is_named ? parsed->names.all[command] : parsed->commands.all[command];
	char *name = fill_in(parsed, text);

	for (uint32_t i = 0; name && i < parsed->nr_parameters; i++) {
		const struct csink_hyperfine_parameter *parameter = &parsed->parameters[i];
		CSINK_AUTO_FREE char *had = name;
		CSINK_AUTO_FREE char *place = NULL;

		if (asprintf(&place, "{%s}", parameter->name) < 0)
			place = NULL;
		name = NULL;
		if (place && strstr(text, place))
			name = strdup(had);
		else if (place &&
			 asprintf(&name, "%s %s=%s", had, parameter->name, parameter->values.all[parameter->at]) < 0)
			name = NULL;
	}
	return name;
}

static int add_command(struct csink_suite *suite, const struct csink_hyperfine_line *parsed, int side, uint32_t command)
{
	const struct csink_suite_words *prepares = &parsed->prepares;
	CSINK_AUTO_FREE char *name = name_command(parsed, command);
	CSINK_AUTO_FREE char *line = fill_in(parsed, parsed->commands.all[command]);
	struct csink_suite_case *c = name && line ? csink_suite_case_add(suite, side, name, strlen(name)) : NULL;
	struct csink_suite_job *job;
	int err;

	if (!c)
		return -ENOMEM;
	job = &c->given[side];
	if (job->argv.nr)
		return CSINK_SUITE_WHY(suite, -EINVAL, "hyperfine: two commands have the name '%.200s'", name);
	err = put_command(suite, parsed, side, line, &job->argv);
	if (!err && prepares->nr) {
		job->prepare = fill_in(parsed, prepares->all[prepares->nr > 1 ? command : 0]);
		err = job->prepare ? 0 : -ENOMEM;
	}
	return err ? err : job->argv.lacked_memory ? -ENOMEM : 0;
}

/* Go to the next combination of parameters. Returns whether there is one. */
static bool next_combination(struct csink_hyperfine_line *parsed)
{
	for (uint32_t i = 0; i < parsed->nr_parameters; i++) {
		struct csink_hyperfine_parameter *parameter = &parsed->parameters[i];

		if (++parameter->at < parameter->values.nr)
			return true;
		parameter->at = 0;
	}
	return false;
}

static int add_commands(struct csink_suite *suite, struct csink_hyperfine_line *parsed, int side)
{
	uint32_t nr = 0;
	int err = 0;

	if (parsed->prepares.nr > 1 && parsed->prepares.nr != parsed->commands.nr)
		return CSINK_SUITE_WHY(suite, -EINVAL, "hyperfine: --prepare is given once, or once for each command");
	do {
		for (uint32_t i = 0; i < parsed->commands.nr && !err; i++)
			err = ++nr > CSINK_HYPERFINE_MAX_COMBINATIONS
				      ? CSINK_SUITE_WHY(suite, -EINVAL,
							"hyperfine: more than %d combinations of parameters",
							CSINK_HYPERFINE_MAX_COMBINATIONS)
				      : add_command(suite, parsed, side, i);
	} while (!err && next_combination(parsed));
	return err;
}

/* What is to be there before all runs. */
static int set_up(struct csink_suite *suite, const struct csink_hyperfine_line *parsed, int side)
{
	struct csink_suite_job job = {0};
	struct csink_suite_answer answer;
	char why[1024];
	int err;

	if (parsed->cleans_up)
		csink_gate_note(suite->series, "what hyperfine runs afterwards (--cleanup, --conclude) is not run");
	if (!parsed->setup)
		return 0;
	if (parsed->nr_parameters && strchr(parsed->setup, '{'))
		return CSINK_SUITE_WHY(suite, -EINVAL,
				       "hyperfine: --setup is run once, before all cases, and has no parameters here: "
				       "use --prepare");
	csink_suite_put_shell(&job.argv, parsed->setup);
	err = csink_suite_ask_job(suite, side, &job, &answer);
	if (err)
		return err;
	if (csink_suite_answer_error(&answer, why, sizeof(why)))
		err = CSINK_SUITE_WHY(suite, -EINVAL, "%s: hyperfine's --setup: %s", csink_suite_sides[side], why);
	csink_suite_answer_free(&answer);
	return err;
}

/* ---- an exported file ---- */

/* Its tree; NULL: the word is none. It is found from where the side runs. */
static struct csink_json_value *read_export(const struct csink_suite *suite, int side)
{
	const char *word = suite->argv[side][0], *dir = suite->dirs[side];
	bool is_relative = dir && *word != '/';
	CSINK_AUTO_FREE char *path = NULL;
	CSINK_AUTO_FREE char *text = NULL;
	CSINK_AUTO_FCLOSE FILE *file = NULL;
	size_t cap = 0;
	ssize_t got;

	if (strlen(word) < 5 || strcmp(word + strlen(word) - 5, ".json") != 0 ||
	    asprintf(&path, "%s%s%s", is_relative ? dir : "", is_relative ? "/" : "", word) < 0)
		return NULL;
	file = csink_regular_fopen(path, 0, MAX_EXPORT);
	got = file ? getdelim(&text, &cap, '\0', file) : -1;
	return got > 0 ? csink_json_read(text, (size_t)got) : NULL;
}

static int parse_export(struct csink_suite *suite, struct csink_hyperfine_line *parsed,
			const struct csink_json_value *json)
{
	const struct csink_json_value *results = csink_json_get(json, "results"), *row;

	if (!results)
		return CSINK_SUITE_WHY(suite, -EINVAL, "it has no results as hyperfine exports them");
	for (row = csink_json_first(results); row; row = row->next) {
		const char *command = csink_json_get_text(row, "command");

		if (command)
			csink_suite_put(&parsed->commands, "%s", command);
	}
	return 0;
}

/* ---- the harness ---- */

static int is_hyperfine(struct csink_suite *suite)
{
	struct csink_json_value *json = read_export(suite, CSINK_GATE_NEW);
	const struct csink_json_value *row = csink_json_first(csink_json_get(json, "results"));
	bool is = row && csink_json_get_text(row, "command");

	csink_json_free(json);
	return is || !strcmp(csink_base_name(suite->argv[CSINK_GATE_NEW][0]), "hyperfine");
}

static int list_hyperfine(struct csink_suite *suite, int side)
{
	struct csink_json_value *json = read_export(suite, side);
	struct csink_hyperfine_line parsed = {0};
	int err;

	if (json)
		err = parse_export(suite, &parsed, json);
	else
		err = csink_hyperfine_line_read(suite, suite->argv[side] + 1, &parsed);
	csink_json_free(json);
	if (!err && parsed.prepares.nr && suite->series->plan->prepare)
		err = CSINK_SUITE_WHY(suite, -EINVAL,
				      "option --prepare: hyperfine's own is run before each run, and there can be one");
	err = err ? err : set_up(suite, &parsed, side);
	err = err ? err : add_commands(suite, &parsed, side);
	csink_hyperfine_line_free(&parsed);
	return err;
}

const struct csink_suite_harness csink_suite_hyperfine = {
	.name = "hyperfine",
	.is_kind = is_hyperfine,
	.list = list_hyperfine,
	.one_run = true,
};
