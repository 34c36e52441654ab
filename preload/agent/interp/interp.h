/*
 * Frames of interpreted languages: found in the interpreter's own records by the handler of the thread that runs them,
 * and merged into the native stack by address.
 *
 * The way: as objects are loaded, each is asked whether it is an interpreter (find). A sample's walk then gives groups
 * of frames, innermost first; a group was run by one call of the evaluator, and a record in that call's native frame
 * says by which (walk). A frame is one word: a function of the recording (CSINK_ENTRY_CODE, written at first sight by
 * code_ids.c) and a position in it, which the launcher turns into a name, a file and a line. Where the native frame of
 * a record is known, the group is put beside it; so no symbols are needed, and calls of native code keep their place.
 *
 * A language is one file with a struct csink_language, and a row in interp.c.
 */
#ifndef CSINK_INTERP_H
#define CSINK_INTERP_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/elf_symbol.h"
#include "preload/core/record/recording.h"
#include "preload/core/safe_load.h"

struct csink_interpreter;
struct csink_interp_walk;

/* What a language gives. */
struct csink_language {
	const char *name;
	/**
	 * Is the object this language's interpreter? Sets @to->data. Returns 1: yes; 0: no; -1: one whose frames cannot
	 * be read, and *why is set. Context: init, signal (the object is loaded and stays while it is looked at).
	 */
	int (*find)(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why);
	/** The calling thread's frames, all of them, by csink_interp_frame() and csink_interp_group(). Context: signal.
	 */
	void (*walk)(struct csink_interp_walk *walk);
};

/* An interpreter that was found in this process. */
struct csink_interpreter {
	const struct csink_language *language;
	csink_ref_t module;
	uintptr_t code;     /* an address in it, set by find: of a function that walk calls */
	uintptr_t eh_frame; /* of its object, as csink_module has it */
	bool is_for_good;   /* loaded with the program: it is never unloaded */
	uintptr_t evaluator,
		evaluator_end; /* where groups have no record of their own: each call of it has one group */
	uint64_t data[6];      /* the language's, constant */
	uint64_t learnt;       /* the language's, by any thread */
};

/* Frames that one call of the evaluator runs. */
struct csink_interp_group {
	uintptr_t record; /* an address in that call's native frame */
	uint32_t first, nr;
};

/* One thread's room for it; private memory, taken when its first sample meets an interpreter. */
struct csink_interp_room {
	uint64_t frames[CSINK_MAX_DEPTH]; /* of the interpreter */
	uint64_t merged[CSINK_MAX_DEPTH];
	uintptr_t cfas[CSINK_MAX_DEPTH]; /* of the native frames: see csink_walk_cfas() */
	struct csink_interp_group groups[CSINK_MAX_DEPTH];
};

struct csink_interp_walk {
	const struct csink_interpreter *interpreter;
	struct csink_recording *rec;
	struct csink_writer *writer;
	struct csink_interp_room *room;
	struct csink_loader load;
	uint32_t nr_native; /* native frames, whose CFAs room->cfas has */
	uint32_t nr_frames, nr_groups;
	bool is_unsure;  /* another thread may be running them: every load needs a check */
	bool is_settled; /* what is read now cannot be in motion: no load needs a check */
	bool is_full;
	bool is_broken; /* frames are missing at the outer end */
};

/* What is done with frames of interpreters: --frames. */
enum csink_interp_mode {
	CSINK_INTERP_AUTO,   /* each takes the place of the evaluator's call that ran it */
	CSINK_INTERP_NATIVE, /* they are not read */
	CSINK_INTERP_BOTH,   /* each stands beside it */
};

/** The mode of a name, -EINVAL if there is none. Context: any. */
int csink_interp_parse(const char *name);

/** Begin with a process, or with a forked child: no interpreter is known. Context: init. */
void csink_interp_begin(enum csink_interp_mode mode);

/** The objects that the program starts with have been looked at. Context: init. */
void csink_interp_started(void);

/** How many interpreters there are. */
extern _Atomic uint32_t csink_interp_nr;

/**
 * Merge the frames of interpreters into a walk of the calling thread that has ended: its frames are then others, and
 * `same` is not known.
 * @room  the thread's; taken here at first. Context: signal.
 */
void csink_interp_merge(struct csink_walk *walk, const ucontext_t *uc, struct csink_interp_room **room,
			struct csink_recording *rec, struct csink_writer *writer);

/* ---- for the languages ---- */

/** The word at an address; false if it cannot be read. Context: signal. */
bool csink_interp_load(struct csink_interp_walk *walk, uintptr_t at, uint64_t *value);

/* A function as its interpreter has it, for code_ids.c. Texts are read only when it is new. */
struct csink_code_source {
	uint16_t kind;     /* enum csink_code_kind */
	uint64_t identity; /* equal for equal functions, and in a process for no others */
	uint32_t first_line;
	/** Append name, NUL, file, NUL to @to, of which @room bytes are left. Returns how many, or 0. */
	uint32_t (*names)(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to,
			  uint32_t room);
	uintptr_t name, file, table; /* where they are */
	uint32_t table_bytes;
};

/** A frame of the current group: a function and the position in it. False: there is no room for more. */
bool csink_interp_frame(struct csink_interp_walk *walk, const struct csink_code_source *source, uint32_t position);

/** The current group ends here: what was added since the last one was run by the call whose frame holds @record. */
void csink_interp_group(struct csink_interp_walk *walk, uintptr_t record);

/* code_ids.c */

/** The function's entry in the recording, made at first sight; 0: the recording is full, or its names could not be
 * read. Context: signal. */
csink_ref_t csink_code_id(struct csink_interp_walk *walk, const struct csink_code_source *source);

/** Have room for ids. Returns false without memory. Context: signal; one thread at a time. */
bool csink_code_ids_begin(void);

/** A new recording begins. Context: init. */
void csink_code_ids_reset(void);

/** The program has locked its memory (mlockall(2)). Context: thread. */
void csink_code_ids_unlock(void);

extern const struct csink_language csink_python;

#endif
