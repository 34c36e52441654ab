/*
 * Has "builtin functions" as V8 has them, and exports what finds them: made_builtins K MS calls number K for so much
 * CPU time. The functions follow each other in one piece of code without symbols: see launcher/symbols/symbols_v8.c.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#define SHOWN __attribute__((visibility("default"), used))
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define NR 300
#define PLACE_BYTES 28

/* Number K counts down from 1,000,000, after 64 + K % 50 nops, so that neighbours differ in length. */
__asm__(".altmacro\n"
	".macro make_code k\n"
	"	.p2align 5, 0xcc\n"
	"own_\\k:	.fill 64 + \\k % 50, 1, 0x90\n"
	"	movl $1000000, %eax\n"
	"1:	decl %eax\n"
	"	jnz 1b\n"
	"	ret\n"
	"own_end_\\k:\n"
	".endm\n"
	".macro make_place k\n"
	"	.long own_\\k - own_code, own_end_\\k - own_\\k\n"
	"	.fill " TEXT(PLACE_BYTES) " - 8, 1, \\k % 256\n"
					  ".endm\n"
					  ".macro make_text k\n"
					  "text_\\k: .asciz \"Made\\k\"\n"
					  ".endm\n"
					  ".macro make_name k\n"
					  "	.quad text_\\k, 0, 0\n"
					  ".endm\n"
					  ".macro for_each make\n"
					  "k = 0\n"
					  ".rept " TEXT(NR) "\n"
							    "	\\make %k\n"
							    "k = k + 1\n"
							    ".endr\n"
							    ".endm\n"
							    ".text\n"
							    ".p2align 5\n"
							    "own_code:\n"
							    "for_each make_code\n"
							    "	.p2align 5, 0xcc\n"
							    "own_code_end:\n"
							    ".section .rodata\n"
							    ".p2align 3\n"
							    "own_places:\n"
							    ".fill 24, 1, 0x5a\n"
							    "for_each make_place\n"
							    "own_places_end:\n"
							    ".p2align 2\n"
							    "own_code_bytes: .long own_code_end - own_code\n"
							    "own_places_bytes: .long own_places_end - own_places\n"
							    "for_each make_text\n"
							    ".fill 200, 1, 0\n"
							    ".section .data.rel.ro, \"aw\"\n"
							    ".p2align 3\n"
							    "own_names:\n"
							    "for_each make_name\n"
							    ".quad 0, 0, 0\n"
							    ".text\n"
							    ".noaltmacro\n");

extern const uint8_t own_code[], own_places[];
extern const uint32_t own_code_bytes, own_places_bytes;
extern struct {
	const char *text;
	uint64_t more[2];
} own_names[];

SHOWN const uint8_t *default_code(void) __asm__("_ZN2v88internal23DefaultEmbeddedBlobCodeEv");
SHOWN uint32_t default_code_bytes(void) __asm__("_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv");
SHOWN const uint8_t *default_places(void) __asm__("_ZN2v88internal23DefaultEmbeddedBlobDataEv");
SHOWN uint32_t default_places_bytes(void) __asm__("_ZN2v88internal27DefaultEmbeddedBlobDataSizeEv");
SHOWN const char *default_name(int k) __asm__("_ZN2v88internal8Builtins4nameENS0_7BuiltinE");

const uint8_t *default_code(void)
{
	return own_code;
}

uint32_t default_code_bytes(void)
{
	return own_code_bytes;
}

const uint8_t *default_places(void)
{
	return own_places;
}

uint32_t default_places_bytes(void)
{
	return own_places_bytes;
}

const char *default_name(int k)
{
	return own_names[k].text;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long k = argc > 1 ? strtol(argv[1], NULL, 10) : 0,
	     until = now_ms() + (argc > 2 ? strtol(argv[2], NULL, 10) : 100);
	const uint32_t *place = (const uint32_t *)(own_places + 24 + (k % NR) * PLACE_BYTES);
	void (*call)(void) = (void (*)(void))(uintptr_t)(own_code + *place);

	while (now_ms() < until)
		call();
	return 3;
}

#else
int main(void)
{
	return 77;
}
#endif
