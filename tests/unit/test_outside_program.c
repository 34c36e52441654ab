/* What a program is, and why it cannot be injected: found by PATH, read from its ELF header. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/session/find_program.h"
#include "tests/unit/tap.h"

static char directory[] = "/tmp/countersink-test.XXXXXX";

static void write_file(const char *name, const void *bytes, size_t size, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || fchmod(fd, mode))
		perror(name);
	close(fd);
}

/* A program header's worth of ELF file. interpreter NULL: statically linked. */
static void write_elf(const char *name, unsigned char class, uint16_t machine, const char *interpreter, mode_t mode)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph;
		char interpreter[64];
	} elf;

	memset(&elf, 0, sizeof(elf));
	memcpy(elf.eh.e_ident, ELFMAG, SELFMAG);
	elf.eh.e_ident[EI_CLASS] = class;
	elf.eh.e_machine = machine;
	elf.eh.e_phoff = sizeof(elf.eh);
	elf.eh.e_phentsize = sizeof(elf.ph);
	elf.eh.e_phnum = 1;
	elf.ph.p_type = interpreter ? PT_INTERP : PT_LOAD;
	elf.ph.p_offset = sizeof(elf.eh) + sizeof(elf.ph);
	elf.ph.p_filesz = interpreter ? strlen(interpreter) + 1 : 0;
	if (interpreter)
		strcpy(elf.interpreter, interpreter);
	write_file(name, &elf, sizeof(elf), mode);
}

static int reason(const char *name)
{
	struct csink_program program;

	csink_program_inspect(name, &program);
	return program.reason;
}

static uint16_t own_machine(void)
{
	Elf64_Ehdr eh;
	int fd = open("/proc/self/exe", O_RDONLY);

	if (read(fd, &eh, sizeof(eh)) != sizeof(eh))
		eh.e_machine = 0;
	close(fd);
	return eh.e_machine;
}

static void test_kinds(void)
{
	const char *glibc = "/lib64/ld-linux-x86-64.so.2";
	uint16_t own = own_machine();

	is_num(reason("/proc/self/exe"), 0, "this program can be preloaded into");
	write_elf("dynamic", ELFCLASS64, own, glibc, 0755);
	is_num(reason("dynamic"), 0, "a program with glibc's loader can be preloaded into");
	write_elf("static", ELFCLASS64, own, NULL, 0755);
	is_num(reason("static"), CSINK_SPAWN_STATIC, "a program without a loader is static");
	write_elf("ld-linux-x86-64.so.2", ELFCLASS64, own, NULL, 0755);
	is_num(reason("ld-linux-x86-64.so.2"), 0, "glibc's loader itself can be preloaded into");
	write_elf("ld-2.31.so", ELFCLASS64, own, NULL, 0755);
	is_num(reason("ld-2.31.so"), 0, "an older glibc loader, named by its version, can be preloaded into");
	write_elf("musl", ELFCLASS64, own, "/lib/ld-musl-x86_64.so.1", 0755);
	is_num(reason("musl"), CSINK_SPAWN_OTHER_ABI, "a program with musl's loader is of another ABI");
	write_elf("android", ELFCLASS64, own, "/system/bin/linker64", 0755);
	is_num(reason("android"), CSINK_SPAWN_OTHER_ABI, "the loader of Android is of another C library");
	write_elf("nix", ELFCLASS64, own, "/nix/store/abc-glibc-2.37/lib/ld-linux-x86-64.so.2", 0755);
	is_num(reason("nix"), 0, "a program with glibc's loader elsewhere can be preloaded into");
	write_elf("small", ELFCLASS32, EM_386, "/lib/ld-linux.so.2", 0755);
	is_num(reason("small"), CSINK_SPAWN_OTHER_ABI, "a 32-bit program is of another ABI");
	write_elf("foreign", ELFCLASS64, EM_S390, glibc, 0755);
	is_num(reason("foreign"), CSINK_SPAWN_OTHER_ABI, "a program of another machine is of another ABI");
	write_elf("setgid", ELFCLASS64, own, glibc, 0755);
	if (getegid() != 1 && !chown("setgid", (uid_t)-1, 1) && !chmod("setgid", 02755))
		is_num(reason("setgid"), CSINK_SPAWN_SETUID, "setgid to another group");
	else
		skip("setgid to another group", "only root can make one");
	chmod("dynamic", 04755);
	is_num(reason("dynamic"), 0, "a program that is set-user-ID to our own user can be preloaded into");
}

static void test_scripts(void)
{
	const char *to_static = "#! ./static -x\n", *to_script = "#!./script1\n", *to_itself = "#!./loop\n";
	struct csink_program program;

	write_file("script1", to_static, strlen(to_static), 0755);
	is_num(reason("script1"), CSINK_SPAWN_STATIC, "a script of a static interpreter cannot be preloaded into");
	write_file("script2", to_script, strlen(to_script), 0755);
	is_num(reason("script2"), CSINK_SPAWN_STATIC, "a script's interpreter may be a script");
	write_file("loop", to_itself, strlen(to_itself), 0755);
	is_num(reason("loop"), 0, "a script that interprets itself comes to an end");
	write_file("plain", "exit 1\n", 7, 0755);
	csink_program_inspect("/bin/sh", &program);
	is_num(reason("plain"), program.reason, "text without #! is the shell's");
	write_file("empty", "", 0, 0755);
	is_num(reason("empty"), program.reason, "an empty file is run by the shell");
	write_file("cut", ELFMAG "\2\1\1", 7, 0755);
	is_num(reason("cut"), program.reason, "a truncated ELF header is text");
	is_num(reason("/nowhere"), 0, "an unreadable program gives no reason");
	is_num(reason("/tmp"), 0, "a directory gives no reason");
}

static void test_find(void)
{
	struct csink_program program;

	mkdir("first", 0755);
	mkdir("second", 0755);
	write_file("first/prog", "x", 1, 0644);
	write_file("second/prog", "#!/bin/sh\n", 10, 0755);
	write_file("first/only", "x", 1, 0644);
	setenv("PATH", "first:second", 1);
	is_num(csink_program_find("prog", &program), 0, "the first program on PATH that can be executed is found");
	is_str(program.path, "second/prog", "a program that is second on PATH is found");
	is_num(csink_program_find("only", &program), -EACCES, "a program that cannot be executed: EACCES");
	is_num(csink_program_find("none", &program), -ENOENT, "a program that is not on PATH: ENOENT");
	is_num(csink_program_find("", &program), -ENOENT, "an empty program name: ENOENT");
	is_num(csink_program_find("first/prog", &program), -EACCES, "a path is not searched for");
	is_num(csink_program_find("./second/prog", &program), 0, "a path is found without PATH");
	is_num(csink_program_find("./first", &program), -EACCES, "a directory cannot be executed");
	setenv("PATH", "first::second", 1);
	write_file("here", "#!/bin/sh\n", 10, 0755);
	is_num(csink_program_find("here", &program), 0, "an empty element of PATH is this directory");
	unsetenv("PATH");
	is_num(csink_program_find("sh", &program), 0, "without PATH the system's default is searched");
}

int main(void)
{
	char command[128];

	if (!mkdtemp(directory) || chdir(directory)) {
		perror(directory);
		return 1;
	}
	test_kinds();
	test_scripts();
	test_find();
	setenv("PATH", "/usr/bin:/bin", 1);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	ok(!chdir("/") && !system(command), "the test's files are removed");
	return done();
}
