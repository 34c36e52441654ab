/* See remote.h. */
#include "launcher/attach/remote.h"

#include <errno.h>
#include <string.h>

#include "include/internal/base.h"

enum { MAX_PAGES = 1024, MAX_PIECES = 256 };

int csink_remote_copy(int32_t pid, void *to, uint64_t from, size_t bytes)
{
	struct iovec ours = {to, bytes}, theirs = {(void *)(uintptr_t)from, bytes};
	ssize_t n = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EFAULT;
}

static uint32_t copy_some(int32_t pid, const struct csink_remote_piece *pieces, uint32_t nr)
{
	struct iovec ours[MAX_PIECES], theirs[MAX_PIECES];
	uint32_t done = 0;
	ssize_t n;

	for (uint32_t i = 0; i < nr; i++) {
		ours[i] = (struct iovec){pieces[i].to, pieces[i].bytes};
		theirs[i] = (struct iovec){(void *)(uintptr_t)pieces[i].from, pieces[i].bytes};
	}
	n = process_vm_readv(pid, ours, nr, theirs, nr, 0);
	for (; done < nr && n >= (ssize_t)pieces[done].bytes; done++)
		n -= (ssize_t)pieces[done].bytes;
	return done;
}

uint32_t csink_remote_copy_each(int32_t pid, const struct csink_remote_piece *pieces, uint32_t nr)
{
	uint32_t done = 0;

	while (done < nr) {
		uint32_t some = CSINK_MIN(nr - done, (uint32_t)MAX_PIECES);
		uint32_t n = copy_some(pid, pieces + done, some);

		done += n;
		if (n < some)
			break;
	}
	return done;
}

void csink_remote_begin(struct csink_remote *remote, int32_t pid)
{
	remote->pid = pid;
	remote->nr_copied = 0;
	remote->stack = NULL;
	remote->stack_at = remote->stack_bytes = 0;
	memset(remote->pages, 0, sizeof(remote->pages));
}

static const char *page_of(struct csink_remote *remote, uint64_t number)
{
	uint32_t slot = (uint32_t)(number % CSINK_REMOTE_PAGES);

	if (!number || remote->pages[slot] == number)
		return number ? remote->copies[slot] : NULL;
	if (remote->nr_copied++ >= MAX_PAGES)
		return NULL;
	remote->pages[slot] = 0;
	if (csink_remote_copy(remote->pid, remote->copies[slot], number * CSINK_REMOTE_PAGE, CSINK_REMOTE_PAGE))
		return NULL;
	remote->pages[slot] = number;
	return remote->copies[slot];
}

bool csink_remote_load(struct csink_remote *remote, uint64_t at, uint64_t *value)
{
	const char *page;

	if (at - remote->stack_at < remote->stack_bytes && remote->stack_bytes - (at - remote->stack_at) >= 8) {
		memcpy(value, remote->stack + (at - remote->stack_at), sizeof(*value));
		return true;
	}
	if (at % 8) /* no word of an interpreter's lies across two pages */
		return false;
	page = page_of(remote, at / CSINK_REMOTE_PAGE);
	if (page)
		memcpy(value, page + at % CSINK_REMOTE_PAGE, sizeof(*value));
	return page != NULL;
}
