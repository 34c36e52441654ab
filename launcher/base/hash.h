/*
 * The hash of every table whose keys come from a file, a recording or another process: SipHash-1-3 (Aumasson and
 * Bernstein) with a random key for each process, so that no file can contain keys prepared to share a slot. The order
 * of results must therefore not follow the order of a table's slots: it would differ from run to run. Tables of the
 * library that is injected have hashes of their own, bounded in how far they probe.
 */
#ifndef CSINK_HASH_H
#define CSINK_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Set before main, by getrandom(2); constant from then on, but for tests. */
extern uint64_t csink_hash_key[2];

struct csink_hash {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t csink_hash_turn(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void csink_hash_round(struct csink_hash *h)
{
	h->v0 += h->v1;
	h->v1 = csink_hash_turn(h->v1, 13) ^ h->v0;
	h->v0 = csink_hash_turn(h->v0, 32);
	h->v2 += h->v3;
	h->v3 = csink_hash_turn(h->v3, 16) ^ h->v2;
	h->v0 += h->v3;
	h->v3 = csink_hash_turn(h->v3, 21) ^ h->v0;
	h->v2 += h->v1;
	h->v1 = csink_hash_turn(h->v1, 17) ^ h->v2;
	h->v2 = csink_hash_turn(h->v2, 32);
}

static inline struct csink_hash csink_hash_begin(void)
{
	return (struct csink_hash){
		csink_hash_key[0] ^ 0x736f6d6570736575ULL, /* "somepseu" "dorandom" "lygenera" "tedbytes" */
		csink_hash_key[1] ^ 0x646f72616e646f6dULL,
		csink_hash_key[0] ^ 0x6c7967656e657261ULL,
		csink_hash_key[1] ^ 0x7465646279746573ULL,
	};
}

static inline void csink_hash_word(struct csink_hash *h, uint64_t word)
{
	h->v3 ^= word;
	csink_hash_round(h);
	h->v0 ^= word;
}

static inline uint64_t csink_hash_end(struct csink_hash *h)
{
	h->v2 ^= 0xff;
	csink_hash_round(h);
	csink_hash_round(h);
	csink_hash_round(h);
	return h->v0 ^ h->v1 ^ h->v2 ^ h->v3;
}

/** The hash of len bytes: SipHash-1-3 as published. Its low bits serve as a slot. Context: any. */
static inline uint64_t csink_hash_bytes(const void *data, size_t len)
{
	const unsigned char *at = data, *end = at + (len & ~(size_t)7);
	struct csink_hash h = csink_hash_begin();
	uint64_t word, last = (uint64_t)len << 56;

	for (; at < end; at += 8) {
		memcpy(&word, at, 8);
		csink_hash_word(&h, word);
	}
	for (size_t i = 0; i < (len & 7); i++)
		last |= (uint64_t)at[i] << 8 * i;
	csink_hash_word(&h, last);
	return csink_hash_end(&h);
}

/** The hash of two numbers, for tables whose keys all have as many. Context: any. */
static inline uint64_t csink_hash_pair(uint64_t a, uint64_t b)
{
	struct csink_hash h = csink_hash_begin();

	csink_hash_word(&h, a);
	csink_hash_word(&h, b);
	return csink_hash_end(&h);
}

/** The hash of one number, as a table (table.h) takes it. Context: any. */
static inline uint32_t csink_hash_number(uint64_t number)
{
	return (uint32_t)csink_hash_pair(number, 0);
}

#define CSINK_HASH_FNV_BEGIN 0xcbf29ce484222325ULL

/**
 * 64-bit FNV-1a, for names of files: the same in each process, hence for no table.
 * @hash  of the bytes before these; CSINK_HASH_FNV_BEGIN: there are none.
 * Context: any.
 */
static inline uint64_t csink_hash_fnv(uint64_t hash, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3ULL;
	return hash;
}

#endif
