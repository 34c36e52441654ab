/* Options: parsing, precedence, and the texts that derive from the table. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/commands/registry.h"
#include "launcher/session/spawn.h"
#include "tests/unit/tap.h"

#define MAX_WORDS 16

/* Parse a line of words for run; the words must outlive the options. */
static int parse(struct csink_options *o, char *line)
{
	static char *argv[MAX_WORDS];
	int argc = 0;

	for (char *word = strtok(line, " "); word && argc < MAX_WORDS - 1; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return csink_options_parse(o, csink_run_options, CSINK_NR_RUN_OPTS, argc, argv);
}

/* What an option comes to on a line; "!" and the error where it is refused. */
static const char *value(const char *line, enum csink_opt opt)
{
	static struct csink_options o;
	static char text[256], error[1024];

	snprintf(text, sizeof(text), "%s", line);
	if (parse(&o, text) >= 0)
		return csink_options_text(&o, opt);
	snprintf(error, sizeof(error), "!%s", o.error);
	return error;
}

static int operand(const char *line)
{
	struct csink_options o;
	char text[256];

	snprintf(text, sizeof(text), "%s", line);
	return parse(&o, text);
}

static void test_forms(void)
{
	is_str(value("run x", CSINK_OPT_FREQUENCY), "997", "an option that is not given has its default");
	is_str(value("run --frequency=5 x", CSINK_OPT_FREQUENCY), "5", "--long=value is parsed");
	is_str(value("run --frequency 5 x", CSINK_OPT_FREQUENCY), "5", "--long value is parsed");
	is_str(value("run -F5 x", CSINK_OPT_FREQUENCY), "5", "-ovalue is parsed");
	is_str(value("run -F 5 x", CSINK_OPT_FREQUENCY), "5", "-o value is parsed");
	is_str(value("run -aqF 5 x", CSINK_OPT_FREQUENCY), "5", "bundled letters: the last one takes the value");
	is_str(value("run -aqF 5 x", CSINK_OPT_ALL), "1", "bundled letters: a flag is set");
	is_str(value("run -F 5 -F 6 x", CSINK_OPT_FREQUENCY), "6", "an option given twice has the last value");
	is_str(value("run -o=x y", CSINK_OPT_OUTPUT), "=x", "a short option's value begins at once");
	is_str(value("run --quiet=off x", CSINK_OPT_QUIET), "off", "a flag takes =off");
	is_str(value("run --events -x y", CSINK_OPT_EVENTS), "-x", "a value may begin with -");
	is_str(value("run --output=a=b x", CSINK_OPT_OUTPUT), "a=b", "--long=a=b: the first = ends the name");
}

static void test_operands(void)
{
	is_num(operand("run"), 1, "without an operand the index is argc");
	is_num(operand("run x -F 5"), 1, "options end at the first word");
	is_num(operand("run -F 5 x"), 3, "an operand after options is found");
	is_num(operand("run -F 5 -- -x"), 4, "an operand after -- is found");
	is_num(operand("run -- --"), 2, "the second -- is an operand");
	is_num(operand("run - x"), 1, "a lone - is an operand");
}

static void test_refusals(void)
{
	ok(strstr(value("run --quit x", CSINK_OPT_ALL), "did you mean '--quiet'") != NULL, "a near name is suggested");
	ok(strstr(value("run --zzzzzz x", CSINK_OPT_ALL), "did you mean") == NULL,
	   "no name is suggested where none is near");
	is_str(value("run -zq x", CSINK_OPT_ALL), "!unknown option '-z' in '-zq'",
	       "an unknown letter in a bundle is named");
	is_str(value("run --report=1 x", CSINK_OPT_ALL), "!unknown option '--report'; did you mean '--no-report'?",
	       "a name that is only an environment variable is no option");
	is_str(value("run -c 0 x", CSINK_OPT_PERIOD), "!option --period: '0' is not a whole number above 0",
	       "--period=0 is refused");
	is_str(value("run -c +5 x", CSINK_OPT_PERIOD), "!option --period: '+5' is not a whole number above 0",
	       "--period=+5 is refused");
	is_str(value("run -c 0x10 x", CSINK_OPT_PERIOD), "!option --period: '0x10' is not a whole number above 0",
	       "--period=0x10 is refused");
	is_str(value("run --engine=sig x", CSINK_OPT_ENGINE),
	       "!option --engine: 'sig' is unknown; did you mean 'signal' or 'sigtrap'? (one of: auto, sigtrap, "
	       "signal, timer, "
	       "none)",
	       "a beginning of several choices: all are suggested");
	is_str(value("run --engine= x", CSINK_OPT_ENGINE),
	       "!option --engine: '' is unknown (one of: auto, sigtrap, signal, timer, none)",
	       "an empty choice is refused");
	is_num(operand("run --help --engine=x"), 3, "options after --help are not checked");
}

static void test_environment(void)
{
	struct csink_options o;
	char line[] = "run -F 7 x";

	setenv("COUNTERSINK_FREQUENCY", "50", 1);
	setenv("COUNTERSINK_ALL", "TRUE", 1);
	setenv("COUNTERSINK_PERIOD", "", 1);
	is_str(value("run x", CSINK_OPT_FREQUENCY), "50", "a value comes from the environment variable");
	parse(&o, line);
	is_num(o.values[CSINK_OPT_FREQUENCY].source, CSINK_FROM_OPTION, "an option overrules its environment variable");
	is_num(o.values[CSINK_OPT_ALL].source, CSINK_FROM_ENVIRONMENT, "a flag's value comes from the environment");
	ok(csink_options_bool(&o, CSINK_OPT_ALL), "a flag's environment variable may be in capitals");
	is_num(o.values[CSINK_OPT_PERIOD].source, CSINK_FROM_DEFAULT, "an empty environment variable counts as unset");
	is_num((long long)csink_options_number(&o, CSINK_OPT_PERIOD), 0, "an option without a value has the number 0");
	setenv("COUNTERSINK_FREQUENCY", "many", 1);
	is_str(value("run x", CSINK_OPT_ALL),
	       "!COUNTERSINK_FREQUENCY in the environment: 'many' is not a whole number above 0",
	       "a bad value of an environment variable is named");
	is_str(value("run -F 8 x", CSINK_OPT_FREQUENCY), "8",
	       "a bad environment variable is ignored if the option is given");
	unsetenv("COUNTERSINK_FREQUENCY");
	unsetenv("COUNTERSINK_ALL");
	unsetenv("COUNTERSINK_PERIOD");
}

static void test_numbers(void)
{
	uint64_t n;

	is_num(csink_number_parse("9223372036854775807", &n), 0, "the largest number is parsed");
	ok(n == INT64_MAX, "the largest number has its value");
	is_num(csink_number_parse("9223372036854775808", &n), -ERANGE, "one more than the largest number: ERANGE");
	is_num(csink_number_parse("99999999999999999999999", &n), -ERANGE, "a number of 23 digits: ERANGE");
	is_num(csink_number_parse("", &n), -EINVAL, "an empty number: EINVAL");
	is_num(csink_number_parse(" 5", &n), -EINVAL, "a number after a blank: EINVAL");
	is_num(csink_bool_parse("Yes"), 1, "'Yes' is true");
	is_num(csink_bool_parse("oFF"), 0, "'oFF' is false");
	is_num(csink_bool_parse("2"), -EINVAL, "'2' is no boolean: EINVAL");
}

/* Every table: names that fit, are found again, and do not clash. */
static void test_tables(void)
{
	for (uint32_t c = 0; c < csink_nr_commands; c++) {
		const struct csink_command *command = csink_commands[c];
		int clashes = 0, defaults_bad = 0;
		struct csink_options o;
		char name[] = "x", *argv[] = {name, NULL};

		for (uint32_t i = 0; i < command->nr_options; i++) {
			const struct csink_option *a = &command->options[i];

			clashes += strlen(CSINK_ENV_PREFIX) + strlen(a->id) >= CSINK_OPTION_NAME;
			for (int r = 1; r < CSINK_NR_REQUESTS; r++)
				clashes += a->short_name && a->short_name == csink_request_options[r].short_name;
			for (uint32_t k = 0; k < i; k++) {
				clashes += !strcmp(a->id, command->options[k].id);
				clashes += a->short_name && a->short_name == command->options[k].short_name;
			}
		}
		is_num(clashes, 0, command->name);
		/* Defaults are values that would be taken (or empty: none). */
		is_num(csink_options_parse(&o, command->options, command->nr_options, 1, argv), 1,
		       "a command's defaults are parsed without arguments");
		for (uint32_t i = 0; i < command->nr_options; i++)
			defaults_bad += command->options[i].flags & CSINK_OPT_BOOL &&
					csink_bool_parse(csink_options_text(&o, i)) < 0;
		is_num(defaults_bad, 0, "defaults of flags are flags");
		ok(csink_command_find(command->name) == command, "each command is found by its name");
	}
	ok(csink_command_find("no such command") == NULL, "an unknown command is not found");
}

static void test_help_width(void)
{
	static const struct csink_option table[] = {
		{"FORMAT", 'f', "first_value|second_value|third_value|fourth_value|fifth_and_last_value", "",
		 CSINK_OPT_NO_ENV, "text"},
	};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	csink_options_print_help(out, table, 1);
	fclose(out);
	ok(strstr(text, "\n  -f, --format=first_value|second_value|third_value|fourth_value|\n"
			"               fifth_and_last_value\n                            text\n") != NULL,
	   "a list of values that exceeds 80 columns continues below its first value");
	free(text);
}

static const char *variable(char **env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++) {
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}

static void test_child_environment(void)
{
	char *before[] = {"A=1",
			  "LD_PRELOAD=/x.so /y.so",
			  "COUNTERSINK_RUN_DIR=/old",
			  "COUNTERSINK_PERIOD=9",
			  "COUNTERSINK_ALL=1",
			  "COUNTERSINK_RUN_OWNER=5",
			  "Z=2",
			  NULL};
	char *plain[] = {"A=1", NULL}, *twice[] = {"LD_PRELOAD=/a.so:/l/lib.so", NULL};
	const char *texts[CSINK_NR_RUN_OPTS];
	char **env;

	for (int i = 0; i < CSINK_NR_RUN_OPTS; i++)
		texts[i] = csink_run_options[i].def;
	env = csink_env_build(before, "/l/lib.so", "/run/dir", texts);
	is_str(variable(env, "LD_PRELOAD"), "/x.so /y.so:/l/lib.so", "the library is appended to LD_PRELOAD");
	is_str(variable(env, "COUNTERSINK_RUN_DIR"), "/run/dir", "the run directory is in its environment variable");
	is_str(variable(env, "COUNTERSINK_FREQUENCY"), "997", "a value is handed on in its environment variable");
	ok(!variable(env, "COUNTERSINK_PERIOD"), "an empty value leaves no environment variable");
	ok(!variable(env, "COUNTERSINK_RUN_OWNER"), "no outer run is left");
	is_str(variable(env, "COUNTERSINK_ALL"), "1", "a variable that is not the library's stays");
	is_str(variable(env, "A"), "1", "variables of the program stay");
	is_str(variable(env, "Z"), "2", "the last variable stays");
	free(env);
	env = csink_env_build(plain, "/l/lib.so", "/r", texts);
	is_str(variable(env, "LD_PRELOAD"), "/l/lib.so", "LD_PRELOAD is the library where nothing was preloaded");
	free(env);
	env = csink_env_build(twice, "/l/lib.so", "/r", texts);
	is_str(variable(env, "LD_PRELOAD"), "/a.so:/l/lib.so", "LD_PRELOAD has the library once");
	free(env);
	env = csink_env_build(before, NULL, NULL, texts);
	is_str(variable(env, "LD_PRELOAD"), "/x.so /y.so", "without a library LD_PRELOAD is unchanged");
	is_str(variable(env, "COUNTERSINK_PERIOD"), "9", "without a library no variable is changed");
	free(env);
}

int main(void)
{
	for (char **v = environ; *v;) { /* a clean start */
		char name[256];

		if (strncmp(*v, CSINK_ENV_PREFIX, strlen(CSINK_ENV_PREFIX))) {
			v++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*v, "="), *v);
		unsetenv(name);
		v = environ;
	}
	test_forms();
	test_operands();
	test_refusals();
	test_environment();
	test_numbers();
	test_tables();
	test_help_width();
	test_child_environment();
	return done();
}
