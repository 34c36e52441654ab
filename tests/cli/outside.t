#!/bin/bash
# Programs that cannot be injected are sampled from outside, in the profile of the run.
. "$(dirname "$0")/lib.sh"

if ! countersink stat -e task-clock -- true 2>/dev/null; then
	skip_all "perf_event_open is refused here"
fi

# A program whose work is known: three parts in leaf, one in other.
cat >split.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void leaf(long n)
{
	for (long i = 0; i < n; i++)
		sink += (unsigned long)i;
}

__attribute__((noinline)) void other(long n)
{
	for (long i = 0; i < n; i++)
		sink += (unsigned long)i * 2;
}

int main(int argc, char **argv)
{
	clock_t end = clock() + (clock_t)(atof(argv[1]) * CLOCKS_PER_SEC);

	while (clock() < end) {
		leaf(150000);
		other(50000);
	}
	if (argc > 2) {
		execvp(argv[2], argv + 2);
		return 127;
	}
	return 0;
}
C
gcc -O1 -fno-inline -o dynamic split.c
gcc -O1 -fno-inline -static -o static split.c


countersink -a -o s.pb.gz -- ./static 0.3 2>err
is $? 0 "a static command runs"
like "$(cat err)" 'engine +from outside' "a static command is sampled from outside"
like "$(cat err)" 'outside .*: static$' "the head names what was sampled from outside"
like "$(cat err)" '[0-9] ms +static +leaf$' "a static command's functions are named"
unlike "$(cat err)" 'unprofiled|not injected' "it is not called unprofiled"

done_testing
