/* Where the profile goes: templates, places that can and cannot be written, the fallback. */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/session/output_place.h"
#include "tests/unit/tap.h"

static char directory[] = "/tmp/countersink-test.XXXXXX";

static const char *expanded(const char *template)
{
	static const struct csink_output_names names = {
		.pid = 1234, .host = "a/b", .command = "/usr/bin/prog", .rank = "7"};
	static char out[64], why[256];

	return csink_output_expand(template, &names, out, sizeof(out), why, sizeof(why)) ? why : out;
}

static void test_templates(void)
{
	char out[8], why[128];
	const struct csink_output_names names = {.pid = 1, .host = "h", .command = "c", .rank = "0"};

	is_str(expanded("x.pb.gz"), "x.pb.gz", "a template without percent signs is unchanged");
	is_str(expanded("%p"), "1234", "%p is the PID");
	is_str(expanded("%c-%r"), "prog-7", "the last component of the command, and the rank");
	is_str(expanded("d/%h"), "d/a_b", "a slash in a host's name is replaced");
	is_str(expanded("%%p"), "%p", "two percent signs are one");
	is_str(expanded("%p%p"), "12341234", "%p twice is the PID twice");
	ok(strstr(expanded("a%"), "means nothing") != NULL, "a percent sign at the end is refused");
	ok(strstr(expanded("%d"), "%p pid") != NULL, "an unknown letter is refused with the list of letters");
	ok(strstr(expanded(""), "empty") != NULL, "an empty path is refused");
	is_num(csink_output_expand("1234567", &names, out, sizeof(out), why, sizeof(why)), 0,
	       "a name that just fits is expanded");
	is_num(csink_output_expand("12345678", &names, out, sizeof(out), why, sizeof(why)), -ENAMETOOLONG,
	       "a name that is too long: ENAMETOOLONG");
	is_num(csink_output_expand("1234%%%%", &names, out, sizeof(out), why, sizeof(why)), 0,
	       "a long host name is expanded as a whole");
}

static const char *of_rank(const char *template, const char *rank)
{
	const struct csink_output_names names = {.pid = 1, .host = "..", .command = "/", .rank = rank};
	static char out[300], why[128];

	return csink_output_expand(template, &names, out, sizeof(out), why, sizeof(why)) ? why : out;
}

/* What comes from the environment is part of a name, and no way out of the directory. */
static void test_values(void)
{
	char many[5000];

	is_str(of_rank("d/%r", ".."), "d/__", "a rank of two dots");
	is_str(of_rank("d/%r/x", ".."), "d/__/x", "a rank of two dots in the middle is replaced");
	is_str(of_rank("%r/x", "."), "_/x", "a rank of one dot at the start is replaced");
	is_str(of_rank("d/%r%r", "."), "d/__", "two ranks of one dot are replaced together");
	is_str(of_rank("d/.%r", "."), "d/__", "a rank of one dot after a dot is replaced");
	is_str(of_rank("d/%h/%c", ""), "d/__/_", "a host's name; a command that has none");
	is_str(of_rank("d/%r", "..."), "d/...", "three dots are a name");
	is_str(of_rank("../%r", "1"), "../1", "dots of the template stay");
	is_str(of_rank("d/%r", "../../x"), "d/.._.._x", "slashes in a rank are replaced");
	is_str(of_rank("d/%r", "a\nb\033c\177"), "d/a_b_c_", "control characters in a rank are replaced");
	memset(many, '7', sizeof(many));
	many[sizeof(many) - 1] = '\0';
	is_num((long long)strlen(of_rank("%r", many)), 100, "a very long rank is cut");
}

static char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES];

static void test_rank(void)
{
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("PMIX_RANK");
	unsetenv("PMI_RANK");
	unsetenv("SLURM_PROCID");
	is_str(csink_rank_take(values), "0", "without a parallel job the rank is 0");
	setenv("SLURM_PROCID", "3", 1);
	is_str(csink_rank_take(values), "3", "the rank is Slurm's SLURM_PROCID");
	setenv("PMIX_RANK", "5", 1);
	setenv("PMI_RANK", "4", 1);
	is_str(csink_rank_take(values), "4", "MPI's own number comes before the batch system's");
	setenv("OMPI_COMM_WORLD_RANK", "", 1);
	is_str(csink_rank_take(values), "4", "an empty one is none");
	setenv("SLURM_STEP_NUM_TASKS", "12345678901234567890", 1);
	csink_rank_take(values);
	is_str(values[1], "4", "the values are copied in their order");
	is_str(values[6], "123456789012345", "a long one is cut");
	unsetenv("SLURM_STEP_NUM_TASKS");
	unsetenv("PMIX_RANK");
	unsetenv("PMI_RANK");
	unsetenv("SLURM_PROCID");
}

