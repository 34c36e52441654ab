/*
 * `countersink completion SHELL`: completion for bash, zsh and fish. What can be completed is printed from the tables
 * of commands, options and events; how, is a text for each shell that is the same for all tables.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/event.h"
#include "include/internal/nearest.h"
#include "launcher/commands.h"

static bool takes_value(const struct csink_option *opt)
{
	return !(opt->flags & CSINK_OPT_BOOL);
}

/* The values that can be listed: choices, or names of events. Separated by between. */
static void print_values(const struct csink_option *opt, char between)
{
	const struct csink_event_generic *generic;
	uint32_t nr;

	if (strchr(opt->arg, '|')) {
		for (const char *c = opt->arg; *c; c++)
			putchar(*c == '|' ? between : *c);
	} else if (!strcmp(opt->arg, "LIST")) {
		printf("auto");
		generic = csink_events_generic(&nr);
		for (uint32_t i = 0; i < nr; i++)
			printf("%c%s", between, generic[i].name);
	}
}

/* Text inside single quotes, which zsh and fish take; also without what zsh's _arguments would read as its own. */
static void print_quoted(const char *text, const char *special)
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

/* ---- bash ---- */

static const char bash_text[] =
	"# What -e -o ... take: a value that is listed, a file, or anything.\n"
	"_countersink() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=run first=1 i word values\n"
	"\tCOMPREPLY=()\n"
	"\tif ((COMP_CWORD > 1)) && [[ \" $_countersink_commands \" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
	"\t\tcommand=${COMP_WORDS[1]} first=2\n"
	"\t\tif [[ $command == persist ]] && ((COMP_CWORD > 2)); then first=3; fi\n"
	"\tfi\n"
	"\t# Where does the first operand stand? Bash splits --option=value into three words.\n"
	"\tfor ((i = first; i < COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]}\n"
	"\t\tcase $word in\n"
	"\t\t--) ((i++)); break ;;\n"
	"\t\t=) ((i + 1 < COMP_CWORD)) && ((i++)) ;;\n"
	"\t\t-?*)\n"
	"\t\t\tif _countersink_values \"$command $word\" >/dev/null && [[ ${COMP_WORDS[i+1]} != '=' ]]; then\n"
	"\t\t\t\t((i + 1 < COMP_CWORD)) && ((i++))\n"
	"\t\t\tfi ;;\n"
	"\t\t*) break ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tif ((i < COMP_CWORD)) || [[ $cur != -* && $prev != '=' && $cur != '=' ]] &&\n"
	"\t   ! _countersink_values \"$command $prev\" >/dev/null; then\n"
	"\t\tcase $command in\n"
	"\t\trun | reserve)\n"
	"\t\t\tif ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then\n"
	"\t\t\t\t_command_offset \"$i\"\n"
	"\t\t\telif ((i < COMP_CWORD)); then\n"
	"\t\t\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
	"\t\t\telse\n"
	"\t\t\t\tCOMPREPLY=($(compgen -c -- \"$cur\"))\n"
	"\t\t\t\t((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W \"$_countersink_commands\" -- \"$cur\"))\n"
	"\t\t\tfi ;;\n"
	"\t\thelp) COMPREPLY=($(compgen -W \"$_countersink_commands\" -- \"$cur\")) ;;\n"
	"\t\tcompletion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")) ;;\n"
	"\t\tpersist) COMPREPLY=($( ((COMP_CWORD == 2)) && compgen -W 'detach attach list read samples' -- \"$cur\")) ;;\n"
	"\t\t*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
	"\t\tesac\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ $cur == '=' ]]; then\n"
	"\t\tword=$prev cur=\n"
	"\telif [[ $prev == '=' ]]; then\n"
	"\t\tword=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\telse\n"
	"\t\tword=$prev\n"
	"\tfi\n"
	"\tif values=$(_countersink_values \"$command $word\"); then\n"
	"\t\tcase $values in\n"
	"\t\t'<file>') COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
	"\t\t*) COMPREPLY=($(compgen -W \"$values\" -- \"$cur\")) ;;\n"
	"\t\tesac\n"
	"\telse\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(_countersink_options \"$command\")\" -- \"$cur\"))\n"
	"\tfi\n"
	"}\n"
	"complete -o default -F _countersink countersink\n";

