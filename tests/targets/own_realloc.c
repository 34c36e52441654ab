/* Preloaded: a function of an allocator that cannot be called before its own constructor. */
#include <dlfcn.h>
#include <stddef.h>

void *realloc(void *was, size_t bytes);

static void *(*next)(void *was, size_t bytes);

__attribute__((constructor)) static void begin(void)
{
	next = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
}

void *realloc(void *was, size_t bytes)
{
	return next(was, bytes);
}
