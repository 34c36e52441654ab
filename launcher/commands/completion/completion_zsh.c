/* Completion for zsh: see completion.h. */
#include <stdio.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/commands/completion/completion.h"

#define PROFILES "_files -g \"*.(pb.gz|pb|pprof|folded)(-.)\""

/* What _arguments does for a value. */
static void print_action(const struct csink_completed *completed)
{
	static const char *const actions[] = {
		[CSINK_COMPLETE_NOTHING] = "",
		[CSINK_COMPLETE_FILE] = "_files",
		[CSINK_COMPLETE_DIRECTORY] = "_files -/",
		[CSINK_COMPLETE_PROFILE] = PROFILES,
		[CSINK_COMPLETE_PID] = "_countersink_pids",
		[CSINK_COMPLETE_PROCESS] = "_countersink_processes",
		[CSINK_COMPLETE_PROGRAM] = "_command_names -e",
	};

	if (completed->what == CSINK_COMPLETE_WORDS)
		printf("(%s)", completed->words);
	else
		fputs(actions[completed->what], stdout);
}

static void print_option(const struct csink_option *opt)
{
	bool takes_value = csink_completion_takes_value(opt);
	struct csink_completed values;
	char name[CSINK_OPTION_NAME];

	csink_option_name(opt, name);
	printf(" \\\n\t\t");
	if (opt->short_name)
		printf("'(-%c --%s)'{-%c%s,--%s%s}", opt->short_name, name, opt->short_name, takes_value ? "+" : "",
		       name, takes_value ? "=" : "");
	else
		printf("--%s%s", name, takes_value ? "=" : "");
	printf("'[");
	csink_completion_print_quoted(opt->help, "[]:\\");
	putchar(']');
	if (takes_value) {
		csink_completion_of_option(opt, &values);
		printf(":");
		csink_completion_print_quoted(strchr(opt->arg, '|') ? "name" : opt->arg, "[]:\\");
		printf(":");
		print_action(&values);
	}
	putchar('\'');
}

static void print_operands(const struct csink_command *command)
{
	struct csink_completed operands;

	csink_completion_of_operands(command, &operands);
	switch (operands.what) {
	case CSINK_COMPLETE_NOTHING:
		return;
	case CSINK_COMPLETE_PROGRAM:
		printf(" \\\n\t\t'(-)1:program:_command_names -e' '*::argument:_normal'");
		return;
	case CSINK_COMPLETE_PROCESS: /* behind "--" it is a program */
		printf(" \\\n\t\t'1:process:_countersink_processes' '*::argument:_normal'");
		return;
	case CSINK_COMPLETE_WORDS:
		printf(" \\\n\t\t'1:word:");
		break;
	default:
		printf(" \\\n\t\t'*:file:");
	}
	print_action(&operands);
	putchar('\'');
}

static void print_arguments(const struct csink_command *command)
{
	printf("_arguments -S -s");
	CSINK_COMPLETION_EACH(opt, command)
	print_option(opt);
	for (int i = 1; i < CSINK_NR_REQUESTS; i++) {
		const struct csink_request_option *r = &csink_request_options[i];

		printf(" \\\n\t\t");
		if (r->short_name)
			printf("'(-%c --%s)'{-%c,--%s}'[%s]'", r->short_name, r->name, r->short_name, r->name, r->help);
		else
			printf("'--%s[%s]'", r->name, r->help);
	}
	print_operands(command);
}

void csink_completion_print_zsh(void)
{
	printf("#compdef countersink\n# zsh completion for countersink %s, made by: countersink completion zsh\n"
	       "_countersink_commands=(\n",
	       CSINK_VERSION);
	for (uint32_t i = 0; i < csink_nr_commands; i++) {
		printf("\t'%s:", csink_commands[i]->name);
		csink_completion_print_quoted(csink_commands[i]->help, ":\\");
		printf("'\n");
	}
	printf(")\n_countersink_pids() {\n\tlocal -a pids\n\tpids=(/proc/<->(N:t))\n\tcompadd -a pids\n}\n"
	       "_countersink_processes() {\n\tlocal -a names\n\tif (( ${words[(I)--]} )) && (( ${words[(I)--]} < "
	       "CURRENT )); "
	       "then\n\t\t_command_names -e\n\t\treturn\n\tfi\n"
	       "\tnames=(${(f)\"$(cat /proc/<->/comm(N) 2>/dev/null)\"})\n"
	       "\tnames=(${(u)${(M)names:#[A-Za-z0-9_.-]#}})\n\tcompadd -a names\n}\n");
	printf("_countersink() {\n\tsetopt localoptions extendedglob\n\tlocal command=run\n"
	       "\tif (( CURRENT > 2 )) && (( ${_countersink_commands[(I)$words[2]:*]} )); then\n"
	       "\t\tcommand=$words[2]\n\t\tshift words\n\t\t(( CURRENT-- ))\n"
	       "\telif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
	       "\t\t_describe command _countersink_commands\n\tfi\n\tcase $command in\n");
	for (uint32_t i = 0; i < csink_nr_commands; i++) {
		printf("\t%s)\n\t\t", csink_commands[i]->name);
		print_arguments(csink_commands[i]);
		printf(" ;;\n");
	}
	printf("\tesac\n}\n[[ $funcstack[1] == _countersink ]] && _countersink \"$@\" || compdef _countersink "
	       "countersink\n");
}
