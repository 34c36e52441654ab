/*
 * Loads an object and runs its main():
 *
 *   load_main OBJECT ARGUMENTS...
 */
#include <dlfcn.h>
#include <stddef.h>

int main(int argc, char **argv)
{
	void *object = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*run)(int, char **) = object ? (int (*)(int, char **))dlsym(object, "main") : NULL;

	return run ? run(argc - 1, argv + 1) : 2;
}
