/* The file of an interpreted function is looked for once, however many functions and positions of it are sampled. */
#include <sys/stat.h>

#include "include/internal/base.h"
#include "launcher/collect/collect.h"
#include "launcher/profile/profile.h"
#include "tests/unit/record.h"
#include "tests/unit/tap.h"

enum { NR_FUNCTIONS = 20, NR_POSITIONS = 50 };

static int nr_looks;

/* In place of libc's: the launcher is linked into this program. */
int stat(const char *restrict path, struct stat *restrict st)
{
	nr_looks += strstr(path, "script.rb") != NULL;
	return fstatat(AT_FDCWD, path, st, 0);
}

/* The file's name, and the directories in which it may be. */
static struct csink_rec_code *add_code(struct record *r, int function, const char *file, const char *directory)
{
	struct csink_rec_code *code;
	char names[256], name[16];
	size_t nr;

	snprintf(name, sizeof(name), "f%d", function);
	nr = (size_t)snprintf(names, sizeof(names), "%s%c/nowhere%c%s", file, 0, 0, directory);
	code = record_entry(r, CSINK_ENTRY_CODE, CSINK_CODE_PHP, sizeof(*code) + strlen(name) + nr + 2);
	code->first_line = 1;
	code->nr_names = (uint16_t)(strlen(name) + nr + 2);
	strcpy(code->text, name);
	memcpy(code->text + strlen(name) + 1, names, nr + 1);
	return code;
}

int main(void)
{
	char directory[] = "/tmp/csink-scripts.XXXXXX", path[64];
	struct record r = record_new(400);
	struct csink_profile *p = NULL;
	struct csink_rec_thread *thread = record_thread(&r, 100, "prog");
	uint64_t weight = 1000000, frame;
	uint32_t nr_found = 0, nr_other = 0;
	FILE *file;

	if (!mkdtemp(directory))
		abort();
	snprintf(path, sizeof(path), "%s/script.rb", directory);
	file = fopen(path, "w");
	if (!file || fclose(file))
		abort();
	for (int i = 0; i < NR_FUNCTIONS; i++) {
		/* Half of them are of a file that is in none of the directories. */
		const struct csink_rec_code *code =
			add_code(&r, i, i % 2 ? "gone/script.rb" : "./script.rb", directory);

		for (uint32_t k = 0; k < NR_POSITIONS; k++) {
			frame = record_code_frame(&r, code, k + 1);
			record_row(&r, thread, record_chain(&r, 1000, 1, &frame), 0x401000, 1, &weight);
		}
	}
	record_write(&r, directory, "100.0.rec");
	is_num(csink_collect(directory, NULL, &p), 0, "a recording with many positions in two scripts is collected");
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		nr_found += !strcmp(csink_profile_text(p, p->functions[i].file), path);
		nr_other += !strcmp(csink_profile_text(p, p->functions[i].file), "gone/script.rb");
	}
	is_num(nr_found, NR_FUNCTIONS / 2, "functions have the file that is in a directory of theirs");
	is_num(nr_other, NR_FUNCTIONS / 2, "functions without such a file keep the name as it is");
	is_num(nr_looks, 2 * 2, "each file is looked for once in each directory");
	csink_profile_free(p);
	free(r.bytes);
	unlink(path);
	snprintf(path, sizeof(path), "%s/100.0.rec", directory);
	unlink(path);
	rmdir(directory);
	return done();
}
