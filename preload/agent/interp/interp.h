/*
 * Frames of interpreted languages: found in the interpreter's own records by the handler of the thread that runs them,
 * and merged into the native stack by address.
 *
 * The way: each object that is loaded is tested for being an interpreter (find). At a sample, the language lists the
 * thread's frames in groups, innermost first (walk). A group is the frames that one call of the evaluator runs; it is
 * identified by a record, which is an address in the native frame of that call. A frame is one word: a function of the
 * recording (CSINK_ENTRY_CODE, written by code_ids.c at its first sample) and a position in it, which the launcher
 * turns into a name, a file and a line. A group is merged beside the native frame that its record lies in: this needs
 * no symbols, and calls of native code keep their place.
 *
 * To add a language: its file NAME.c in this directory defines a struct csink_language, which is declared at the end of
 * this header. What else it needs, in the launcher and the tests, too, is listed in CONTRIBUTING.md, "An interpreter".
 */
#ifndef CSINK_INTERP_H
#define CSINK_INTERP_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "include/internal/base.h"
#include "preload/agent/unwind/modules.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/elf_symbol.h"
#include "preload/core/record/recording.h"
#include "preload/core/safe_load.h"

/* Not on the way of most samples: compiled for size. */
#define CSINK_RARE __attribute__((noinline, cold))

struct csink_code_source;
struct csink_interpreter;
struct csink_interp_walk;

/* What a language gives. */
struct csink_language {
	const char *name;
	/**
	 * Is the object this language's interpreter? If so, sets code of @to and, where the language needs them, calls,
	 * data, evaluator and evaluator_end: all are 0 before. Returns 1: yes; 0: no; -1: an interpreter whose frames
	 * cannot be read, and *why is the reason, a constant. Context: init, signal (the object stays loaded during the
	 * call).
	 */
	int (*find)(const struct csink_elf_view *object, struct csink_interpreter *to, const char **why);
	/**
	 * List all frames of the calling thread, innermost first: csink_interp_frame() for each,
	 * csink_interp_group() after the last one of each group. Context: signal.
	 */
	void (*walk)(struct csink_interp_walk *walk);
	/**
	 * Describe a function whose frame walk has just added for the first time. Returns false if it cannot be read.
	 * Context: signal.
	 */
	bool (*describe)(struct csink_interp_walk *walk, uintptr_t code, struct csink_code_source *to);
};

/* A function that the interpreter's object calls through its procedure linkage table. */
struct csink_interp_call {
	uintptr_t slot; /* where its address is; 0: it is not called so */
	uintptr_t own;  /* the object's own definition; 0: it is another's */
};

/* An interpreter that was found in this process. */
struct csink_interpreter {
	const struct csink_language *language;
	csink_ref_t module;
	uintptr_t code;       /* an address in it, set by find: of a function that walk calls */
	uintptr_t eh_frame;   /* of its object, as csink_module has it */
	uintptr_t start, end; /* of its object's code */
	/* Set by find: what the functions that walk calls call, getters without effects. See is_bound() in interp.c. */
	struct csink_interp_call calls[3];
	bool is_bound;
	bool is_for_good; /* loaded with the program: it is never unloaded */
	/*
	 * The evaluator's code if groups have no records: then each of its calls has one group, and they are paired by
	 * count. 0, 0: groups have records.
	 */
	uintptr_t evaluator, evaluator_end;
	/*
	 * The code of a function which the evaluator calls, and which has the loop over instructions: both are
	 * replaced. 0: the evaluator has it. Stored by any thread: csink_interp_set_loop().
	 */
	uintptr_t loop, loop_end;
	uint64_t data[9];                   /* the language's own, constant */
	uint64_t learnt;                    /* the language's own, stored by any thread */
	uintptr_t constants, constants_end; /* the segment of its object with constants and unwind tables; 0, 0: none */
	/* Its last writable segment, readable as long as the object is loaded: loads there are not checked. 0, 0: none.
	 */
	uintptr_t variables, variables_end;
};

/** Is the address in the evaluator's code? Always false where groups have records. */
static inline bool csink_interp_is_evaluator(const struct csink_interpreter *interpreter, uintptr_t pc)
{
	return pc - interpreter->evaluator < interpreter->evaluator_end - interpreter->evaluator;
}

