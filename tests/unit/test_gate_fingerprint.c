/* The machine and the libraries that a baseline was made with, read from files that are made up. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/gate/fingerprint.h"
#include "tests/unit/tap.h"

static char directory[] = "/tmp/countersink-fingerprint.XXXXXX";

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) < 0 || fclose(f))
		perror(path);
}

static void put_governor(int cpu, const char *governor)
{
	char path[64];

	snprintf(path, sizeof(path), "cpu%d", cpu);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "cpu%d/cpufreq", cpu);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "cpu%d/cpufreq/scaling_governor", cpu);
	put(path, governor);
}

static void is_text(char *got, const char *want, const char *name)
{
	is_str(got ? got : "no memory", want, name);
	free(got);
}

static void test_governors(void)
{
	mkdir("cpufreq", 0700);
	is_text(csink_gate_governors("."), "", "no CPU has a governor");
	is_text(csink_gate_governors("/nowhere"), "", "a missing directory has no governor");
	put_governor(0, "performance\n");
	put_governor(1, "performance\n");
	is_text(csink_gate_governors("."), "performance", "CPUs of one governor: it is named once");
	put_governor(1, "powersave\n");
	put_governor(2, "performance\n");
	put_governor(3, "power\n");
	is_text(csink_gate_governors("."), "performance, powersave, power",
		"each governor is named once, as a whole word");
	put_governor(0, "");
	is_text(csink_gate_governors("."), "powersave, performance, power", "an unreadable governor is left out");
}

static void test_cpu(void)
{
	put("cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nmodel name\t: other\n");
	is_text(csink_gate_cpu_name("cpuinfo"), "AMD EPYC", "a CPU with a name");
	put("cpuinfo", "processor\t: 0\nBogoMIPS\t: 50\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
	is_text(csink_gate_cpu_name("cpuinfo"), "implementer 0x41 part 0xd0c", "an ARM CPU is named by its numbers");
	put("cpuinfo", "");
	is_text(csink_gate_cpu_name("cpuinfo"), "", "an unknown CPU has no name");
}

static void test_library(void)
{
	char *one, *other, *self = csink_gate_library_id("/proc/self/exe");

	ok(self && strlen(self) >= 16 && !strchr(self, ' '), "a program's identity is one word: %s",
	   self ? self : "none");
	put("one.so", "some bytes");
	put("other.so", "more bytes");
	one = csink_gate_library_id("one.so");
	other = csink_gate_library_id("other.so");
	ok(one && !strncmp(one, "crc32-", 6), "a file without a build-id is known by its contents");
	ok(one && other && strcmp(one, other) != 0, "another file has another identity");
	put("other.so", "some bytes");
	free(other);
	other = csink_gate_library_id("other.so");
	is_str(other, one, "a copy has the same identity");
	is_text(csink_gate_library_id("none.so"), "", "a missing file has no identity");
	free(one);
	free(other);
	free(self);
}

int main(void)
{
	char command[96];

	if (!mkdtemp(directory) || chdir(directory)) {
		ok(false, "a directory to work in");
		return done();
	}
	test_governors();
	test_cpu();
	test_library();
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	ok(!chdir("/") && !system(command), "the test's files are removed");
	return done();
}
