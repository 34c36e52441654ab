/* Writes a table of Go in each form into a directory: what the fuzzer of its reader starts from. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/made_go.h"

int main(int argc, char **argv)
{
	static uint8_t image[MADE_GO_BYTES];
	char path[4096];

	for (int i = 0; argc == 2 && i < 6; i++) {
		FILE *file;

		made_go_make(image, (enum csink_go_form)(i % 3), i < 3);
		snprintf(path, sizeof(path), "%s/form-%d", argv[1], i);
		file = fopen(path, "w");
		if (!file || fwrite(image, sizeof(image), 1, file) != 1 || fclose(file))
			return 1;
	}
	return argc != 2;
}
