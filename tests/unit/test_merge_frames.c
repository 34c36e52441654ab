/*
 * Python frames merged into a native stack: by the addresses of records, and by count where there are none; stacks
 * whose outer end is missing; groups that are too long for their record to be known.
 */
#include "launcher/attach/merge_frames.h"
#include "tests/unit/tap.h"

#include <string.h>

#include "include/internal/base.h"

/* The evaluator's code is [1000, 2000); other native code is elsewhere. */
static struct csink_python python = {.evaluator = 1000, .evaluator_end = 2000};

/* Of a stack that is 100 bytes a frame: the leaf is at 5000, its callers from 5100 on. */
static uint64_t cfas[CSINK_MAX_DEPTH];
static struct csink_attach_read read;
static struct csink_merge_faults faults;
static char text[4096];

static void put_group(uint64_t record, uint32_t nr)
{
	struct csink_python_group *group = &read.groups[read.nr_groups++];

	*group = (struct csink_python_group){record, read.nr_frames, nr};
	while (nr--) {
		read.frames[read.nr_frames] = CSINK_FRAME_CODE | (uint64_t)(read.nr_frames + 1) << 32;
		read.nr_frames++;
	}
}

static void begin(void)
{
	read = (struct csink_attach_read){.state = CSINK_READ_DONE};
}

/* Natively "e" is the evaluator, "n" other code. Merged: these, and a digit a Python frame; "!" behind one that stands
 * in the place of the native frame before it. */
static const char *merge(int minor, const char *native, bool is_whole, bool replaces)
{
	uint64_t frames[CSINK_MAX_DEPTH], merged[CSINK_MAX_DEPTH];
	struct csink_native_stack stack = {.leaf = *native == 'e' ? 1500 : 3000,
					   .sp = 5000,
					   .frames = frames,
					   .cfas = cfas,
					   .nr = (uint32_t)strlen(native) - 1,
					   .is_whole = is_whole};
	uint32_t nr;
	char *to = text;

	python.layout = csink_python_layout_of(minor);
	for (uint32_t i = 0; i < stack.nr; i++) {
		frames[i] = native[i + 1] == 'e' ? 1500 : 3000;
		cfas[i] = 5100 + 100 * i;
	}
	nr = csink_merge_frames(&stack, &python, &read, replaces, merged, CSINK_MAX_DEPTH, &faults);
	*to++ = *native;
	for (uint32_t i = 0; i < nr; i++) {
		if (!(merged[i] & CSINK_FRAME_CODE)) {
			*to++ = merged[i] == 1500 ? 'e' : 'n';
			continue;
		}
		*to++ = (char)('0' + (merged[i] >> 32 & 15));
		if (merged[i] & CSINK_FRAME_EVALUATED)
			*to++ = '!';
	}
	*to = 0;
	return text;
}

static void check_records(void)
{
	begin();
	put_group(5150, 2);
	put_group(5350, 1);
	is_str(merge(12, "neneen", true, true), "ne1!2ne3!en", "groups stand in place of the evaluator's calls");
	begin();
	put_group(5150, 2);
	put_group(5350, 1);
	is_str(merge(12, "neneen", true, false), "ne12ne3en",
	       "--frames=both: groups stand beside the evaluator's calls");
	begin();
	put_group(5050, 1);
	is_str(merge(11, "en", true, true), "e1!n", "the leaf is the evaluator");
	begin();
	put_group(5150, 1);
	put_group(9000, 2);
	is_str(merge(13, "nen", false, true), "ne1!n23", "the native walk broke off: the groups beyond come last");
	begin();
	put_group(4900, 1);
	is_str(merge(13, "nn", true, true), "n1n", "a record below the stack pointer replaces nothing");
}

static void check_unknown(void)
{
	begin();
	put_group(CSINK_PYTHON_UNKNOWN, 3);
	is_str(merge(13, "nenen", true, true), "ne1!23nen", "a group that is too long is that of the innermost call");
	begin();
	put_group(CSINK_PYTHON_UNKNOWN, 2);
	is_str(merge(13, "enen", true, true), "e1!2nen", "a group that is too long, the leaf is the evaluator");
	begin();
	put_group(5150, 1);
	put_group(CSINK_PYTHON_UNKNOWN, 2);
	is_str(merge(12, "nenen", true, true), "ne1!ne2!3n", "a group that is too long follows one that is not");
}

static void check_counts(void)
{
	begin();
	put_group(0, 1);
	put_group(0, 1);
	put_group(0, 1);
	is_str(merge(8, "eneenn", true, true), "e1!ne2!e3!nn", "without records: each call has one frame");
	begin();
	put_group(0, 1);
	put_group(0, 1);
	is_str(merge(9, "eneenn", true, true), "ene1!e2!nn", "without records: the innermost call has no frame yet");
	begin();
	put_group(0, 1);
	put_group(0, 1);
	put_group(0, 1);
	is_str(merge(9, "nen", true, true), "ne1!23n",
	       "without records: frames that C code links join the innermost call");
	ok(faults.is_broken, "without records: two frames more than calls break the stack");
	begin();
	put_group(0, 1);
	put_group(0, 1);
	is_str(merge(9, "nen", true, true), "ne1!2n", "without records: one frame more joins it, too");
	ok(!faults.is_broken, "... which may be right");
	begin();
	put_group(0, 1);
	put_group(0, 1);
	put_group(0, 1);
	is_str(merge(9, "nene", false, true), "ne1!ne23",
	       "without records: frames beyond a stack that is cut come last");
	ok(!faults.is_broken, "... and are not counted against its calls");
	begin();
	put_group(0, 1);
	read.is_full = true;
	is_str(merge(9, "nenen", true, true), "ne1!nen",
	       "without records: if outer frames are missing, the innermost frame is that of the innermost call");
}

int main(void)
{
	check_records();
	check_unknown();
	check_counts();
	begin();
	put_group(5050, CSINK_MAX_DEPTH);
	python.layout = csink_python_layout_of(12);
	{
		uint64_t merged[CSINK_MAX_DEPTH], frame = 3000, cfa = 5100;
		struct csink_native_stack stack = {1500, 5000, &frame, &cfa, 1, true};

		ok(csink_merge_frames(&stack, &python, &read, true, merged, CSINK_MAX_DEPTH, &faults) ==
				   CSINK_MAX_DEPTH &&
			   faults.is_cut,
		   "a stack without room for all frames is cut");
		ok(csink_has_evaluator(&stack, &python), "the evaluator is found in the leaf");
		stack.leaf = 3000;
		ok(!csink_has_evaluator(&stack, &python), "no evaluator is found where there is none");
	}
	return done();
}
