/* The key of the launcher's hash tables (hash.h). */
#include "launcher/base/hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

uint64_t csink_hash_key[2];

/* Before main, so that no look-up has to ask whether there is a key. Never blocks. */
static __attribute__((constructor)) void draw_key(void)
{
	const void *at_exec = (const void *)getauxval(AT_RANDOM);

	/* Early at boot, or where getrandom is refused: the 16 random bytes that the kernel gives each program. */
	if (getrandom(csink_hash_key, sizeof(csink_hash_key), GRND_NONBLOCK) != sizeof(csink_hash_key) && at_exec)
		memcpy(csink_hash_key, at_exec, sizeof(csink_hash_key));
}
