/* See symbols_fetch.h. */
#include "launcher/symbols/symbols_fetch.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/own_home.h"
#include "launcher/base/progress.h"

bool csink_debuginfod_wanted;

/* ---- debuginfod ---- */

/* As <elfutils/debuginfod.h> has them; opened only when it is asked for, for it brings a web client along. */
struct debuginfod_client;
typedef struct debuginfod_client *(*begin_fn)(void);
typedef void (*end_fn)(struct debuginfod_client *client);
typedef int (*find_fn)(struct debuginfod_client *client, const unsigned char *build_id, int len, char **path);
typedef int (*progress_fn)(struct debuginfod_client *client, long done, long total);
typedef void (*set_progress_fn)(struct debuginfod_client *client, progress_fn progress);

static struct {
	struct debuginfod_client *client;
	find_fn debuginfo, executable;
	int err;
	bool is_tried;
} servers;

static int show_progress(struct debuginfod_client *client, long done, long total)
{
	(void)client;
	csink_progress("fetching debug information", done > 0 ? (uint64_t)done : 0, total > 0 ? (uint64_t)total : 0);
	return 0;
}

/* The library keeps what it fetched at home: at whose home, is not left to HOME alone. */
static bool choose_cache(void)
{
	char path[PATH_MAX - 32], client[PATH_MAX];
	const char *home = getenv("HOME"), *own = csink_own_home();

	if (getenv("DEBUGINFOD_CACHE_PATH") || (home && own && !strcmp(home, own) && !getenv("XDG_CACHE_HOME")))
		return true;
	if (!csink_own_cache(path, sizeof(path)))
		return false;
	snprintf(client, sizeof(client), "%s/debuginfod_client", path);
	return !setenv("DEBUGINFOD_CACHE_PATH", client, 1);
}

int csink_debuginfod_open(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	set_progress_fn set_progress;
	begin_fn begin;
	void *lib;

	if (servers.is_tried)
		return servers.err;
	servers.is_tried = true;
	servers.err = -ENOPKG;
	if (!urls || !urls[strspn(urls, " ")])
		return servers.err = -ENOTUNIQ;
	if (!choose_cache())
		return servers.err = -EACCES;
	lib = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	begin = lib ? (begin_fn)dlsym(lib, "debuginfod_begin") : NULL;
	servers.debuginfo = lib ? (find_fn)dlsym(lib, "debuginfod_find_debuginfo") : NULL;
	servers.executable = lib ? (find_fn)dlsym(lib, "debuginfod_find_executable") : NULL;
	set_progress = lib ? (set_progress_fn)dlsym(lib, "debuginfod_set_progressfn") : NULL;
	if (!begin || !servers.debuginfo || !servers.executable)
		return servers.err;
	servers.client = begin();
	if (!servers.client)
		return servers.err = -ENOMEM;
	if (set_progress)
		set_progress(servers.client, show_progress);
	return servers.err = 0;
}

int csink_debuginfod_fetch(const uint8_t *build_id, size_t len, bool executable)
{
	int err = csink_debuginfod_open();

	if (err)
		return err;
	return (executable ? servers.executable : servers.debuginfo)(servers.client, build_id, (int)len, NULL);
}
