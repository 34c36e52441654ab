/* look_up TIMES: has the loader look, so many times, for a name that no object has. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int nr_found = 0;

	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		nr_found += dlsym(RTLD_DEFAULT, "a_name_that_no_object_has") != NULL;
	printf("look_up found %d\n", nr_found);
	return 0;
}
