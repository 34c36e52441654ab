/*
 * `countersink completion SHELL`: completion for bash, zsh and fish. What can be completed is printed from the tables
 * of commands, options and events. The code for each shell does not depend on the tables (completion/).
 */
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "launcher/base/format.h"
#include "launcher/commands/completion/completion.h"
#include "launcher/commands/registry.h"

const char *csink_completion_name(const struct csink_completed *completed)
{
	static const char *const names[] = {
		[CSINK_COMPLETE_NOTHING] = "",
		[CSINK_COMPLETE_FILE] = "<file>",
		[CSINK_COMPLETE_DIRECTORY] = "<directory>",
		[CSINK_COMPLETE_PROFILE] = "<profile>",
		[CSINK_COMPLETE_PID] = "<pid>",
		[CSINK_COMPLETE_PROCESS] = "<process>",
		[CSINK_COMPLETE_PROGRAM] = "<program>",
	};

	return completed->what == CSINK_COMPLETE_WORDS ? completed->words : names[completed->what];
}

static void add_word(struct csink_completed *out, const char *word, size_t len)
{
	out->what = CSINK_COMPLETE_WORDS;
	csink_append(out->words, sizeof(out->words), "%s%.*s", *out->words ? " " : "", (int)len, word);
}

/* "one|two", up to a blank. */
static void add_choices(struct csink_completed *out, const char *choices)
{
	for (size_t len;; choices += len + 1) {
		len = strcspn(choices, "| ");
		add_word(out, choices, len);
		if (choices[len] != '|')
			return;
	}
}

static void add_events(struct csink_completed *out)
{
	uint32_t nr;
	const struct csink_event_generic *generic = csink_events_generic(&nr);

	for (uint32_t i = 0; i < nr; i++)
		add_word(out, generic[i].name, strlen(generic[i].name));
}

void csink_completion_of_option(const struct csink_option *opt, struct csink_completed *out)
{
	static const struct {
		const char *arg;
		enum csink_completion what;
	} kinds[] = {
		{"FILE", CSINK_COMPLETE_FILE},       {"PATH", CSINK_COMPLETE_FILE},
		{"DIR", CSINK_COMPLETE_DIRECTORY},   {"PID", CSINK_COMPLETE_PID},
		{"TID", CSINK_COMPLETE_PID},         {"PID[,PID]...", CSINK_COMPLETE_PID},
		{"COMMAND", CSINK_COMPLETE_PROGRAM},
	};

	memset(out, 0, sizeof(*out));
	if (strchr(opt->arg, '|')) {
		add_choices(out, opt->arg);
	} else if (!strcmp(opt->arg, "LIST") || !strcmp(opt->id, "EVENT")) {
		if (!strcmp(opt->arg, "LIST"))
			add_word(out, "auto", 4);
		add_events(out);
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(kinds); i++) {
		if (!strcmp(opt->arg, kinds[i].arg))
			out->what = kinds[i].what;
	}
}

void csink_completion_of_operands(const struct csink_command *command, struct csink_completed *out)
{
	const char *synopsis = command->synopsis, *second = strchr(synopsis, ' ');

	memset(out, 0, sizeof(*out));
	second = second ? second + 1 : "";
	if (strstr(synopsis, "COMMAND [ARGUMENT]")) {
		out->what = CSINK_COMPLETE_PROGRAM;
	} else if (strstr(synopsis, "-- COMMAND")) {
		out->what = CSINK_COMPLETE_PROCESS;
	} else if (strstr(synopsis, "COMMAND")) {
		for (uint32_t i = 0; i < csink_nr_commands; i++)
			add_word(out, csink_commands[i]->name, strlen(csink_commands[i]->name));
	} else if (strstr(synopsis, "PATTERN")) {
		add_events(out);
	} else if (strstr(synopsis, "FILE") || strstr(synopsis, " A B")) {
		out->what = CSINK_COMPLETE_PROFILE;
	} else if (strstr(synopsis, "DIRECTORY")) {
		out->what = CSINK_COMPLETE_DIRECTORY;
	} else if (strcspn(second, "|") < strcspn(second, " ")) {
		add_choices(out, second);
	}
}

void csink_completion_print_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr(special, *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static const struct {
	const char *name;
	void (*print)(void);
} shells[] = {
	{"bash", csink_completion_print_bash},
	{"zsh", csink_completion_print_zsh},
	{"fish", csink_completion_print_fish},
};

static int main_completion(const struct csink_options *o, int nr, char **operands)
{
	(void)o;
	if (nr != 1)
		return csink_fail(CSINK_EXIT_USAGE, "completion needs the name of one shell: bash, zsh or fish");
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(shells); i++) {
		if (strcmp(shells[i].name, *operands))
			continue;
		shells[i].print();
		return csink_end_output("completion", CSINK_EXIT_OK);
	}
	return csink_fail(CSINK_EXIT_USAGE, "no completion for '%.64s': name bash, zsh or fish", *operands);
}

const struct csink_command csink_command_completion = {
	.name = "completion",
	.synopsis = "completion bash|zsh|fish",
	.help = "print a shell's completion script",
	.main = main_completion,
};