static void print_bash_options(const struct csink_command *command)
{
	char name[CSINK_OPTION_NAME];

	printf("\t%s) echo '", command->name);
	for (uint32_t i = 0; i < command->nr_options; i++) {
		const struct csink_option *opt = &command->options[i];

		if (opt->flags & CSINK_OPT_ENV_ONLY)
			continue;
		csink_option_name(opt, name);
		printf("--%s ", name);
		if (opt->short_name)
			printf("-%c ", opt->short_name);
	}
	for (int i = 1; i < CSINK_NR_REQUESTS; i++)
		printf("%s--%s", i > 1 ? " " : "", csink_request_options[i].name);
	printf("' ;;\n");
}

static void print_bash_values(const struct csink_command *command)
{
	char name[CSINK_OPTION_NAME];

	for (uint32_t i = 0; i < command->nr_options; i++) {
		const struct csink_option *opt = &command->options[i];

		if (opt->flags & CSINK_OPT_ENV_ONLY || !takes_value(opt))
			continue;
		csink_option_name(opt, name);
		printf("\t'%s --%s'", command->name, name);
		if (opt->short_name)
			printf(" | '%s -%c'", command->name, opt->short_name);
		printf(") echo '");
		if (!strcmp(opt->arg, "FILE"))
			printf("<file>");
		else
			print_values(opt, ' ');
		printf("' ;;\n");
	}
}

static void print_bash(void)
{
	printf("# bash completion for countersink %s, made by: countersink completion bash\n_countersink_commands='",
	       CSINK_VERSION);
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		printf("%s%s", i ? " " : "", csink_commands[i].name);
	printf("'\n_countersink_options() {\n\tcase $1 in\n");
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		print_bash_options(&csink_commands[i]);
	printf("\tesac\n}\n_countersink_values() {\n\tcase $1 in\n");
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		print_bash_values(&csink_commands[i]);
	printf("\t*) return 1 ;;\n\tesac\n}\n");
	fputs(bash_text, stdout);
}

/* ---- zsh ---- */

static void print_zsh_option(const struct csink_option *opt)
{
	char name[CSINK_OPTION_NAME];

	csink_option_name(opt, name);
	printf(" \\\n\t\t");
	if (opt->short_name)
		printf("'(-%c --%s)'{-%c%s,--%s%s}", opt->short_name, name, opt->short_name,
		       takes_value(opt) ? "+" : "", name, takes_value(opt) ? "=" : "");
	else
		printf("--%s%s", name, takes_value(opt) ? "=" : "");
	printf("'[");
	print_quoted(opt->help, "[]:\\");
	putchar(']');
	if (takes_value(opt)) {
		printf(":%s:", strchr(opt->arg, '|') ? "name" : opt->arg);
		if (!strcmp(opt->arg, "FILE")) {
			printf("_files");
		} else if (strchr(opt->arg, '|') || !strcmp(opt->arg, "LIST")) {
			putchar('(');
			print_values(opt, ' ');
			putchar(')');
		}
	}
	putchar('\'');
}

static void print_zsh_arguments(const struct csink_command *command)
{
	printf("_arguments -S -s");
	for (uint32_t i = 0; i < command->nr_options; i++) {
		if (!(command->options[i].flags & CSINK_OPT_ENV_ONLY))
			print_zsh_option(&command->options[i]);
	}
	for (int i = 1; i < CSINK_NR_REQUESTS; i++) {
		const struct csink_request_option *r = &csink_request_options[i];

		printf(" \\\n\t\t");
		if (r->short_name)
			printf("'(-%c --%s)'{-%c,--%s}'[%s]'", r->short_name, r->name, r->short_name, r->name, r->help);
		else
			printf("'--%s[%s]'", r->name, r->help);
	}
}

static void print_zsh(void)
{
	printf("#compdef countersink\n# zsh completion for countersink %s, made by: countersink completion zsh\n"
	       "_countersink_commands=(\n",
	       CSINK_VERSION);
	for (uint32_t i = 0; i < csink_nr_commands; i++) {
		printf("\t'%s:", csink_commands[i].name);
		print_quoted(csink_commands[i].help, ":\\");
		printf("'\n");
	}
	printf(")\n_countersink() {\n\tlocal command=run\n"
	       "\tif (( CURRENT > 2 )) && (( ${_countersink_commands[(I)$words[2]:*]} )); then\n"
	       "\t\tcommand=$words[2]\n\t\tshift words\n\t\t(( CURRENT-- ))\n"
	       "\telif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
	       "\t\t_describe command _countersink_commands\n\tfi\n\tcase $command in\n");
	for (uint32_t i = 0; i < csink_nr_commands; i++) {
		const struct csink_command *command = &csink_commands[i];

		printf("\t%s)\n\t\t", command->name);
		print_zsh_arguments(command);
		if (!strcmp(command->name, "run"))
			printf(" \\\n\t\t'(-)1: :_command_names -e' '*:: :_normal'");
		else if (!strcmp(command->name, "help"))
			printf(" \\\n\t\t'1:command:(${_countersink_commands%%%%:*})'");
		else if (!strcmp(command->name, "completion"))
			printf(" \\\n\t\t'1:shell:(bash zsh fish)'");
		else if (!strcmp(command->name, "persist"))
			printf(" \\\n\t\t'1:what:(detach attach list read)'");
		else
			printf(" \\\n\t\t'*:file:_files'");
		printf(" ;;\n");
	}
	printf("\tesac\n}\n[[ $funcstack[1] == _countersink ]] && _countersink \"$@\" || compdef _countersink "
	       "countersink\n");
}

