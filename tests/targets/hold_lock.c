/*
 * hold_lock FILE read|write|wait   take a lock of the process on byte 0, say "locked", keep it until standard input
 * ends. wait: for a write lock, as long as it takes. hold_lock FILE test              status 0 if somebody has it
 * locked, 1 if not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	char byte;
	int fd;

	if (argc != 3)
		return 2;
	fd = open(argv[1], strcmp(argv[2], "test") ? O_RDWR : O_RDONLY);
	if (fd < 0) {
		perror(argv[1]);
		return 2;
	}
	if (!strcmp(argv[2], "test"))
		return fcntl(fd, F_GETLK, &lock) ? 2 : lock.l_type == F_UNLCK;
	if (!strcmp(argv[2], "read"))
		lock.l_type = F_RDLCK;
	if (fcntl(fd, strcmp(argv[2], "wait") ? F_SETLK : F_SETLKW, &lock)) {
		perror("fcntl");
		return 2;
	}
	puts("locked");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
		errno = 0;
	return 0;
}