/* Frames that one call of the evaluator runs. */
struct csink_interp_group {
	uintptr_t record; /* an address in that call's native frame */
	uint32_t first, nr;
};

/* A function that had a frame in a walk. What has a frame is not freed: it is the same one until the walk ends. */
struct csink_interp_seen {
	uintptr_t code;
	uint64_t walk; /* its number; or what the language has in place of it */
	csink_ref_t ref;
	uint32_t own_bytes; /* the language's own */
	uintptr_t own;
};

enum { CSINK_INTERP_SEEN = 256 };

/* A thread's buffers for merging: private memory, allocated at its first sample in a process with an interpreter. */
struct csink_interp_room {
	uint64_t frames[CSINK_MAX_DEPTH]; /* of the interpreter, innermost first */
	uint64_t merged[CSINK_MAX_DEPTH]; /* both kinds; also the scratch of csink_walk_cfas() */
	uintptr_t cfas[CSINK_MAX_DEPTH];  /* of the native frames: see csink_walk_cfas() */
	uintptr_t fps[CSINK_MAX_DEPTH];   /* likewise */
	struct csink_interp_group groups[CSINK_MAX_DEPTH];
	struct csink_interp_seen seen[CSINK_INTERP_SEEN]; /* each in the pair of its address's hash */
	uint64_t nr_walks;                                /* so far: the number of the current one */
	uint64_t epoch;                                   /* Java's, in place of the number of a walk */
	uintptr_t own;                                    /* the language's own, 0 in a thread that starts */
	void *kept; /* the language's own memory; a thread that starts has that of a former one */
};

#define CSINK_INTERP_PAGE_BITS 6

struct csink_interp_walk {
	const struct csink_interpreter *interpreter;
	struct csink_recording *rec;
	struct csink_writer *writer;
	struct csink_interp_room *room;
	struct csink_loader load;
	const struct csink_walk *native; /* the native walk, from this context */
	const ucontext_t *context;
	bool has_cfas; /* room->cfas has those of the native frames: csink_interp_find_cfas() */
	uint32_t nr_frames, nr_groups;
	/* Addresses of readable words, as the language knows: csink_interp_load() does not check them. */
	uintptr_t known, known_bytes;
	uintptr_t pages[1 << CSINK_INTERP_PAGE_BITS]; /* that were found readable: each in the pair of its number's hash
						       */
	bool is_unsure;                               /* another thread may be changing what is read */
	bool is_settled; /* set by the language: what is read from now on is whole, so loads are not checked */
	bool is_full;    /* there were more frames than CSINK_MAX_DEPTH */
	bool is_broken;  /* frames are missing at the outer end */
	const void *own; /* the language's own, of the frame that is added: for describe() */
};

/* What is done with frames of interpreters: --frames. */
enum csink_interp_mode {
	CSINK_INTERP_AUTO,   /* a group replaces the native frame of the evaluator's call that runs it */
	CSINK_INTERP_NATIVE, /* frames of interpreters are not read */
	CSINK_INTERP_BOTH,   /* a group is added, and the native frame stays */
};

/** The mode of a name, -EINVAL if there is none. Context: any. */
int csink_interp_parse(const char *name);

/** Start in a process or a forked child, before csink_modules_init(): no interpreter is known. Context: init. */
void csink_interp_begin(enum csink_interp_mode mode);

/** The objects that the program starts with have been looked at. Context: init. */
void csink_interp_started(void);

/** How many interpreters were found. Stored by the thread that refreshes modules (interp.c), loaded by handlers. */
extern _Atomic uint32_t csink_interp_nr CSINK_HIDDEN;

/** A thread starts with the buffers of one that has ended; NULL: there are none yet. Context: thread. */
static inline void csink_interp_room_reset(struct csink_interp_room *room)
{
	if (room)
		room->own = 0;
}

/** Allocate a thread's buffers, unless they are there. Returns false without memory. Context: signal. */
bool csink_interp_has_room(struct csink_interp_room **room);

/**
 * Merge the frames of interpreters into a finished walk of the calling thread. If there are any, walk->frames points
 * into *room afterwards, and walk->same is 0.
 * @room  the thread's buffers; NULL at first, then allocated here.
 * Context: signal.
 */
