/*
 * A hundred distinct functions that call each other in order, so that the program counter alone says what the stack
 * must be: in deep_fn[k], the callers are deep_fn[k-1] ... deep_fn[0], then whoever called deep_fn[0]. Frames differ:
 * few or many saved registers, arrays, alloca (a frame addressed by the frame register), realigned stacks (a CFA
 * expression).
 */
#ifndef CSINK_TESTS_DEEP_FUNCTIONS_H
#define CSINK_TESTS_DEEP_FUNCTIONS_H

#include <alloca.h>
#include <stdint.h>

#define DEEP_MAX 100

typedef unsigned long deep_fn_t(unsigned long x, unsigned int last, unsigned int work);
static deep_fn_t *const deep_fn[DEEP_MAX];

/* If set, the last function calls it before it works. */
static unsigned long (*deep_leaf)(unsigned long x);

/* A call-free stretch of work; inlined into each function. */
static inline __attribute__((always_inline)) unsigned long deep_work(unsigned long x, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++)
		x = x * 6364136223846793005UL + (x >> 29) + i;
	return x;
}

#define DEEP_NR(id) ((id)-100)

/* Calls the next function while the last one is not reached; a, b, c and x stay alive over the call. */
#define DEEP_BODY(id)                                                                                                  \
	unsigned long a = x * 3, b = x ^ 0x5555, c = x >> 7, r = 0;                                                    \
	x = deep_work(x, work / 16);                                                                                   \
	if (DEEP_NR(id) < last && DEEP_NR(id) + 1 < DEEP_MAX)                                                          \
		r = deep_fn[DEEP_NR(id) + 1 < DEEP_MAX ? DEEP_NR(id) + 1 : 0](x + a, last, work);                      \
	else                                                                                                           \
		r = deep_work((deep_leaf ? deep_leaf(x) : x) + b, work);                                               \
	return deep_work(r + a * b + c, work / 16) + x;

#define DEEP_PLAIN(id)                                                                                                 \
	static __attribute__((noipa)) unsigned long deep_##id(unsigned long x, unsigned int last, unsigned int work)   \
	{                                                                                                              \
		DEEP_BODY(id)                                                                                          \
	}

#define DEEP_ARRAY(id)                                                                                                 \
	static __attribute__((noipa)) unsigned long deep_##id(unsigned long x, unsigned int last, unsigned int work)   \
	{                                                                                                              \
		volatile unsigned long room[(id) % 13 + 1];                                                            \
		room[x % ((id) % 13 + 1)] = x;                                                                         \
		x += room[x % ((id) % 13 + 1)];                                                                        \
		DEEP_BODY(id)                                                                                          \
	}

#define DEEP_ALLOCA(id)                                                                                                \
	static __attribute__((noipa)) unsigned long deep_##id(unsigned long x, unsigned int last, unsigned int work)   \
	{                                                                                                              \
		volatile char *room = alloca(16 + x % 64);                                                             \
		room[x % 16] = (char)x;                                                                                \
		x += (unsigned long)room[x % 16];                                                                      \
		DEEP_BODY(id)                                                                                          \
	}

#define DEEP_ALIGNED(id)                                                                                               \
	static __attribute__((noipa)) unsigned long deep_##id(unsigned long x, unsigned int last, unsigned int work)   \
	{                                                                                                              \
		volatile unsigned long room[8] __attribute__((aligned(64)));                                           \
		volatile char *more = alloca(16 + x % 64);                                                             \
		room[x % 8] = x;                                                                                       \
		more[x % 16] = (char)x;                                                                                \
		x += room[x % 8] + (unsigned long)more[x % 16];                                                        \
		DEEP_BODY(id)                                                                                          \
	}

/* Without these two, all frames are of the plain kind that most code has. */
#ifdef DEEP_UNIFORM
#undef DEEP_ALLOCA
#undef DEEP_ALIGNED
#define DEEP_ALLOCA DEEP_PLAIN
#define DEEP_ALIGNED DEEP_ARRAY
#endif

#define DEEP_TEN(t)                                                                                                    \
	DEEP_PLAIN(1##t##0)                                                                                            \
	DEEP_ARRAY(1##t##1)                                                                                            \
	DEEP_PLAIN(1##t##2)                                                                                            \
	DEEP_ALLOCA(1##t##3)                                                                                           \
	DEEP_ARRAY(1##t##4)                                                                                            \
	DEEP_PLAIN(1##t##5)                                                                                            \
	DEEP_ALIGNED(1##t##6)                                                                                          \
	DEEP_PLAIN(1##t##7)                                                                                            \
	DEEP_ARRAY(1##t##8)                                                                                            \
	DEEP_PLAIN(1##t##9)

DEEP_TEN(0)
DEEP_TEN(1)
DEEP_TEN(2)
DEEP_TEN(3)
DEEP_TEN(4)
DEEP_TEN(5)
DEEP_TEN(6)
DEEP_TEN(7)
DEEP_TEN(8)
DEEP_TEN(9)

#define DEEP_NAMES(t)                                                                                                  \
	deep_1##t##0, deep_1##t##1, deep_1##t##2, deep_1##t##3, deep_1##t##4, deep_1##t##5, deep_1##t##6,              \
		deep_1##t##7, deep_1##t##8, deep_1##t##9

static deep_fn_t *const deep_fn[DEEP_MAX] = {
	DEEP_NAMES(0), DEEP_NAMES(1), DEEP_NAMES(2), DEEP_NAMES(3), DEEP_NAMES(4),
	DEEP_NAMES(5), DEEP_NAMES(6), DEEP_NAMES(7), DEEP_NAMES(8), DEEP_NAMES(9),
};

/* The caller of deep_fn[0]; returns something that depends on everything. */
static __attribute__((noipa, unused)) unsigned long deep_call(unsigned int depth, unsigned int work, unsigned long seed)
{
	return deep_fn[0](seed, depth - 1, work) ^ seed;
}

#endif
