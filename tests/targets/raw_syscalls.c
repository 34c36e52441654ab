/* Nearly all of its time in the kernel: reads of /dev/zero, writes to /dev/null, getppid.  raw_syscalls [THOUSANDS]
 * (200).
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char **argv)
{
	uint64_t calls = 1000 * arg_num(argc, argv, 1, 200), bytes_in = 0, bytes_out = 0, parents = 0;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	static char buf[4096];
	pid_t parent = getppid();

	if (zero < 0 || null < 0)
		return 1;
	for (uint64_t i = 0; i < calls; i++) {
		bytes_in += (uint64_t)read(zero, buf, sizeof(buf));
		bytes_out += (uint64_t)write(null, buf, sizeof(buf));
		parents += syscall(SYS_getppid) == parent;
	}
	printf("read %llu, wrote %llu, asked %llu\n", (unsigned long long)bytes_in, (unsigned long long)bytes_out,
	       (unsigned long long)parents);
	return 0;
}
