/* The options of hyperfine's command line, and the values of its parameters: see hyperfine_impl.h. */
#include <stdlib.h>
#include <string.h>

#include "launcher/gate/suite/hyperfine_impl.h"

enum option {
	NEITHER, /* of no matter for what is run */
	NAME,
	PREPARE,
	SETUP,
	CLEANUP,
	SHELL,
	NO_SHELL,
	LIST, /* of values */
	SCAN, /* of numbers */
	STEP,
	INPUT,
};

static const struct {
	char letter; /* '\0': none */
	const char *name;
	uint32_t nr_values;
	enum option option;
} options[] = {
	{'w', "warmup", 1, NEITHER},
	{'m', "min-runs", 1, NEITHER},
	{'M', "max-runs", 1, NEITHER},
	{'r', "runs", 1, NEITHER},
	{'s', "setup", 1, SETUP},
	{'p', "prepare", 1, PREPARE},
	{'C', "conclude", 1, CLEANUP},
	{'c', "cleanup", 1, CLEANUP},
	{'P', "parameter-scan", 3, SCAN},
	{'D', "parameter-step-size", 1, STEP},
	{'L', "parameter-list", 2, LIST},
	{'\0', "style", 1, NEITHER},
	{'\0', "sort", 1, NEITHER},
	{'S', "shell", 1, SHELL},
	{'N', "", 0, NO_SHELL},
	{'i', "ignore-failure", 0, NEITHER},
	{'u', "time-unit", 1, NEITHER},
	{'\0', "export-asciidoc", 1, NEITHER},
	{'\0', "export-csv", 1, NEITHER},
	{'\0', "export-json", 1, NEITHER},
	{'\0', "export-markdown", 1, NEITHER},
	{'\0', "export-orgmode", 1, NEITHER},
	{'\0', "show-output", 0, NEITHER},
	{'\0', "output", 1, NEITHER},
	{'\0', "input", 1, INPUT},
	{'n', "command-name", 1, NAME},
};

void csink_hyperfine_line_free(struct csink_hyperfine_line *parsed)
{
	csink_suite_words_free(&parsed->commands);
	csink_suite_words_free(&parsed->names);
	csink_suite_words_free(&parsed->prepares);
	for (uint32_t i = 0; i < parsed->nr_parameters; i++)
		csink_suite_words_free(&parsed->parameters[i].values);
}

static bool lacks_memory(const struct csink_hyperfine_line *parsed)
{
	bool lacks = parsed->commands.lacked_memory || parsed->names.lacked_memory || parsed->prepares.lacked_memory;

	for (uint32_t i = 0; i < parsed->nr_parameters; i++)
		lacks |= parsed->parameters[i].values.lacked_memory;
	return lacks;
}

/* ---- the command line ---- */

/* "a,b\,c": a backslash keeps a comma. */
static void split_values(struct csink_suite_words *values, const char *text)
{
	char *value = strdup(text), *out = value;

	for (; value; text++) {
		if (*text == '\\' && text[1] == ',') {
			*out++ = *++text;
		} else if (*text && *text != ',') {
			*out++ = *text;
		} else {
			csink_suite_put_bytes(values, value, (size_t)(out - value));
			out = value;
			if (!*text)
				break;
		}
	}
	values->lacked_memory |= !value;
	free(value);
}

static int decimals_of(const char *number)
{
	const char *point = strchr(number, '.');

	return point ? (int)CSINK_MIN(strlen(point + 1), 17UL) : 0;
}

/* From the least to the largest, with as many decimals as the numbers have. */
static bool count_values(struct csink_suite_words *values, const char *least, const char *largest, const char *step)
{
	int decimals = step ? CSINK_MAX(decimals_of(least), decimals_of(step)) : decimals_of(least);
	double from = strtod(least, NULL), to = strtod(largest, NULL), by = step ? strtod(step, NULL) : 1;

	if (!(by > 0) || !(from <= to) || !((to - from) / by < CSINK_HYPERFINE_MAX_COMBINATIONS))
		return false;
	for (uint32_t i = 0; from + i * by <= to + by * 1e-9; i++)
		csink_suite_put(values, "%.*f", i ? decimals : decimals_of(least), from + i * by);
	return true;
}

