/* Removing a run directory with the one beside it that holds another user's recordings. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/collect/run_directory.h"
#include "preload/core/record/run_dir.h"
#include "tests/unit/tap.h"

static char top[] = "/tmp/countersink-test.XXXXXX";

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* More levels of directories than are removed. With @make, make them; else remove them. */
static void nest(const char *below, bool make)
{
	char path[PATH_MAX];
	int used = snprintf(path, sizeof(path), "%s", below);

	for (int i = 0; i < 8; i++) {
		used += snprintf(path + used, sizeof(path) - (size_t)used, "/d");
		if (make)
			mkdir(path, 0700);
	}
	for (int i = 0; i < 8 && !make; i++, used -= 2) {
		path[used] = '\0';
		rmdir(path);
	}
}

/* A user may have a directory beside a run directory of his own: that needs no privilege. */
static void make_run(char run[256], char word[300], char beside[300])
{
	snprintf(run, 256, "%s/run", top);
	mkdir(run, 0700);
	snprintf(word, 300, "%s/%u" CSINK_RUN_DIR_USER, run, (unsigned int)getuid());
	csink_run_dir_beside(run, getuid(), beside, 300);
	is_num(csink_run_dir_share(run, getuid()), 0, "a directory beside the run directory is made");
}

static void test_clear(void)
{
	char run[256], word[300], beside[300];

	make_run(run, word, beside);
	nest(beside, true);
	csink_run_directory_clear(run);
	ok(is_there(beside), "a directory of another user that cannot be emptied stays");
	ok(is_there(word), "the word that names a directory which stays is kept");
	nest(beside, false);
	csink_run_directory_clear(run);
	ok(!is_there(beside), "the second try removes the directory of another user");
	ok(!is_there(run), "the second try removes the run directory");
}

static void test_without_directory(void)
{
	char run[256], word[300], beside[300];

	make_run(run, word, beside);
	rmdir(beside);
	csink_run_directory_clear(run);
	ok(!is_there(run), "a word whose directory is gone is removed");
}

/* The launcher's own directory goes in any case, and no later run meets it. */
static void test_remove(void)
{
	char run[256], word[300], beside[300];
	struct csink_run_directory directory;

	make_run(run, word, beside);
	nest(beside, true);
	snprintf(directory.path, sizeof(directory.path), "%s", run);
	directory.fd = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	csink_run_directory_remove(&directory);
	ok(!is_there(run), "the launcher's run directory is removed though the one beside it stays");
	is_num(directory.fd, -1, "the removed run directory is closed");
}

int main(void)
{
	char command[128];

	if (!mkdtemp(top)) {
		perror(top);
		return 1;
	}
	test_clear();
	test_without_directory();
	test_remove();
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command) ? 1 : done();
}
