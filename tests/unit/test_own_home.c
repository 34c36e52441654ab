/* Where this user's files are at home, whatever HOME says. */
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/own_home.h"
#include "tests/unit/tap.h"

static char dir[] = "/tmp/countersink-test.XXXXXX";

static void test_own(void)
{
	char home[300], want[320], path[PATH_MAX];

	snprintf(home, sizeof(home), "%s/home", dir);
	mkdir(home, 0755);
	setenv("HOME", home, 1);
	unsetenv("XDG_CACHE_HOME");
	is_str(csink_own_home(), home, "HOME is this user's");
	snprintf(want, sizeof(want), "%s/.cache", home);
	ok(csink_own_cache(path, sizeof(path)), "the home directory has a cache directory");
	is_str(path, want, "the cache directory is below the home directory");
	snprintf(want, sizeof(want), "%s/cache", home);
	setenv("XDG_CACHE_HOME", want, 1);
	ok(csink_own_cache(path, sizeof(path)), "XDG_CACHE_HOME that is to be made in it");
	is_str(path, want, "the missing XDG_CACHE_HOME directory is named");
	ok(access(want, F_OK), "the name alone creates no directory");
	ok(!csink_own_cache(path, 4), "a buffer that is too short is refused");
}

/* sudo leaves the caller's HOME if it is configured to keep the environment. */
static void test_other(void)
{
	const struct passwd *pw = getpwuid(geteuid());
	char home[300], cache[320], path[PATH_MAX] = "";
	struct stat st;

	snprintf(home, sizeof(home), "%s/other", dir);
	mkdir(home, 0755);
	if (geteuid())
		strcpy(home, "/"); /* root's */
	else if (chown(home, 65534, 65534))
		abort();
	setenv("HOME", home, 1);
	unsetenv("XDG_CACHE_HOME");
	if (pw && !stat(pw->pw_dir, &st) && st.st_uid == geteuid())
		is_str(csink_own_home(), pw->pw_dir, "HOME is another user's: the password database has ours");
	else
		is_str(csink_own_home(), NULL, "HOME is another user's, and this one has none");
	if (csink_own_cache(path, sizeof(path)))
		ok(strncmp(path, home, strlen(home)) || !strcmp(home, "/"),
		   "without a home directory there is no cache in it");
	else
		ok(1, "without a home directory there is no cache in it");
	snprintf(cache, sizeof(cache), "%s/cache", home);
	setenv("XDG_CACHE_HOME", cache, 1);
	path[0] = '\0';
	csink_own_cache(path, sizeof(path));
	ok(strcmp(path, cache), "XDG_CACHE_HOME below another user's HOME is not used");
}

int main(void)
{
	char command[128];

	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	test_own();
	test_other();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : done();
}