/* ---- fish ---- */

static const char fish_text[] =
	"# The command that the line is for: run, where the first word names none.\n"
	"function __countersink_command\n"
	"\tset -l words (commandline -opc)\n"
	"\tif set -q words[2]; and contains -- $words[2] $__countersink_commands\n"
	"\t\techo $words[2]\n"
	"\telse\n"
	"\t\techo run\n"
	"\tend\n"
	"end\n"
	"function __countersink_is\n"
	"\ttest (__countersink_command) = $argv[1]\n"
	"end\n"
	"function __countersink_is_first\n"
	"\ttest (count (commandline -opc)) -eq 1\n"
	"end\n"
	"complete -c countersink -n '__countersink_is run' -x -a '(__fish_complete_subcommand)'\n"
	"complete -c countersink -n '__countersink_is help' -x -a '$__countersink_commands'\n"
	"complete -c countersink -n '__countersink_is completion' -x -a 'bash zsh fish'\n"
	"complete -c countersink -n '__countersink_is persist' -x -a 'detach attach list read samples'\n";

static void print_fish_option(const struct csink_command *command, const struct csink_option *opt)
{
	char name[CSINK_OPTION_NAME];

	csink_option_name(opt, name);
	printf("complete -c countersink -n '__countersink_is %s' -l %s", command->name, name);
	if (opt->short_name)
		printf(" -s %c", opt->short_name);
	if (takes_value(opt) && !strcmp(opt->arg, "FILE")) {
		printf(" -r -F");
	} else if (takes_value(opt)) {
		printf(" -x -a '");
		print_values(opt, ' ');
		printf("'");
	}
	printf(" -d '");
	print_quoted(opt->help, "\\");
	printf("'\n");
}

static void print_fish(void)
{
	printf("# fish completion for countersink %s, made by: countersink completion fish\n"
	       "set -g __countersink_commands",
	       CSINK_VERSION);
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		printf(" %s", csink_commands[i].name);
	putchar('\n');
	fputs(fish_text, stdout);
	for (uint32_t c = 0; c < csink_nr_commands; c++) {
		const struct csink_command *command = &csink_commands[c];

		printf("complete -c countersink -n __countersink_is_first -a %s -d '", command->name);
		print_quoted(command->help, "\\");
		printf("'\n");
		for (uint32_t i = 0; i < command->nr_options; i++) {
			if (!(command->options[i].flags & CSINK_OPT_ENV_ONLY))
				print_fish_option(command, &command->options[i]);
		}
	}
	for (int i = 1; i < CSINK_NR_REQUESTS; i++) {
		const struct csink_request_option *r = &csink_request_options[i];

		printf("complete -c countersink -l %s", r->name);
		if (r->short_name)
			printf(" -s %c", r->short_name);
		printf(" -d '%s'\n", r->help);
	}
}

/* ---- the command ---- */

static const struct {
	const char *name;
	void (*print)(void);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

int csink_cmd_completion(int argc, char **argv)
{
	struct csink_options options;
	int at, status;

	at = csink_command_parse(&options, argc, argv, &status);
	if (at < 0)
		return status;
	if (at + 1 != argc) {
		csink_say("completion needs the name of one shell: bash, zsh or fish");
		return CSINK_EXIT_USAGE;
	}
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(shells); i++) {
		if (strcmp(shells[i].name, argv[at]))
			continue;
		shells[i].print();
		return csink_end_output("completion", CSINK_EXIT_OK);
	}
	csink_say("no completion for '%.64s': there is bash, zsh and fish", argv[at]);
	return CSINK_EXIT_USAGE;
}