static int check(const char *path)
{
	char why[PATH_MAX + 128];

	return csink_output_check(path, why, sizeof(why));
}

static void test_places(void)
{
	is_num(check("new.pb.gz"), 0, "a new file in the working directory is accepted");
	is_num(access("new.pb.gz", F_OK), -1, "the check creates no file");
	is_num(check("/nowhere/x"), -ENOENT, "a missing directory: ENOENT");
	is_num(check("."), -EISDIR, "a directory as the file: EISDIR");
	is_num(check("x/"), -EISDIR, "a missing directory with a slash at its end: EISDIR");
	is_num(check("/x_in_root"), geteuid() ? -EACCES : 0,
	       "a file in the root directory is checked by its directory");
	is_num(check("/dev/null"), 0, "a device is accepted");
	is_num(check("/dev/null/x"), -ENOTDIR, "a file below a device: ENOTDIR");
	mkdir("closed", 0500);
	is_num(check("closed/x"), geteuid() ? -EACCES : 0,
	       "a directory without write permission: EACCES, but for root");
}

static void test_fallback(void)
{
	char out[PATH_MAX], home[PATH_MAX + 8], want[PATH_MAX + 32];
	const struct passwd *pw = getpwuid(geteuid());

	snprintf(home, sizeof(home), "%s/home", getcwd(out, sizeof(out)));
	setenv("TMPDIR", "/t", 1);
	mkdir("home", 0755);
	setenv("HOME", home, 1);
	is_num(csink_output_fallback("/x/y.gz", 0, out, sizeof(out)), 0, "the first fallback exists");
	is_str(out, "/t/y.gz", "the first fallback is in $TMPDIR");
	csink_output_fallback("/x/y.gz", 1, out, sizeof(out));
	is_str(out, "/tmp/y.gz", "the second fallback is in /tmp");
	csink_output_fallback("/x/", 2, out, sizeof(out));
	snprintf(want, sizeof(want), "%s/countersink.pb.gz", home);
	is_str(out, want, "the third fallback is in the home directory, with the default name for an empty one");
	csink_output_fallback("/x/..", 2, out, sizeof(out));
	is_str(out, want, ".. is replaced by the default name");
	is_num(csink_output_fallback("/x/y.gz", 3, out, sizeof(out)), 0, "the fourth fallback exists");
	ok(!strncmp(out, "/tmp/y.gz.", 10) && strlen(out) == 18,
	   "the fourth fallback is a name in /tmp that cannot be guessed");
	is_num(csink_output_fallback("/x/y.gz", 4, out, sizeof(out)), -ENOENT, "there is no fifth fallback: ENOENT");
	if (geteuid()) {
		setenv("HOME", "/", 1);
		csink_output_fallback("/x/y.gz", 2, out, sizeof(out));
		ok(strcmp(out, "//y.gz"), "a HOME that belongs to another user is not taken");
	} else {
		if (chown("home", 65534, 65534))
			abort();
		snprintf(want, sizeof(want), "%s/y.gz", pw ? pw->pw_dir : "");
		csink_output_fallback("/x/y.gz", 2, out, sizeof(out));
		is_str(out, want, "a HOME that belongs to another user is not taken");
	}
	unsetenv("TMPDIR");
	csink_output_fallback("y.gz", 0, out, sizeof(out));
	is_str(out, "/tmp/y.gz", "without TMPDIR the fallback is /tmp");
}

int main(void)
{
	char command[128];

	if (!mkdtemp(directory) || chdir(directory)) {
		perror(directory);
		return 1;
	}
	test_templates();
	test_values();
	test_rank();
	test_places();
	test_fallback();
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	ok(!chdir("/") && !system(command), "the test's files are removed");
	return done();
}
