/*
 * Preloaded into countersink-send: SEND_SHIM=names, no look-up of a name ends; SEND_SHIM=options, a libcurl that cannot
 * sign requests; SEND_SHIM=memory, one that has no memory for any request but the first.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUT_OF_MEMORY = 27, UNKNOWN_OPTION = 48, AWS_SIGV4 = 10305 }; /* of curl/curl.h */

int curl_easy_setopt(void *curl, int option, ...);
int curl_easy_perform(void *curl);

static int is_wanted(const char *what)
{
	const char *value = getenv("SEND_SHIM");

	return value && !strcmp(value, what);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(real))dlsym(RTLD_NEXT, "getaddrinfo");

	while (is_wanted("names"))
		pause();
	return real(name, service, hints, list);
}

/* Each value is one word: a pointer, a long, or a number of 64 bits. */
int curl_easy_setopt(void *curl, int option, ...)
{
	int (*real)(void *, int, ...) = (__typeof__(real))dlsym(RTLD_NEXT, "curl_easy_setopt");
	va_list list;
	void *value;

	va_start(list, option);
	value = va_arg(list, void *);
	va_end(list);
	return option == AWS_SIGV4 && is_wanted("options") ? UNKNOWN_OPTION : real(curl, option, value);
}

int curl_easy_perform(void *curl)
{
	static int nr;
	int (*real)(void *) = (__typeof__(real))dlsym(RTLD_NEXT, "curl_easy_perform");

	return nr++ && is_wanted("memory") ? OUT_OF_MEMORY : real(curl);
}
