/*
 * reloads OBJECT            loads it, works, unloads it, works; three times
 * reloads keep OBJECT...    loads each, with lazy binding, and works; they stay
 */
#include <dlfcn.h>
#include <string.h>

#include "guest.h"

static void *load(const char *file, int mode)
{
	void *object = dlopen(file, mode | RTLD_LOCAL);

	if (!object) {
		printf("%s\n", dlerror());
		exit(1);
	}
	return object;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "keep")) {
		for (int i = 2; i < argc; i++)
			load(argv[i], RTLD_LAZY);
		guest_burn(300);
		return 3;
	}
	for (int i = 0; i < 3; i++) {
		void *object = load(argc > 1 ? argv[1] : "", RTLD_NOW);

		guest_burn(150);
		printf("closed: %d\n", dlclose(object));
		guest_burn(150);
	}
	return 3;
}
