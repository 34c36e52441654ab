/* What attach reads of the objects that others have mapped: true ones, and files that somebody made to harm it. */
#include "launcher/attach/objects.h"

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/attach/images.h"
#include "launcher/base/regular.h"
#include "tests/unit/tap.h"

#define HDR_VADDR 0x1000ULL
#define FILE_BYTES 0x4000

static char path[] = "/tmp/csink-objects.XXXXXX";

struct file {
	Elf64_Ehdr head;
	Elf64_Phdr phdr[3]; /* of .eh_frame_hdr; the segment that it is in; that of .eh_frame */
	uint8_t rest[FILE_BYTES];
};

/* An object whose .eh_frame_hdr is at 0x1000, and says that .eh_frame is at `frame`. */
static struct file make(uint64_t frame)
{
	const uint64_t offset = offsetof(struct file, rest);
	int32_t relative = (int32_t)(frame - HDR_VADDR - 4);
	struct file f = {
		.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_phoff = offsetof(struct file, phdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 3},
		.phdr = {{.p_type = PT_GNU_EH_FRAME, .p_vaddr = HDR_VADDR, .p_offset = offset, .p_filesz = 12},
			 {.p_type = PT_LOAD, .p_vaddr = HDR_VADDR, .p_offset = offset, .p_filesz = 0x100},
			 {.p_type = PT_LOAD, .p_vaddr = 0x2000, .p_offset = offset, .p_filesz = 0x100}},
		.rest = {1, 0x1b, 0x03, 0x3b}, /* encodings: of where .eh_frame is, relative in four bytes */
	};

	memcpy(f.rest + 4, &relative, sizeof(relative));
	return f;
}

static void write_file(const struct file *f)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(f, sizeof(*f), 1, file) != 1 || fclose(file))
		exit(1);
}

static bool has_table(const struct file *f)
{
	struct csink_attach_objects objects = {0};
	const struct csink_attach_object *object;
	bool has;

	write_file(f);
	object = csink_attach_objects_get(&objects, 0, "", path);
	has = object && object->table.hdr;
	csink_attach_objects_free(&objects);
	return has;
}

static void test_true(void)
{
	struct csink_attach_objects objects = {0};
	const struct csink_attach_object *object = csink_attach_objects_get(&objects, 0, "", "/proc/self/exe");

	ok(object && object->table.hdr && object->nr_code && !object->is_other, "this program has tables and code");
	ok(csink_attach_objects_get(&objects, 0, "", "/proc/self/exe") == object, "an object is read once");
	csink_attach_objects_free(&objects);
}

static void test_made(void)
{
	struct file f = make(0x2000);

	ok(has_table(&f), "an object whose tables lie in two segments has them");
	f.phdr[2].p_filesz = 0x10000;
	ok(!has_table(&f), "a file shorter than its segment has no tables");
	f = make(0x9000);
	ok(!has_table(&f), "an object whose tables lie in no segment has none");
}

/* Its end wraps around: the copy would be too small for it, and lie before what was allocated. */
static void test_wraps(void)
{
	struct file f = make(-0x1000ULL + 0x100);

	f.phdr[2].p_vaddr = -0x1000ULL;
	f.phdr[2].p_filesz = 0x1100;
	ok(!has_table(&f), "an object whose segment of tables wraps has none");
	f = make(0x2000);
	f.phdr[2].p_filesz = UINT64_MAX - 0x1000;
	ok(!has_table(&f), "an object whose segment of tables spans all memory has none");
}

/* ---- .eh_frame without an index ---- */

enum { NR_ENTRIES = 12, ENTRY_BYTES = 20, CODE_VADDR = 0x4000 };

/* The same file without .eh_frame_hdr: .eh_frame is at 0x1100, among zeros; code at 0x4000, which it describes. */
static struct file make_unindexed(uint32_t nr)
{
	static const uint8_t cie[] = {16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, CSINK_REG_RA, 1, 0x1b, 0, 0, 0};
	struct file f = make(0x2000);
	uint8_t *at = f.rest + 0x100;

	memset(f.rest, 0, sizeof(f.rest));
	f.phdr[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = CODE_VADDR, .p_offset = 0x3000, .p_filesz = 0x1000};
	f.phdr[1].p_filesz = 0x400;
	f.phdr[2].p_type = PT_NULL;
	memcpy(at, cie, sizeof(cie));
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t offset = (uint32_t)sizeof(cie) + i * ENTRY_BYTES;
		/* Linkers do not sort them. Length, way back to the CIE, start of the code, its length, no
		 * augmentation. */
		int32_t words[] = {ENTRY_BYTES - 4, (int32_t)offset + 4,
				   CODE_VADDR + (int32_t)(i * 7 % nr) * 16 - (0x1100 + (int32_t)offset + 8), 16, 0};

		memcpy(at + offset, words, sizeof(words));
	}
	return f;
}

