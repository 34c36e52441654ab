/* What attach reads of the objects that others have mapped: true ones, and files that somebody made to harm it. */
#include "launcher/attach/objects.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
	object = csink_attach_objects_get(&objects, "", path);
	has = object && object->table.hdr;
	csink_attach_objects_free(&objects);
	return has;
}

static void test_true(void)
{
	struct csink_attach_objects objects = {0};
	const struct csink_attach_object *object = csink_attach_objects_get(&objects, "", "/proc/self/exe");

	ok(object && object->table.hdr && object->nr_code && !object->is_other, "this program has tables and code");
	ok(csink_attach_objects_get(&objects, "", "/proc/self/exe") == object, "it is read once");
	csink_attach_objects_free(&objects);
}

static void test_made(void)
{
	struct file f = make(0x2000);

	ok(has_table(&f), "an object whose tables lie in two segments has them");
	f.phdr[2].p_filesz = 0x10000;
	ok(!has_table(&f), "not where the file has less than a segment says");
	f = make(0x9000);
	ok(!has_table(&f), "nor where they lie in no segment");
}

/* Its end wraps around: the copy would be too small for it, and lie before what was allocated. */
static void test_wraps(void)
{
	struct file f = make(-0x1000ULL + 0x100);

	f.phdr[2].p_vaddr = -0x1000ULL;
	f.phdr[2].p_filesz = 0x1100;
	ok(!has_table(&f), "nor where their segment goes on behind the last address");
	f = make(0x2000);
	f.phdr[2].p_filesz = UINT64_MAX - 0x1000;
	ok(!has_table(&f), "nor where it is as long as all memory");
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
	unlink(path);
	return done();
}
