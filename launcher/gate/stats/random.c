/* Random numbers for permutations and the bootstrap: see stats.h. */
#include "launcher/gate/stats/stats.h"

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

void csink_random_init(struct csink_random *random, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		random->state[i] = splitmix(&seed);
}

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

uint64_t csink_random_next(struct csink_random *random)
{
	uint64_t *s = random->state, result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate(s[3], 45);
	return result;
}

uint32_t csink_random_below(struct csink_random *random, uint32_t n)
{
	uint64_t product = (csink_random_next(random) >> 32) * n;

	/* What would make the first numbers likelier is drawn again. */
	while ((uint32_t)product < -n % n)
		product = (csink_random_next(random) >> 32) * n;
	return product >> 32;
}
