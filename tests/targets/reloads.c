/* reloads OBJECT [keep]: loads it, works, unloads it, works; three times. keep: it stays. */
#include <dlfcn.h>

#include "guest.h"

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		void *object = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);

		if (!object) {
			printf("%s\n", dlerror());
			return 1;
		}
		guest_burn(150);
		if (argc > 2)
			return 3;
		printf("closed: %d\n", dlclose(object));
		guest_burn(150);
	}
	return 3;
}
