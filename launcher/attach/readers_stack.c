/* Reading the frames of a sample's thread, and whether it stood still: see readers_impl.h. Runs in the readers. */
#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/attach/readers_impl.h"
#include "launcher/attach/walk_copied.h"

enum {
	TOP_BYTES = 512,     /* of the stack, which a thread that runs changes all the time */
	RESULT_BYTES = 256,  /* of the stack, that a system call returns a struct in */
	LOCALS_BYTES = 4096, /* of the stack, in which the innermost call of the evaluator has its variables, mostly */
	INSTRUCTION_BYTES = 64 /* of bytecode, with what an instruction keeps behind it */
};

/* The state is still the thread's: it may have ended, and its number or its state may be another thread's now. */
static bool has_state(struct csink_reader *reader, const struct csink_python *object,
		      const struct csink_reader_thread *thread)
{
	int32_t tid;
	uint64_t self;

	return csink_remote_load(&reader->remote, thread->state + object->layout->thread_id, &self) &&
	       !csink_remote_copy(reader->remote.pid, &tid, csink_python_tid_at(self), sizeof(tid)) &&
	       tid == thread->inside;
}

/* Is the stack as it was, but for one range of bytes? */
static bool is_same(const char *now, const char *then, uint64_t bytes, uint64_t may_differ)
{
	uint64_t from = 0, to = bytes;

	while (from < bytes && now[from] == then[from])
		from++;
	while (to > from && now[to - 1] == then[to - 1])
		to--;
	return to - from <= may_differ;
}

/*
 * The thread has not run since its sample: the top of its stack is what it was, and its newest frame is still where it
 * was when the frames were read. It may run on while they are read, since the scheduler may move it to another CPU.
 * A sample in the kernel does not keep a system call from storing its result; a reader that runs before all others runs
 * before the thread's next instruction all the same.
 */
static bool stands_still(const struct csink_reader *reader, const struct csink_attach_sample *s)
{
	const struct csink_python_stack *stack = &reader->stack;
	struct csink_remote_piece pieces[1 + CSINK_PYTHON_NEWEST];
	uint64_t bytes = CSINK_MIN(s->stack_bytes, (uint64_t)TOP_BYTES), now[CSINK_PYTHON_NEWEST];
	uint32_t nr = 0;
	char top[TOP_BYTES];

	if (bytes)
		pieces[nr++] = (struct csink_remote_piece){csink_walk_copy_reg(s->regs, CSINK_REG_SP), top, bytes};
	for (uint32_t i = 0; i < stack->nr_newest; i++)
		pieces[nr++] = (struct csink_remote_piece){stack->newest[i].at, &now[i], sizeof(now[i])};
	if (csink_remote_copy_each(s->pid, pieces, nr) != nr ||
	    !is_same(top, s->stack, bytes, s->in_kernel && reader->is_first ? RESULT_BYTES : 0))
		return false;
	for (uint32_t i = 0; i < stack->nr_newest; i++) {
		if (now[i] != stack->newest[i].value)
			return false;
	}
	return true;
}

/*
 * For a reader that others may run before, a sharper test. The evaluator has the address of its next instruction in a
 * register, or on the stack while it calls C code. The innermost frame has the address of the last one that it began.
 * If the sampled values have none that follows it closely, then the frame has moved on, or the build keeps it
 * elsewhere.
 */
static bool is_at_instruction(struct csink_reader *reader, const struct csink_attach_sample *s)
{
	const struct csink_python_stack *stack = &reader->stack;
	const struct csink_python_layout *layout = stack->object->layout;
	uint64_t bytes = CSINK_MIN(s->stack_bytes, (uint64_t)LOCALS_BYTES), at, value;

	if (!stack->nr_frames || layout->minor < 8)
		return true;
	at = stack->codes[0] + layout->bytecode;
	if (layout->minor < 11) { /* a bytes */
		if (!csink_remote_load(&reader->remote, at, &at))
			return false;
		at += CSINK_PYTHON_BYTES_TEXT;
	}
	if (stack->positions[0] != CSINK_CODE_NOT_BEGUN)
		at += stack->positions[0];
	for (uint32_t reg = 0; reg < CSINK_NR_REGS; reg++) {
		if (csink_walk_copy_reg(s->regs, reg) - at < INSTRUCTION_BYTES)
			return true;
	}
	for (uint64_t offset = 0; offset + sizeof(value) <= bytes; offset += sizeof(value)) {
		memcpy(&value, s->stack + offset, sizeof(value));
		if (value - at < INSTRUCTION_BYTES)
			return true;
	}
	return false;
}

/* A record that belongs to a call lies in the thread's native stack: else the frames are another thread's. */
static bool are_records_on(const struct csink_python_stack *stack, uint64_t sp)
{
	for (uint32_t i = 0; i < stack->nr_groups; i++) {
		uint64_t record = stack->groups[i].record;

		if (record && record != CSINK_PYTHON_UNKNOWN &&
		    (record < sp - CSINK_PYTHON_NEAR || record - sp > 1ULL << 32))
			return false;
	}
	return true;
}

enum csink_read_state csink_reader_read(struct csink_reader *reader, const struct csink_reader_process *process,
					const struct csink_attach_sample *s, const struct csink_reader_thread *thread)
{
	uint64_t sp = csink_walk_copy_reg(s->regs, CSINK_REG_SP);
	int err;

	csink_remote_begin(&reader->remote, s->pid);
	reader->remote.stack = s->stack;
	reader->remote.stack_at = sp;
	reader->remote.stack_bytes = s->stack_bytes;
	if (!has_state(reader, &process->python.object, thread))
		return CSINK_READ_UNFINISHED;
	err = csink_python_walk(&reader->stack, &process->python.object, &reader->remote, thread->state);
	if (!err && !are_records_on(&reader->stack, sp))
		err = -EAGAIN;
	if (!err)
		err = csink_attach_codes_take(reader->all->codes, reader->room, &reader->stack, &process->python,
					      process->serial, reader->ids);
	if (!stands_still(reader, s) || (!err && !reader->is_first && !is_at_instruction(reader, s)))
		return CSINK_READ_LATE;
	return err == -ENOMEM ? CSINK_READ_NO_ROOM : err ? CSINK_READ_UNFINISHED : CSINK_READ_DONE;
}