void csink_interp_merge(struct csink_walk *walk, const ucontext_t *uc, struct csink_interp_room **room,
			struct csink_recording *rec, struct csink_writer *writer);

/* ---- for the languages ---- */

/* Where glibc has a thread's thread-local memory is known. */
#if defined(__x86_64__)
enum { CSINK_INTERP_HAS_THREAD_LOCAL = 1 };
#else
enum { CSINK_INTERP_HAS_THREAD_LOCAL = 0 };
#endif

/**
 * Load a word of this thread's thread-local memory, for which __tls_get_addr() could allocate memory.
 * @place   where the object has the module's number and the offset in its memory: see csink_elf_thread_local().
 * @offset  is added.
 * Returns false if the thread has no such memory yet. The module of that number may be another one: whether the value
 * is right must be tested. Context: signal.
 */
bool csink_interp_thread_local(struct csink_interp_walk *walk, uintptr_t place, uint64_t offset, uint64_t *value);

/** Load the word at an address. Returns false if it cannot be read. Context: signal. */
bool csink_interp_load(struct csink_interp_walk *walk, uintptr_t at, uint64_t *value);

/** The same, checked even if is_settled, since its page may be unreadable for a while; but not in the variables of the
 * interpreter's object. Context: signal. */
bool csink_interp_load_checked(struct csink_interp_walk *walk, uintptr_t at, uint64_t *value);

/** Copy memory that another thread may unmap or protect meanwhile. False: it cannot be read. Context: signal. */
bool csink_interp_copy(struct csink_interp_walk *walk, uintptr_t at, void *to, size_t bytes);

/** The same as csink_interp_load(), faster where it lies in the known memory. Context: signal. */
static inline bool csink_interp_load_known(struct csink_interp_walk *walk, uintptr_t at, uint64_t *value)
{
	if (CSINK_UNLIKELY(at - walk->known >= walk->known_bytes))
		return csink_interp_load(walk, at, value);
	*value = csink_load_known(at);
	return true;
}

/* Bytes in the interpreter's memory. */
struct csink_code_part {
	uintptr_t at;
	uint32_t bytes;
};

/* A function in the interpreter's memory, for code_ids.c: read at its first sample only. */
struct csink_code_source {
	uint16_t kind; /* enum csink_code_kind */
	uint32_t first_line;
	/** Write name, NUL, file, NUL to @to, of @room bytes. Returns how many, or 0: they cannot be read. */
	uint32_t (*names)(struct csink_interp_walk *walk, const struct csink_code_source *source, char *to,
			  uint32_t room);
	uintptr_t name, file; /* addresses, in the form that names() reads */
	bool is_path;         /* the file's name is a path, which may be relative */
	uintptr_t table;      /* address of the line table's bytes */
	uint32_t table_bytes;
	struct csink_code_part more[3]; /* what the table goes on with */
	uint32_t own[5];                /* for a line table that describe() makes itself */
};

/**
 * The entry with this address, of this or an earlier walk (compare its walk); if there is none, one to overwrite: the
 * first of its pair, whose former entry takes the second's place. Context: signal.
 */
static inline struct csink_interp_seen *csink_interp_seen_at(struct csink_interp_walk *walk, uintptr_t code)
{
	struct csink_interp_seen *pair = &walk->room->seen[(code >> 4 ^ code >> 10) * 2 % CSINK_INTERP_SEEN];

	if (pair[0].code == code || pair[1].code == code)
		return &pair[pair[0].code != code];
	pair[1] = pair[0];
	return pair;
}

/**
 * Add a frame to the current group: a function's entry in the recording, 0 if it has none, and the position in it.
 * Returns false if it was not added, and no frame may follow. Context: signal.
 */
static inline bool csink_interp_add(struct csink_interp_walk *walk, csink_ref_t ref, uint32_t position)
{
	if (CSINK_UNLIKELY(walk->nr_frames == CSINK_MAX_DEPTH)) {
		walk->is_full = true;
		return false;
	}
	if (CSINK_UNLIKELY(!ref)) {
		walk->is_broken = true;
		return false;
	}
	walk->room->frames[walk->nr_frames++] = CSINK_FRAME_CODE | (uint64_t)ref << 32 | position;
	return true;
}

