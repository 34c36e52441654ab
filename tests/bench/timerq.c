/*
 * The timer queue beside __pmAF of Performance Co-Pilot.
 * usage: timerq [behaviour|schedule|cost]...
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/timerq_peer.h"

/* What the exec probe runs: whoever still has a timer on us shows it now. */
static int survive(void)
{
	uint64_t end = peer_now() + 200 * MS;

	while (peer_now() < end)
		;
	return write(STDOUT_FILENO, "the new program survives", 24) != 24;
}

int main(int argc, char **argv)
{
	static char *all[] = {"behaviour", "schedule", "cost"};
	const char *missing;
	int i;

	if (argc == 2 && !strcmp(argv[1], "survive"))
		return survive();
	missing = peer_pcp.open();
	if (missing)
		printf("No __pmAF beside: %s.\n", missing);
	if (argc < 2) {
		argv = all - 1;
		argc = 4;
	}
	for (i = 1; i < argc; i++) {
		printf("%s", i > 1 ? "\n" : "");
		if (!strcmp(argv[i], "behaviour")) {
			behaviour_main("/proc/self/exe", !missing);
		} else if (!strcmp(argv[i], "schedule")) {
			schedule_main(!missing);
		} else if (!strcmp(argv[i], "cost")) {
			cost_main(!missing);
		} else {
			fprintf(stderr, "usage: timerq [behaviour|schedule|cost]...\n");
			return 2;
		}
	}
	return 0;
}
