/*
 * Loads libguest_plug.so in the ways that profilers stumble over:
 *   guest_loader WAY [DIRECTORY]   the directory, where a path is to be given
 * Its own RUNPATH is $ORIGIN/plugs, where libguest_outer.so is; that one's is $ORIGIN/inner.
 */
#include <dlfcn.h>
#include <link.h>

#include "guest.h"

#define PLUG "libguest_plug.so"
#define OUTER "libguest_outer.so"

static int use(void *object)
{
	void (*run)(void) = object ? (void (*)(void))dlsym(object, "plug_run") : NULL;

	if (!run) {
		printf("loader: %s\n", dlerror());
		return 1;
	}
	run();
	guest_burn(30);
	printf("closed: %d\n", dlclose(object));
	return 3;
}

static int runpath(int argc, char **argv)
{
	int flags = argc > 1 && !strcmp(argv[1], "deepbind") ? RTLD_DEEPBIND : 0;
	void *object = dlopen(OUTER, RTLD_NOW | flags);
	void (*load)(const char *, int) = object ? (void (*)(const char *, int))dlsym(object, "plug_load") : NULL;

	if (!load) {
		printf("loader: %s\n", dlerror());
		return 1;
	}
	load(PLUG, flags);
	/* Not by ours. */
	printf("here: %s\n", dlopen(PLUG, RTLD_NOW | RTLD_NOLOAD) ? "found" : "not found");
	guest_burn(30);
	return 3;
}

static int by_path(int argc, char **argv, int flags)
{
	char path[4096];

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "%s/" PLUG, argv[1]);
	return use(dlopen(path, RTLD_NOW | flags));
}

static int deepbind(int argc, char **argv)
{
	return by_path(argc, argv, RTLD_DEEPBIND);
}

static int lazily(int argc, char **argv)
{
	char path[4096];

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "%s/" PLUG, argv[1]);
	return use(dlopen(path, RTLD_LAZY | RTLD_DEEPBIND));
}

/* The object, and a C library of its own below it; nothing that was preloaded. */
static int own_namespace(int argc, char **argv)
{
	char path[4096];
	struct link_map *map;
	void *object;

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "%s/" PLUG, argv[1]);
	object = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	if (object && dlinfo(object, RTLD_DI_LINKMAP, &map) == 0)
		for (; map; map = map->l_next)
			printf("there: %s\n", strrchr(map->l_name, '/') ? strrchr(map->l_name, '/') + 1 : map->l_name);
	return use(object);
}

static const struct guest_way ways[] = {
	{"runpath", runpath}, {"deepbind", deepbind}, {"lazily", lazily}, {"namespace", own_namespace}, {NULL, NULL},
};

int main(int argc, char **argv)
{
	return guest_main(ways, argc, argv);
}
