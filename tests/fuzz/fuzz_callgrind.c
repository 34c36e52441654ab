/* libFuzzer target: bytes as what callgrind wrote of a run. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/gate/callgrind.h"
#include "launcher/gate/gate_functions.h"
#include "launcher/gate/placement.h"
#include "launcher/gate/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csink_gate_functions functions = {0};
	struct csink_gate_placement placement = {0};
	struct csink_gate_run run = {0};
	char path[64], why[160];
	int fd;

	snprintf(path, sizeof(path), "/tmp/countersink-fuzz-callgrind.%d", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	csink_gate_callgrind_read(path, &functions, &placement, &run, why, sizeof(why));
	unlink(path);
	csink_gate_weights_free(&run.weights);
	csink_gate_functions_free(&functions);
	csink_gate_placement_free(&placement);
	return 0;
}
