/*
 * Where a command's profile goes, and what is made of it at the end: the file, a page or another export where its name
 * asks for one, the report. Shared by the commands that record (run, attach).
 */
#ifndef CSINK_SAVE_H
#define CSINK_SAVE_H

#include <limits.h>
#include <stdbool.h>

#include "launcher/base/options.h"
#include "launcher/output/export.h"
#include "launcher/profile/profile.h"

struct csink_save {
	char path[PATH_MAX];                      /* of the profile; empty once it could not be saved anywhere */
	const struct csink_export_format *format; /* that the name asked for, beside the profile; NULL: none */
	char exported[PATH_MAX];                  /* that name */
	bool is_nowhere;                          /* it has been reported that no place takes the profile */
	bool folds_native;                        /* in the report and the export: csink_fold_native() */
	bool has_wall;                            /* in the report: csink_wall_apply() */
};

/* What is printed at the end. */
enum csink_save_words {
	CSINK_SAVE_ERRORS,     /* errors only */
	CSINK_SAVE_WHERE,      /* and where the profile is */
	CSINK_SAVE_REPORT,     /* the report, which says that, too */
	CSINK_SAVE_REPORT_ALL, /* with every function */
};

/**
 * Find out the name that an option gives, and whether it can be written; prints what is wrong.
 * @row      of the option in its table.
 * @command  and @pid: what %c and %p stand for.
 * Returns 0, or -EINVAL: the name has an unknown %. Context: init.
 */
int csink_save_resolve(struct csink_save *save, const struct csink_options *options, uint32_t row, const char *command,
		       int32_t pid);

/**
 * Write a profile; where it cannot be written, in the place that csink_output_fallback() gives, and print that.
 * @path  of PATH_MAX bytes: becomes where it is, or empty.
 * Returns 0, or -errno where it could not be written anywhere. Context: thread.
 */
int csink_save_anywhere(char *path, const struct csink_profile *profile);

/** Print the report, for words that ask for it. Context: init. */
void csink_save_report(const struct csink_save *save, struct csink_profile *profile, enum csink_save_words words);

/**
 * Write what the name asked for beside the profile, which has been written.
 * Returns 0, or as csink_export_write(); that has been reported. Context: init.
 */
int csink_save_export(const struct csink_save *save, const struct csink_profile *profile, enum csink_save_words words);

/**
 * Write the profile, elsewhere where its place cannot be written; export it; report both.
 * Returns 0, or -errno where the profile could not be written anywhere. Context: init.
 */
int csink_save_profile(struct csink_save *save, struct csink_profile *profile, enum csink_save_words words);

#endif
