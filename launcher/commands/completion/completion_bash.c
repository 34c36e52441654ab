/* Completion for bash: see completion.h. */
#include <stdio.h>

#include "include/internal/base.h"
#include "launcher/commands/completion/completion.h"

/*
 * The words of compgen -W are expanded by bash as a command line is: none of them may be foreign. Names of processes
 * are taken only if they are of harmless characters.
 */
static const char text[] =
	"# Names from a line each: they may have blanks, or be patterns.\n"
	"_countersink_add() {\n"
	"\tlocal name\n"
	"\twhile IFS= read -r name; do COMPREPLY+=(\"$name\"); done\n"
	"}\n"
	"_countersink_files() {\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"\t_countersink_add < <(compgen \"$@\" -- \"$cur\")\n"
	"}\n"
	"# $1: a kind, or words. $cur is completed.\n"
	"_countersink_offer() {\n"
	"\tcase $1 in\n"
	"\t'<file>') _countersink_files -f ;;\n"
	"\t'<directory>') _countersink_files -d ;;\n"
	"\t'<profile>')\n"
	"\t\tlocal ending\n"
	"\t\tfor ending in pb.gz pb pprof folded; do _countersink_files -f -X \"!*.$ending\"; done\n"
	"\t\tif ((${#COMPREPLY[@]})); then\n"
	"\t\t\t_countersink_files -d\n"
	"\t\telse\n"
	"\t\t\t_countersink_files -f\n"
	"\t\tfi ;;\n"
	"\t'<pid>') COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$cur\")) ;;\n"
	"\t'<process>')\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(cat /proc/[0-9]*/comm 2>/dev/null | grep -x '[A-Za-z0-9_.-]*' | sort -u)\" -- "
	"\"$cur\")) ;;\n"
	"\t'<program>')\n"
	"\t\t_countersink_add < <(compgen -c -- \"$cur\")\n"
	"\t\tif [[ $cur == */* ]]; then _countersink_files -d; fi ;;\n"
	"\t*) COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")) ;;\n"
	"\tesac\n"
	"}\n"
	"_countersink() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=run i=1 nr=0 program=0 "
	"operands values\n"
	"\tlocal ended=\n"
	"\tCOMPREPLY=()\n"
	"\tif ((COMP_CWORD > 1)) && [[ \" $_countersink_commands \" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
	"\t\tcommand=${COMP_WORDS[1]} i=2\n"
	"\tfi\n"
	"\toperands=$(_countersink_operands \"$command\")\n"
	"\t# What comes before the word: options, and operands. Bash splits --option=value into three words.\n"
	"\tfor (( ; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--)\n"
	"\t\t\tended=1\n"
	"\t\t\t[[ $operands == '<process>' ]] && operands='<program>'\n"
	"\t\t\tif [[ $operands == '<program>' ]]; then program=$((i + 1)); break; fi ;;\n"
	"\t\t=) ((i + 1 < COMP_CWORD)) && ((i++)) ;;\n"
	"\t\t-?*)\n"
	"\t\t\tif [[ ! $ended ]] && _countersink_values \"$command ${COMP_WORDS[i]}\" >/dev/null &&\n"
	"\t\t\t   [[ ${COMP_WORDS[i+1]} != '=' ]]; then\n"
	"\t\t\t\t((i + 1 < COMP_CWORD)) && ((i++))\n"
	"\t\t\tfi ;;\n"
	"\t\t*)\n"
	"\t\t\t((nr++))\n"
	"\t\t\tif [[ $operands == '<program>' ]]; then program=$i; break; fi ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tif ((program && program < COMP_CWORD)); then\n"
	"\t\tif declare -F _comp_command_offset >/dev/null; then\n"
	"\t\t\t_comp_command_offset \"$program\"\n"
	"\t\telif declare -F _command_offset >/dev/null; then\n"
	"\t\t\t_command_offset \"$program\"\n"
	"\t\telse\n"
	"\t\t\t_countersink_files -f\n"
	"\t\tfi\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [[ ! $ended && $cur == '=' ]] && values=$(_countersink_values \"$command $prev\"); then\n"
	"\t\tcur=\n"
	"\telif [[ ! $ended && $prev == '=' ]] && values=$(_countersink_values \"$command "
	"${COMP_WORDS[COMP_CWORD-2]}\"); then\n"
	"\t\t:\n"
	"\telif [[ ! $ended ]] && values=$(_countersink_values \"$command $prev\"); then\n"
	"\t\t:\n"
	"\telif [[ ! $ended && $cur == -* ]]; then\n"
	"\t\tvalues=$(_countersink_options \"$command\")\n"
	"\telif [[ $operands == '<'* ]] || ((nr == 0)); then\n"
	"\t\tvalues=$operands\n"
	"\telse\n"
	"\t\treturn\n"
	"\tfi\n"
	"\t_countersink_offer \"$values\"\n"
	"\tif ((COMP_CWORD == 1)) && [[ $cur != -* ]]; then COMPREPLY+=($(compgen -W \"$_countersink_commands\" -- "
	"\"$cur\")); fi\n"
	"}\n"
	"complete -o default -F _countersink countersink\n";

static void print_options(const struct csink_command *command)
{
	char name[CSINK_OPTION_NAME];

	printf("\t%s) echo '", command->name);
	for (uint32_t i = 0; i < command->nr_options; i++) {
		const struct csink_option *opt = &command->options[i];

		if (!csink_completion_is_option(opt))
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

static void print_values(const struct csink_command *command)
{
	struct csink_completed values;
	char name[CSINK_OPTION_NAME];

	for (uint32_t i = 0; i < command->nr_options; i++) {
		const struct csink_option *opt = &command->options[i];

		if (!csink_completion_is_option(opt) || !csink_completion_takes_value(opt))
			continue;
		csink_option_name(opt, name);
		printf("\t'%s --%s'", command->name, name);
		if (opt->short_name)
			printf(" | '%s -%c'", command->name, opt->short_name);
		csink_completion_of_option(opt, &values);
		printf(") echo '%s' ;;\n", csink_completion_name(&values));
	}
}

void csink_completion_print_bash(void)
{
	struct csink_completed operands;

	printf("# bash completion for countersink %s, made by: countersink completion bash\n_countersink_commands='",
	       CSINK_VERSION);
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		printf("%s%s", i ? " " : "", csink_commands[i]->name);
	printf("'\n_countersink_options() {\n\tcase $1 in\n");
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		print_options(csink_commands[i]);
	printf("\tesac\n}\n_countersink_values() {\n\tcase $1 in\n");
	for (uint32_t i = 0; i < csink_nr_commands; i++)
		print_values(csink_commands[i]);
	printf("\t*) return 1 ;;\n\tesac\n}\n_countersink_operands() {\n\tcase $1 in\n");
	for (uint32_t i = 0; i < csink_nr_commands; i++) {
		csink_completion_of_operands(csink_commands[i], &operands);
		printf("\t%s) echo '%s' ;;\n", csink_commands[i]->name, csink_completion_name(&operands));
	}
	printf("\tesac\n}\n");
	fputs(text, stdout);
}
