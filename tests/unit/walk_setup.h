/* What walkers need around them: the module snapshot (which needs a recording) and the bounds of main's stack. */
#ifndef CSINK_TESTS_WALK_SETUP_H
#define CSINK_TESTS_WALK_SETUP_H

#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/record/recording.h"

#include <stdlib.h>
#include <unistd.h>

static struct csink_recording setup_rec;
static struct csink_writer setup_writer;

/* Returns 0 or -errno. The recording's file is gone at once; its mapping is enough. */
__attribute__((unused)) static int setup_modules(void)
{
	char dir[] = "/tmp/csink-walk-XXXXXX";
	int err;

	if (!mkdtemp(dir))
		return -1;
	err = csink_recording_create(&setup_rec, dir, 4 << 20);
	if (!err) {
		unlink(setup_rec.path);
		csink_modules_init(&setup_rec, &setup_writer);
		csink_modules_refresh(&setup_rec, &setup_writer, 1);
	}
	rmdir(dir);
	return err;
}

/* From here up it is mapped; a megabyte down, walks of tests never start. */
__attribute__((unused)) static struct csink_stack_bounds setup_stack(void)
{
	extern void *__libc_stack_end;
	uintptr_t high = (uintptr_t)__libc_stack_end;

	return (struct csink_stack_bounds){high - (1UL << 20), high};
}

#endif
