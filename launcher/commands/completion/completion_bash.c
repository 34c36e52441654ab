/* Completion for bash: see completion.h. */
#include <stdio.h>

#include "include/internal/base.h"
#include "launcher/commands/completion/completion.h"

static void print_options(const struct csink_command *command)
{
	char name[CSINK_OPTION_NAME];

	printf("\t%s) echo '", command->name);
	CSINK_COMPLETION_EACH(opt, command)
	{
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

	CSINK_COMPLETION_EACH(opt, command)
	{
		if (!csink_completion_takes_value(opt))
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
	fputs(csink_completion_bash, stdout);
}
