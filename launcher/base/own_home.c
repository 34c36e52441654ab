/* See own_home.h. */
#include "launcher/base/own_home.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/cleanup.h"

static bool is_own(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_uid == geteuid();
}

/* In /etc/passwd alone: getpwuid(3) asks name services, over sockets, which a seccomp filter may kill for. */
static const char *home_by_passwd(void)
{
	static char home[PATH_MAX];
	CSINK_AUTO_FCLOSE FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *pw;

	*home = '\0';
	while (file && !*home && (pw = fgetpwent(file)) != NULL)
		if (pw->pw_uid == geteuid() && pw->pw_dir && strlen(pw->pw_dir) < sizeof(home))
			strcpy(home, pw->pw_dir);
	return home;
}

const char *csink_own_home(void)
{
	const char *home = getenv("HOME");

	if (home && *home == '/' && is_own(home))
		return home;
	home = home_by_passwd();
	return *home == '/' && is_own(home) ? home : NULL;
}

static bool is_own_or_in_own(const char *path)
{
	char parent[PATH_MAX];
	char *slash;

	if (is_own(path))
		return true;
	if (!access(path, F_OK) || errno != ENOENT || snprintf(parent, sizeof(parent), "%s", path) >= PATH_MAX)
		return false;
	slash = strrchr(parent, '/');
	if (slash == parent)
		slash++;
	*slash = '\0';
	return is_own(parent);
}

static bool own_base(const char *variable, const char *below_home, char *path, size_t size)
{
	const char *base = getenv(variable), *home;
	int len;

	if (base && *base == '/') {
		if (!is_own_or_in_own(base))
			return false;
		len = snprintf(path, size, "%s", base);
	} else {
		home = csink_own_home();
		if (!home)
			return false;
		len = snprintf(path, size, "%s/%s", home, below_home);
	}
	return len > 0 && (size_t)len < size;
}

bool csink_own_cache(char *path, size_t size)
{
	return own_base("XDG_CACHE_HOME", ".cache", path, size);
}

bool csink_own_state(char *path, size_t size)
{
	return own_base("XDG_STATE_HOME", ".local/state", path, size);
}
