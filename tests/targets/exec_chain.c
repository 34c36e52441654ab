/* Works a little, then replaces itself, again and again.  exec_chain [LINKS] [MICROSECONDS each] (100, 2000). */
#include <stdio.h>
#include <unistd.h>

#include "work.h"

static __attribute__((noinline, noclone)) uint64_t link_work(uint64_t x, uint64_t us)
{
	return spin(x, us * ROUNDS_MS / 1000);
}

int main(int argc, char **argv)
{
	uint64_t links = arg_num(argc, argv, 1, 100), us = arg_num(argc, argv, 2, 2000), x = arg_num(argc, argv, 3, 1);
	char links_text[24], us_text[24], x_text[24];

	x = link_work(x, us);
	if (links == 0) {
		printf("end of the chain: %llu\n", (unsigned long long)x);
		return 0;
	}
	snprintf(links_text, sizeof(links_text), "%llu", (unsigned long long)links - 1);
	snprintf(us_text, sizeof(us_text), "%llu", (unsigned long long)us);
	snprintf(x_text, sizeof(x_text), "%llu", (unsigned long long)x);
	execl("/proc/self/exe", argv[0], links_text, us_text, x_text, NULL);
	return 1;
}