/**
 * Add a frame to the current group: a function and the position in it.
 * @identity  a hash; within a process different functions have different ones.
 * @code      the function, as describe() of the language takes it.
 * Returns false if it was not added, and no frame may follow. Context: signal.
 */
bool csink_interp_frame(struct csink_interp_walk *walk, uint64_t identity, uintptr_t code, uint32_t position);

/**
 * End the current group: the frames that were added since the last group ended.
 * @record  an address in the native frame of the call that runs them; any value where they are paired by count.
 * Context: signal.
 */
void csink_interp_group(struct csink_interp_walk *walk, uintptr_t record);

/** The same where each frame is a group: the one that was just added. Context: signal. */
static inline void csink_interp_group_of_one(struct csink_interp_walk *walk, uintptr_t record)
{
	walk->room->groups[walk->nr_groups++] = (struct csink_interp_group){record, walk->nr_frames - 1, 1};
}

/** Mix a word into an identity. */
static inline uint64_t csink_interp_mix(uint64_t identity, uint64_t word)
{
	identity = (identity ^ word) * 0x9fb21c651e98df25ULL;
	return identity ^ identity >> 29;
}

/** Mix text at any address into an identity: its aligned words, without the bytes around it. False: it cannot be read,
 * and the identity is of no use. Context: signal. */
bool csink_interp_mix_text(struct csink_interp_walk *walk, uintptr_t text, uint64_t bytes, uint64_t *identity);

/**
 * Copy text: @bytes, or up to a NUL if one comes earlier, at most @room of them. Returns how many bytes were copied,
 * without a NUL at their end; -1: they cannot be read. Context: signal.
 */
int32_t csink_interp_text(struct csink_interp_walk *walk, uintptr_t at, uint64_t bytes, char *to, uint32_t room);

/**
 * Does this thread run the evaluator? Its native stack shows it; where the outer end of that is not known, it may.
 * Context: signal.
 */
bool csink_interp_may_run(const struct csink_interp_walk *walk);

/** Set room->cfas and fps, if they are not set yet. Context: signal. */
void csink_interp_find_cfas(struct csink_interp_walk *walk);

/** Where the function with the loop over instructions begins; 0: it was not set. Context: signal. */
static inline uintptr_t csink_interp_loop(const struct csink_interpreter *interpreter)
{
	return __atomic_load_n(&interpreter->loop, __ATOMIC_ACQUIRE);
}

/** Set it, once it is known; all threads set the same. Context: signal. */
void csink_interp_set_loop(const struct csink_interp_walk *walk, uintptr_t start, uintptr_t end);

/** The interpreter's frames cannot be read after all, for a reason, a constant: no more walks. Context: signal. */
void csink_interp_refuse(const struct csink_interp_walk *walk, const char *why);

/* code_ids.c */

/**
 * Returns the function's entry in the recording, written by the first call; 0: the recording is full, or the function's
 * names cannot be read. Context: signal.
 */
csink_ref_t csink_code_id(struct csink_interp_walk *walk, uint64_t identity, uintptr_t code);

/** Allocate the table of functions, once. Returns false without memory. Context: signal; one thread at a time. */
bool csink_code_ids_begin(void);

/** Remove all functions: a new recording starts. Context: init. */
void csink_code_ids_reset(void);

/* How often that was done: an entry is of the recording of its time. Constant between forks. */
extern uint32_t csink_code_ids_nr_resets CSINK_HIDDEN;

/** Unlock the table's memory after the program called mlockall(2). Context: thread. */
void csink_code_ids_unlock(void);

/*
 * Whether HotSpot's tables are known: an enum that hotspot_tables.c continues. Atomic. A forked child resets "busy",
 * since the thread that was looking in its parent is not there (interp.c).
 */
enum { CSINK_HOTSPOT_UNKNOWN, CSINK_HOTSPOT_BUSY };
extern int csink_hotspot_state CSINK_HIDDEN;

extern const struct csink_language csink_hotspot; /* hotspot.c */
extern const struct csink_language csink_perl;    /* perl.c */
extern const struct csink_language csink_php;     /* php.c */
extern const struct csink_language csink_python;  /* python.c */
extern const struct csink_language csink_ruby;    /* ruby.c */
extern const struct csink_language csink_v8;      /* v8.c */

#endif
