/* A CPU that is offline, as tests/pmu/boot makes one, and what is said of an event that is wanted there. */
#include <fcntl.h>
#include <stdlib.h>

#include "tests/unit/explain_try.h"

int main(void)
{
	char text[32] = "";
	int fd = open("/sys/devices/system/cpu/offline", O_RDONLY | O_CLOEXEC);

	if (!can_explain())
		return done();
	ok(read(fd, text, sizeof(text) - 1) > 0 && text[0] >= '0' && text[0] <= '9', "CPU %d is offline", atoi(text));
	close(fd);
	call.pid = -1;
	call.cpu = atoi(text);
	blames("all of an offline CPU", ENODEV, "cpu", CSINK_CAUSE_TARGET);
	ok(strstr(found[0].text, "is offline; online are 0") != NULL, "the text reports the offline CPU: %s",
	   found[0].text);
	return done();
}