static void test_index(void)
{
	struct csink_attach_objects objects = {0};
	const struct csink_attach_object *object;
	struct file f = make_unindexed(NR_ENTRIES);
	struct csink_cfi_fde fde;
	uint32_t nr = 0;

	write_file(&f);
	object = csink_attach_objects_get(&objects, 0, "", path);
	for (uint64_t at = CODE_VADDR + 5; object && object->table.hdr && at < CODE_VADDR + NR_ENTRIES * 16; at += 16)
		nr += csink_cfi_find(&object->table, object->table_bias + at, &fde) &&
		      fde.start == object->table_bias + (at & ~15ULL);
	is_num(nr, NR_ENTRIES, "without an index each entry of .eh_frame is found");
	ok(object && object->table.hdr && !csink_cfi_find(&object->table, object->table_bias + CODE_VADDR - 1, &fde) &&
		   !csink_cfi_find(&object->table, object->table_bias + CODE_VADDR + NR_ENTRIES * 16, &fde),
	   "beside the entries' code there is none");
	csink_attach_objects_free(&objects);
}

static void test_index_refused(void)
{
	struct file f = make_unindexed(3);

	ok(!has_table(&f), "three entries may be bytes that look like entries");
	f = make_unindexed(NR_ENTRIES);
	f.phdr[0].p_vaddr = 0x9000;
	ok(!has_table(&f), "entries whose code is elsewhere are none");
	f = make_unindexed(NR_ENTRIES);
	f.phdr[1].p_filesz = UINT64_MAX - 0x1000;
	ok(!has_table(&f), "a segment that spans all memory is not looked through");
	f = make_unindexed(NR_ENTRIES);
	f.head.e_shnum = 5;
	f.head.e_shentsize = sizeof(Elf64_Shdr);
	f.head.e_shoff = UINT64_MAX - 100;
	ok(!has_table(&f), "headers of sections beyond the file's end name no section");
}

/* Does a place lead to a file of that size? */
static bool leads_to(const char *place, off_t bytes)
{
	int fd = csink_regular_open(place, 0, CSINK_REGULAR_ANY);
	struct stat st = {0};

	if (fd < 0)
		return false;
	fstat(fd, &st);
	close(fd);
	return st.st_size == bytes;
}

static void test_replaced(void)
{
	struct csink_attach_objects objects = {0};
	struct csink_attach_object *first, *second;
	struct file f = make_unindexed(NR_ENTRIES);
	char place[sizeof(path) + 64];
	struct stat was, st;

	write_file(&f);
	stat(path, &was);
	first = csink_attach_objects_get(&objects, 0, "", path);
	csink_attach_object_place(first, place, sizeof(place));
	is_str(place, path, "an object is at its path");
	unlink(path);
	ok(csink_attach_objects_get(&objects, 0, "", path) == first,
	   "an object whose file is gone is known by its path");
	csink_attach_object_place(first, place, sizeof(place));
	ok(leads_to(place, was.st_size), "a file that is gone can be opened: %s", place);
	write_file(&f);
	ok(!truncate(path, was.st_size + 1) && !stat(path, &st), "another file takes the path");
	second = csink_attach_objects_get(&objects, 0, "", path);
	ok(second && second != first, "another file at the path is another object");
	csink_attach_object_place(first, place, sizeof(place));
	ok(leads_to(place, was.st_size), "the first one's file can still be opened");
	csink_attach_object_place(second, place, sizeof(place));
	ok(!strcmp(place, path) && leads_to(place, was.st_size + 1), "the second one is at the path");
	csink_attach_objects_free(&objects);
	csink_attach_object_place(&(struct csink_attach_object){.path = path, .held_fd = -1}, place, sizeof(place));
	is_str(place, path, "one of which no handle is kept is at its path");
}

/* A process among other mounts. Returns its pid, or -1: this user cannot have one. */
static pid_t start_elsewhere(void)
{
	int ends[2];
	char went = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		went = !unshare(CLONE_NEWNS) || !unshare(CLONE_NEWUSER | CLONE_NEWNS);
		if (write(ends[1], &went, 1) == 1 && went)
			pause();
		_exit(0);
	}
	if (read(ends[0], &went, 1) != 1 || !went) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static int nr_fds(void)
{
	int nr = 0;

	for (int fd = 0; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Of a thousand processes in containers each one's root is held by one fd at most. */
static void test_elsewhere(void)
{
	struct csink_attach_images images = {0};
	pid_t pid = start_elsewhere();
	int nr = nr_fds();

	if (pid < 0) {
		skip("a process among other mounts", "this user cannot start one");
		return;
	}
	csink_attach_images_prepare(&images, pid);
	is_num(nr_fds(), nr, "preparation for a process in another mount namespace keeps no descriptor open");
	ok(csink_attach_images_take(&images, pid, 1), "images of a process in another mount namespace are taken");
	is_num(nr_fds(), nr + 1, "one descriptor holds that process's root");
	csink_attach_images_free(&images);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_nameless(void)
{
	struct csink_attach_images images = {0};
	char name[16];

	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "");
	ok(csink_attach_images_take(&images, getpid(), 1), "images of a process without a name are taken");
	prctl(PR_SET_NAME, name);
	csink_attach_images_free(&images);
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	test_true();
	test_made();
	test_wraps();
	test_index();
	test_index_refused();
	test_replaced();
	test_elsewhere();
	test_nameless();
	unlink(path);
	return done();
}