static int add_parameter(struct csink_suite *suite, struct csink_hyperfine_line *parsed, enum option option,
			 char *const *values)
{
	struct csink_hyperfine_parameter *parameter = &parsed->parameters[parsed->nr_parameters];

	if (parsed->nr_parameters == CSINK_HYPERFINE_MAX_PARAMETERS)
		return CSINK_SUITE_WHY(suite, -EINVAL, "hyperfine: more than %d parameters",
				       CSINK_HYPERFINE_MAX_PARAMETERS);
	parameter->name = values[0];
	parsed->nr_parameters++;
	if (option == LIST)
		split_values(&parameter->values, values[1]);
	else if (!count_values(&parameter->values, values[1], values[2], parsed->step))
		return CSINK_SUITE_WHY(suite, -EINVAL,
				       "hyperfine: --parameter-scan %.100s: there are no values, or too many",
				       values[0]);
	return 0;
}

static int take_option(struct csink_suite *suite, struct csink_hyperfine_line *parsed, enum option option,
		       char *const *values)
{
	switch (option) {
	case NAME:
		csink_suite_put(&parsed->names, "%s", values[0]);
		return 0;
	case PREPARE:
		csink_suite_put(&parsed->prepares, "%s", values[0]);
		return 0;
	case SETUP:
		parsed->setup = values[0];
		return 0;
	case CLEANUP:
		parsed->cleans_up = true;
		return 0;
	case SHELL:
		parsed->no_shell = !strcmp(values[0], "none");
		parsed->shell = parsed->no_shell || !strcmp(values[0], "default") ? NULL : values[0];
		return 0;
	case NO_SHELL:
		parsed->no_shell = true;
		return 0;
	case LIST:
	case SCAN:
		return add_parameter(suite, parsed, option, values);
	case INPUT:
		return CSINK_SUITE_WHY(suite, -EINVAL,
				       "hyperfine: --input: give the file to the gate (countersink gate --input)");
	case STEP:
	case NEITHER:
		break;
	}
	return 0;
}

/* The option that a word begins with. @value  set to what stands in the same word, NULL: nothing. @len  of a letter: 1,
 * others may follow; else of the whole word. Returns its index in the table, or -1. */
static int find_option(const char *word, char **value, size_t *len)
{
	bool is_long = word[0] == '-' && word[1] == '-';
	size_t name = is_long ? strcspn(word + 2, "=") : 1;

	*value = NULL;
	*len = is_long ? strlen(word) : 1;
	for (int i = 0; i < (int)CSINK_ARRAY_SIZE(options); i++) {
		if (is_long ? strlen(options[i].name) != name || strncmp(options[i].name, word + 2, name) != 0
			    : options[i].letter != *word)
			continue;
		if (is_long && word[2 + name])
			*value = (char *)word + 3 + name;
		else if (!is_long && options[i].nr_values && word[1])
			*value = (char *)word + (word[1] == '=' ? 2 : 1);
		return i;
	}
	return -1;
}

/* One word, and those behind it that are its values: *at is moved to the last one. */
static int take_word(struct csink_suite *suite, struct csink_hyperfine_line *parsed, char ***at, enum option only)
{
	const char *word = **at;
	bool is_long = word[1] == '-';

	for (const char *letter = is_long ? word : word + 1; *letter;) {
		char *values[3], *own;
		uint32_t nr = 0;
		size_t len;
		int found = find_option(letter, &own, &len), err = 0;

		if (found < 0)
			return CSINK_SUITE_WHY(suite, -EINVAL, "hyperfine: option '%.100s' is not known here", word);
		if (own)
			values[nr++] = own;
		while (nr < options[found].nr_values && (*at)[1])
			values[nr++] = *++*at;
		if (nr < options[found].nr_values)
			return CSINK_SUITE_WHY(suite, -EINVAL, "hyperfine: option '%.100s' has no value", word);
		if (only == STEP && options[found].option == STEP)
			parsed->step = values[0];
		else if (only != STEP)
			err = take_option(suite, parsed, options[found].option, values);
		if (err || own || is_long)
			return err;
		letter += len;
	}
	return 0;
}

/* @only  STEP: take the step alone, which may stand behind the parameters that it is for; else all. */
static int parse_words(struct csink_suite *suite, struct csink_hyperfine_line *parsed, char **words, enum option only)
{
	bool behind = false;
	int err = 0;

	for (char **at = words; *at && !err; at++) {
		if (!behind && !strcmp(*at, "--"))
			behind = true;
		else if (!behind && **at == '-' && (*at)[1])
			err = take_word(suite, parsed, &at, only);
		else if (only != STEP)
			csink_suite_put(&parsed->commands, "%s", *at);
	}
	return err;
}

int csink_hyperfine_line_read(struct csink_suite *suite, char **words, struct csink_hyperfine_line *line)
{
	int err = parse_words(suite, line, words, STEP) ?: parse_words(suite, line, words, NEITHER);

	return err ? err : lacks_memory(line) ? -ENOMEM : 0;
}
