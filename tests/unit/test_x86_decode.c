/*
 * Lengths and operands of x86 instructions: some of each form, and then all that objdump finds in programs and
 * libraries that are installed.
 */
#include "launcher/attach/x86_decode.h"
#include "tests/unit/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"

static const struct {
	const char *code;
	uint8_t bytes;
	bool is_64;
	const char *name;
} forms[] = {
	{"\x90", 1, true, "nop"},
	{"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10, true, "a long nop"},
	{"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, true, "mov of 8 bytes"},
	{"\xb8\x01\x02\x03\x04", 5, true, "mov of 4 bytes"},
	{"\x66\xb8\x01\x02", 4, true, "mov of 2 bytes"},
	{"\x48\xa1\x01\x02\x03\x04\x05\x06\x07\x08", 10, true, "mov of an absolute address"},
	{"\xa1\x01\x02\x03\x04", 5, false, "mov of an absolute address of 32-bit code"},
	{"\x67\xa1\x01\x02", 4, false, "mov of a 16-bit address"},
	{"\xf6\xc3\x01", 3, true, "test of a byte"},
	{"\xf6\xd3", 2, true, "not of a byte"},
	{"\xf7\x05\x01\x02\x03\x04\x05\x06\x07\x08", 10, true, "test of memory by rip"},
	{"\xc8\x10\x00\x01", 4, true, "enter"},
	{"\xc2\x04\x00", 3, false, "ret of 4 bytes"},
	{"\x9a\x01\x02\x03\x04\x05\x06", 7, false, "a far call"},
	{"\x66\xe8\x01\x02", 4, false, "a call of 16-bit distance"},
	{"\x0f\x84\x01\x02\x03\x04", 6, true, "a far jump on a condition"},
	{"\x0f\x38\x00\xc1", 4, true, "0f 38"},
	{"\x66\x0f\x3a\x0f\xc1\x08", 6, true, "0f 3a"},
	{"\xc5\xf8\x77", 3, true, "vzeroupper"},
	{"\xc5\xfd\x70\xc1\x01", 5, true, "vpshufd"},
	{"\xc4\xe2\x7d\x18\x44\x24\x08", 7, true, "vbroadcastss"},
	{"\xc4\xe3\x7d\x19\xc1\x01", 6, true, "vextractf128"},
	{"\x62\xf1\xfe\x48\x6f\x07", 6, true, "vmovdqu64 of zmm"},
	{"\x62\xf3\x7d\x48\x3e\xc1\x00", 7, true, "vpcmpub of zmm"},
	{"\xc5\x07", 2, false, "lds, no vector instruction, of 32-bit code"},
	{"\x62\x07", 2, false, "bound, no vector instruction, of 32-bit code"},
	{"\x40", 1, false, "inc of 32-bit code"},
	{"\x8f\xe9\x78\x01\xc8", 5, true, "an instruction of XOP"},
};

static void check_forms(void)
{
	struct csink_x86_insn insn;
	uint8_t code[CSINK_X86_MAX_BYTES + 1];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(forms); i++) {
		memset(code, 0x90, sizeof(code));
		memcpy(code, forms[i].code, forms[i].bytes);
		ok(csink_x86_decode(code, sizeof(code), forms[i].is_64, &insn) && insn.bytes == forms[i].bytes,
		   "%s: %u bytes", forms[i].name, forms[i].bytes);
		ok(!csink_x86_decode(code, forms[i].bytes - 1U, forms[i].is_64, &insn), "%s: not of a byte less",
		   forms[i].name);
	}
}

static void check_operands(void)
{
	struct csink_x86_insn insn;

	ok(csink_x86_decode((const uint8_t *)"\x4c\x8b\x64\x24\xf0", 5, true, &insn) && insn.is_wide &&
		   insn.reg == 12 && insn.base == 4 && insn.index == CSINK_X86_NO_REG && insn.disp == -16,
	   "mov -16(%%rsp), %%r12");
	ok(csink_x86_decode((const uint8_t *)"\x41\x8b\x44\x8d\x00", 5, true, &insn) && !insn.is_wide && !insn.reg &&
		   insn.base == 13 && insn.index == 1,
	   "mov (%%r13,%%rcx,4), %%eax");
	ok(csink_x86_decode((const uint8_t *)"\x48\x8d\x05\x00\x01\x00\x00", 7, true, &insn) &&
		   insn.base == CSINK_X86_RIP && insn.disp == 256,
	   "lea 256(%%rip), %%rax");
	ok(csink_x86_decode((const uint8_t *)"\x64\x48\x8b\x04\x25\x28\0\0\0", 9, true, &insn) && insn.has_segment &&
		   insn.base == CSINK_X86_NO_REG && insn.disp == 40,
	   "mov %%fs:40, %%rax");
	ok(csink_x86_decode((const uint8_t *)"\xe8\xfb\xff\xff\xff", 5, true, &insn) && insn.imm == -5,
	   "a call of itself has a negative distance");
}

/* A line of objdump: an address, bytes, the instruction. Returns how many bytes; 0: it is no instruction. */
static size_t read_line(char *line, uint8_t *code, size_t max)
{
	char *at = strchr(line, '\t'), *end = at ? strchr(at + 1, '\t') : NULL;
	unsigned int byte;
	size_t nr = 0;
	int read;

	/* Prefixes alone are data; fwait is an instruction of its own. */
	if (!end || strstr(end, "(bad)") || !strncmp(end + 1, "rex", 3) || strstr(end, "\t.byte"))
		return 0;
	*end = '\0';
	for (at++; nr < max && sscanf(at, "%2x%n", &byte, &read) == 1; at += read)
		code[nr++] = (uint8_t)byte;
	return nr && code[0] == 0x9b && nr > 1 ? 0 : nr;
}

static void check_file(const char *path, bool is_64)
{
	char command[256], line[512];
	uint8_t code[CSINK_X86_MAX_BYTES + 8];
	unsigned long nr = 0, wrong = 0;
	struct csink_x86_insn insn;
	FILE *dump;

	snprintf(command, sizeof(command), "objdump -d -w %s 2>/dev/null", path);
	dump = access(path, R_OK) ? NULL : popen(command, "r");
	while (dump && fgets(line, sizeof(line), dump)) {
		size_t bytes;

		memset(code, 0x90, sizeof(code));
		bytes = read_line(line, code, CSINK_X86_MAX_BYTES);
		if (!bytes)
			continue;
		nr++;
		if (csink_x86_decode(code, sizeof(code), is_64, &insn) && insn.bytes == bytes)
			continue;
		if (wrong++ < 5)
			printf("# not as objdump: %s\n", line);
	}
	if (dump)
		pclose(dump);
	if (nr < 1000) {
		skip(path, "it, or objdump, is not here");
		return;
	}
	/* Data between functions, which are no instructions, may be decoded otherwise. */
	ok(wrong * 10000 <= nr, "%s: %lu of %lu instructions are as long as objdump says", path, nr - wrong, nr);
}

int main(void)
{
	check_forms();
	check_operands();
	check_file("/lib/x86_64-linux-gnu/libc.so.6", true);
	check_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", true);
	check_file("/lib/ld-musl-x86_64.so.1", true);
	check_file("/usr/lib32/libc.so.6", false);
	check_file("/usr/lib32/libm.so.6", false);
	return done();
}
