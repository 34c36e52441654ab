/* Loads that survive: readable memory is read, other memory is reported, and neither the mask nor errno changes. */
#include "preload/core/safe_load.h"
#include "tests/unit/tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static char *three_pages(void)
{
	char *map = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(map, 0x5a, 2 * 4096);
	mprotect(map + 4096, 4096, PROT_NONE);
	return map;
}

static void check_readable(char *map)
{
	uintptr_t base = (uintptr_t)map;

	ok(csink_readable(base, 1) && csink_readable(base, 4096), "a mapped page is readable");
	ok(csink_readable(base + 2 * 4096, 4096), "a page that was never touched is readable");
	ok(!csink_readable(base + 4096, 1), "a PROT_NONE page is not readable");
	ok(!csink_readable(base + 4095, 2), "a range that ends in a PROT_NONE page is not readable");
	ok(!csink_readable(base + 1, 3 * 4096 - 2), "a range across a PROT_NONE page is not readable");
	ok(csink_readable(base + 4095, 1), "the last byte before it is");
	ok(!csink_readable(0, 8) && !csink_readable(8, 8), "null is not readable");
	ok(!csink_readable(UINTPTR_MAX - 3, 8), "a range that wraps is not readable");
	ok(!csink_readable(0xffff800000000000UL, 8), "kernel memory is not readable");
	ok(!csink_readable(0x8000000000000000UL, 8), "a non-canonical address is not readable");
	munmap(map + 2 * 4096, 4096);
	ok(!csink_readable(base + 2 * 4096, 1), "an unmapped page is not");
	ok(csink_readable((uintptr_t)check_readable, 16), "a page of code is readable");
}

static void check_mask_and_errno(char *map)
{
	sigset_t odd, before, after;

	memset(&before, 0, sizeof(before)); /* the kernel fills the first eight bytes only */
	memset(&after, 0, sizeof(after));
	sigemptyset(&odd);
	sigaddset(&odd, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &odd, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	errno = 4711;
	(void)csink_readable((uintptr_t)map, 8);
	(void)csink_readable((uintptr_t)map + 4096, 8);
	is_num(errno, 4711, "a refused load keeps errno");
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	ok(!memcmp(&before, &after, sizeof(before)), "the signal mask is kept");
}

static void check_loader(char *map)
{
	struct csink_stack_bounds unknown = {0, 0}, stack = {(uintptr_t)map, (uintptr_t)map + 4096};
	struct csink_loader loader;
	uint64_t value = 0;

	csink_loader_init(&loader, &unknown, (uintptr_t)map);
	ok(csink_load_word(&loader, (uintptr_t)map + 8, &value) && value == 0x5a5a5a5a5a5a5a5aULL, "a word is loaded");
	ok(csink_load_word(&loader, (uintptr_t)map + 803, &value), "an unaligned word is loaded");
	is_num(loader.nr_checks, 1, "a page is checked once");
	ok(!csink_load_word(&loader, (uintptr_t)map + 4092, &value), "a word half in an unreadable page is refused");
	ok(!csink_load_word(&loader, 0, &value) && !csink_load_word(&loader, UINTPTR_MAX - 2, &value),
	   "words at null and at the end of memory are refused");

	csink_loader_init(&loader, &stack, (uintptr_t)map + 512);
	ok(csink_load_word(&loader, (uintptr_t)map + 512, &value) &&
		   csink_load_word(&loader, (uintptr_t)map + 4088, &value),
	   "words of the known stack are loaded");
	is_num(loader.nr_checks, 0, "words of the known stack are loaded without a check");
	ok(!csink_load_word(&loader, (uintptr_t)map + 4089, &value), "a word over the stack's end is checked");
	ok(csink_load_word(&loader, (uintptr_t)map + 504, &value) && loader.nr_checks > 0,
	   "a word below sp is checked");
}

int main(void)
{
	char *map = three_pages();

	check_loader(map);
	check_readable(map);
	check_mask_and_errno(map);
	return done();
}
