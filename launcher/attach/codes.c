/* See codes.h. */
#include "launcher/attach/codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"

enum {
	HEAD_BYTES = 144,  /* of a code object, in which all is that is looked at */
	OBJECT_BYTES = 32, /* of a str or bytes: its hash or size */
	NAME_BYTES = 40,   /* of a str: where its text is, too */
	MAX_CODES = 1 << 20,
	SLOTS = 2 * CSINK_MAX_DEPTH,
	NEAR_HEADS = 16,
	TABLE_BYTES = CSINK_PYTHON_BYTES_TEXT + 224, /* of a line table's object: mostly all of it */
};

#define MAX_BYTES (256ULL << 20) /* of all texts */

/* A code object of the stack that is being taken. */
struct head {
	uint64_t address, identity;
	uint32_t id;
	bool is_common; /* it is one of the interpreter's own variables: the same in all processes that run its file */
	char object[HEAD_BYTES];
	/* To 3.11: what identifies it besides. */
	char name[NAME_BYTES], file[OBJECT_BYTES], table[TABLE_BYTES];
	uint64_t table_last;
	char text[CSINK_PYTHON_NAME_SEEN]; /* of a name that has no hash yet */
	uint64_t text_last;
	uint32_t file_of; /* index of the head that has its file */
};

struct csink_attach_codes_room {
	const struct csink_python_stack *stack;
	struct head heads[CSINK_MAX_DEPTH];
	struct csink_remote_piece pieces[4 * CSINK_MAX_DEPTH];
	uint32_t nr_heads, nr_pieces;
	uint16_t slots[SLOTS]; /* by address: index in heads, + 1 */
	uint16_t head_of[CSINK_MAX_DEPTH];
};

static uint64_t word_at(const void *from, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)from + offset, sizeof(word));
	return word;
}

static uint32_t half_at(const void *from, uint32_t offset)
{
	uint32_t half;

	memcpy(&half, (const char *)from + offset, sizeof(half));
	return half;
}

static const struct csink_python_layout *layout_of(const struct csink_attach_codes_room *t)
{
	return t->stack->object->layout;
}

/* ---- reading what identifies them ---- */

static void add_piece(struct csink_attach_codes_room *t, uint64_t from, void *to, size_t bytes)
{
	t->pieces[t->nr_pieces++] = (struct csink_remote_piece){from, to, bytes};
}

static bool copy_pieces(struct csink_attach_codes_room *t)
{
	uint32_t nr = t->nr_pieces;

	t->nr_pieces = 0;
	return csink_remote_copy_each(t->stack->remote->pid, t->pieces, nr) == nr;
}

/* One of the interpreter's variables is known by where it is in the file. */
static void identify_common(struct head *head, const struct csink_attach_python *python)
{
	uint64_t at = head->address - python->data;

	head->is_common = at < python->data_bytes;
	head->identity = head->is_common ? csink_hash_pair((uintptr_t)python->file, at) : 0;
}

/* Each code object once. */
static void list_heads(struct csink_attach_codes_room *t, const struct csink_attach_python *python)
{
	memset(t->slots, 0, sizeof(t->slots));
	t->nr_heads = t->nr_pieces = 0;
	for (uint32_t i = 0; i < t->stack->nr_frames; i++) {
		uint64_t address = t->stack->codes[i];
		uint32_t slot = (uint32_t)(address >> 4 ^ address >> 14) % SLOTS;

		while (t->slots[slot] && t->heads[t->slots[slot] - 1].address != address)
			slot = (slot + 1) % SLOTS;
		if (!t->slots[slot]) {
			t->heads[t->nr_heads].address = address;
			identify_common(&t->heads[t->nr_heads], python);
			t->slots[slot] = (uint16_t)++t->nr_heads;
		}
		t->head_of[i] = (uint16_t)(t->slots[slot] - 1);
	}
}

/* A live code object: its type, and a count of references that is one. */
static bool is_code(const struct csink_attach_codes_room *t, const struct head *head)
{
	return csink_python_is_alive(word_at(head->object, 0)) &&
	       word_at(head->object, CSINK_PYTHON_OBJECT_TYPE) == t->stack->object->code_type;
}

/* What is known already, of the common ones, is not read again. */
static bool copy_heads(struct csink_attach_codes_room *t)
{
	for (uint32_t i = 0; i < t->nr_heads; i++) {
		if (!t->heads[i].id)
			add_piece(t, t->heads[i].address, t->heads[i].object, HEAD_BYTES);
	}
	if (!copy_pieces(t))
		return false;
	for (uint32_t i = 0; i < t->nr_heads; i++) {
		if (!t->heads[i].id && !is_code(t, &t->heads[i]))
			return false;
	}
	return true;
}

/* It is identified by its content. */
static bool needs_content(const struct csink_attach_codes_room *t, const struct head *head)
{
	return !head->is_common && (!layout_of(t)->version || !half_at(head->object, layout_of(t)->version));
}

/* Which code object of the stack has the same file, and comes first; only some are compared. */
static uint32_t file_of(const struct csink_attach_codes_room *t, uint32_t i)
{
	uint64_t file = word_at(t->heads[i].object, layout_of(t)->file);

	for (uint32_t k = i; k-- > 0 && i - k <= NEAR_HEADS;) {
		if (needs_content(t, &t->heads[k]) && word_at(t->heads[k].object, layout_of(t)->file) == file)
			return t->heads[k].file_of;
	}
	return i;
}

/* A part of each line table that does not depend on its size, which lies before it. */
static void add_content(struct csink_attach_codes_room *t, uint32_t table_bytes)
{
	const struct csink_python_layout *layout = layout_of(t);

	for (uint32_t i = 0; i < t->nr_heads; i++) {
		struct head *head = &t->heads[i];

		if (!needs_content(t, head))
			continue;
		head->file_of = file_of(t, i);
		add_piece(t, word_at(head->object, layout->name), head->name, NAME_BYTES);
		if (head->file_of == i)
			add_piece(t, word_at(head->object, layout->file), head->file, OBJECT_BYTES);
		add_piece(t, word_at(head->object, layout->table), head->table, table_bytes);
	}
}

/* The text of a name that has no hash. Word by word at its end: nothing outside of the object is read. */
static void add_text(struct csink_attach_codes_room *t, struct head *head)
{
	uint64_t bytes = word_at(head->name, CSINK_PYTHON_VAR_SIZE);
	uint64_t text = word_at(head->object, layout_of(t)->name);

	memset(head->text, 0, sizeof(head->text));
	head->text_last = 0;
	if (csink_python_has_hash(word_at(head->name, CSINK_PYTHON_STR_HASH)))
		return;
	text += csink_python_text(layout_of(t), half_at(head->name, CSINK_PYTHON_STR_STATE), &bytes);
	add_piece(t, text, head->text, CSINK_MIN(bytes, sizeof(head->text)));
	if (bytes > sizeof(head->text))
		add_piece(t, text + bytes - sizeof(head->text_last), &head->text_last, sizeof(head->text_last));
}

/* The rest of what identifies a code object: @have bytes of its line table's object have been copied. */
static void add_tables(struct csink_attach_codes_room *t, uint32_t have)
{
	for (uint32_t i = 0; i < t->nr_heads; i++) {
		struct head *head = &t->heads[i];
		uint64_t bytes, seen, at = word_at(head->object, layout_of(t)->table) + CSINK_PYTHON_BYTES_TEXT;

		if (!needs_content(t, head))
			continue;
		bytes = word_at(head->table, CSINK_PYTHON_VAR_SIZE);
		seen = CSINK_MIN(bytes, (uint64_t)TABLE_BYTES - CSINK_PYTHON_BYTES_TEXT);
		if (seen + CSINK_PYTHON_BYTES_TEXT > have)
			add_piece(t, at, head->table + CSINK_PYTHON_BYTES_TEXT, seen);
		memset(head->table + CSINK_PYTHON_BYTES_TEXT + seen, 0, TABLE_BYTES - CSINK_PYTHON_BYTES_TEXT - seen);
		head->table_last = 0;
		add_text(t, head);
		if (bytes > seen && bytes <= UINT32_MAX)
			add_piece(t, at + bytes - sizeof(head->table_last), &head->table_last,
				  sizeof(head->table_last));
	}
}

/* For code objects without a number of their own, which are from 3.12 on few. */
static bool copy_content(struct csink_attach_codes_room *t)
{
	uint32_t have = TABLE_BYTES;

	add_content(t, have);
	if (!copy_pieces(t)) {
		/* Behind a short table there may be no memory: its head comes first. */
		have = OBJECT_BYTES;
		add_content(t, have);
		if (!copy_pieces(t))
			return false;
	}
	add_tables(t, have);
	return copy_pieces(t);
}

static void identify(const struct csink_attach_codes_room *t, struct head *head, uint64_t process)
{
	const struct csink_python_layout *layout = layout_of(t);
	struct csink_hash h = csink_hash_begin();

	csink_hash_word(&h, process);
	csink_hash_word(&h, head->address);
	csink_hash_word(&h, word_at(head->object, layout->name));
	csink_hash_word(&h, word_at(head->object, layout->file));
	csink_hash_word(&h, word_at(head->object, layout->table));
	csink_hash_word(&h, (uint64_t)half_at(head->object, layout->first_line) << 32 |
				    (layout->version ? half_at(head->object, layout->version) : 0));
	if (needs_content(t, head)) {
		csink_hash_word(&h, word_at(head->name, CSINK_PYTHON_STR_HASH));
		csink_hash_word(&h, word_at(head->name, CSINK_PYTHON_VAR_SIZE));
		csink_hash_word(&h, csink_hash_bytes(head->text, sizeof(head->text)));
		csink_hash_word(&h, head->text_last);
		csink_hash_word(&h, word_at(t->heads[head->file_of].file, CSINK_PYTHON_STR_HASH));
		for (uint32_t at = CSINK_PYTHON_VAR_SIZE; at < TABLE_BYTES; at += 8)
			csink_hash_word(&h, at == CSINK_PYTHON_VAR_SIZE + 8 ? 0 : word_at(head->table, at));
		csink_hash_word(&h, head->table_last);
	}
	head->identity = csink_hash_end(&h);
}

/* ---- reading what they are ---- */

/* A str as UTF-8, and a NUL. Returns how many bytes; 0: it cannot be read. */
static uint32_t copy_str(const struct csink_attach_codes_room *t, uint64_t str, char *to)
{
	char head[OBJECT_BYTES + 8], text[4 * CSINK_PYTHON_MAX_TEXT];
	uint32_t state, width, nr = 0, nr_chars;
	uint64_t length;

	if (csink_remote_copy(t->stack->remote->pid, head, str, sizeof(head)))
		return 0;
	length = word_at(head, CSINK_PYTHON_VAR_SIZE);
	state = half_at(head, CSINK_PYTHON_STR_STATE);
	width = state >> 2 & 7;
	if (width != 1 && width != 2 && width != 4)
		return 0;
	nr_chars = (uint32_t)CSINK_MIN(length, (uint64_t)CSINK_PYTHON_MAX_TEXT);
	str += state & CSINK_PYTHON_STR_ASCII ? layout_of(t)->ascii : layout_of(t)->compact;
	if (csink_remote_copy(t->stack->remote->pid, text, str, nr_chars * width))
		return 0;
	for (uint32_t i = 0; i < nr_chars && nr + 4 < CSINK_PYTHON_MAX_TEXT; i++) {
		uint32_t c = 0;

		memcpy(&c, text + i * width, width);
		nr += csink_python_put_char(to + nr, c);
	}
	to[nr++] = 0;
	return nr;
}

/* The code as a recording has it; its text is allocated. */
static bool describe(const struct csink_attach_codes_room *t, const struct head *head, struct csink_attach_code *to)
{
	const struct csink_python_layout *layout = layout_of(t);
	uint64_t table = word_at(head->object, layout->table), bytes = 0;
	char names[2 * CSINK_PYTHON_MAX_TEXT];
	uint32_t name, file;

	name = copy_str(t, word_at(head->object, layout->name), names);
	file = name ? copy_str(t, word_at(head->object, layout->file), names + name) : 0;
	if (!file || csink_remote_copy(t->stack->remote->pid, &bytes, table + CSINK_PYTHON_VAR_SIZE, sizeof(bytes)))
		return false;
	*to = (struct csink_attach_code){.kind = layout->kind,
					 .nr_names = (uint16_t)(name + file),
					 .first_line = half_at(head->object, layout->first_line),
					 .nr_table = bytes <= CSINK_CODE_MAX_TABLE ? (uint32_t)bytes : 0};
	to->text = malloc((size_t)to->nr_names + to->nr_table);
	if (!to->text)
		return false;
	memcpy(to->text, names, to->nr_names);
	if (to->nr_table && csink_remote_copy(t->stack->remote->pid, to->text + to->nr_names,
					      table + CSINK_PYTHON_BYTES_TEXT, to->nr_table))
		to->nr_table = 0;
	to->lacks_table = bytes && !to->nr_table;
	return true;
}

/* ---- the table ---- */

static bool is_same(const struct csink_attach_code *a, const struct csink_attach_code *b)
{
	return a->kind == b->kind && a->nr_names == b->nr_names && a->nr_table == b->nr_table &&
	       a->lacks_table == b->lacks_table && a->first_line == b->first_line &&
	       !memcmp(a->text, b->text, (size_t)a->nr_names + a->nr_table);
}

/* The id of a description, whose text becomes the table's or is freed; 0: no room. The lock is held. */
static uint32_t intern(struct csink_attach_codes *codes, struct csink_attach_code *code)
{
	uint64_t bytes = (uint64_t)code->nr_names + code->nr_table;
	uint32_t hash = (uint32_t)csink_hash_pair(csink_hash_bytes(code->text, bytes), code->first_line);
	struct csink_slot *slot = NULL;

	if (!codes->is_closed && !csink_table_room(&codes->content)) {
		CSINK_TABLE_PROBE(codes->content, hash, slot, is_same(&codes->at[id - 1], code));
		if (!slot->id && codes->nr < MAX_CODES && bytes <= MAX_BYTES - codes->bytes &&
		    !CSINK_GROW(codes->at, codes->nr, codes->cap)) {
			codes->at[codes->nr] = *code;
			codes->bytes += bytes;
			csink_table_set(&codes->content, slot, hash, ++codes->nr);
			return codes->nr;
		}
	}
	free(code->text);
	return slot ? slot->id : 0;
}

/* The slot of an identity; NULL: no memory. The lock is held. */
static struct csink_slot *seen_slot(struct csink_attach_codes *codes, uint64_t identity)
{
	struct csink_slot *slot;

	if (csink_table_room(&codes->seen_index))
		return NULL;
	CSINK_TABLE_PROBE(codes->seen_index, (uint32_t)identity, slot, codes->seen[id - 1].identity == identity);
	return slot;
}

static void remember(struct csink_attach_codes *codes, uint64_t identity, uint32_t code)
{
	if (codes->nr_seen >= MAX_CODES) { /* all are met again, at most */
		csink_table_free(&codes->seen_index);
		codes->nr_seen = 0;
	}
	CSINK_TABLE_INTERN(
		codes->seen_index, (uint32_t)identity, codes->seen[id - 1].identity == identity,
		CSINK_APPEND(codes->seen, codes->nr_seen, codes->cap_seen, (struct csink_attach_seen){identity, code}));
}

/* The ids of what has an identity, as far as they are known; 0: not. */
static void look_up(struct csink_attach_codes *codes, struct csink_attach_codes_room *t)
{
	pthread_mutex_lock(&codes->lock);
	for (uint32_t i = 0; i < t->nr_heads; i++) {
		struct csink_slot *slot = seen_slot(codes, t->heads[i].identity);

		t->heads[i].id = slot && slot->id ? codes->seen[slot->id - 1].id : 0;
	}
	pthread_mutex_unlock(&codes->lock);
}

static int add_new(struct csink_attach_codes *codes, struct csink_attach_codes_room *t)
{
	for (uint32_t i = 0; i < t->nr_heads; i++) {
		struct csink_attach_code code;

		if (t->heads[i].id)
			continue;
		if (!describe(t, &t->heads[i], &code))
			return -EAGAIN;
		pthread_mutex_lock(&codes->lock);
		t->heads[i].id = intern(codes, &code);
		if (t->heads[i].id)
			remember(codes, t->heads[i].identity, t->heads[i].id);
		pthread_mutex_unlock(&codes->lock);
		if (!t->heads[i].id)
			return -ENOMEM;
	}
	return 0;
}

struct csink_attach_codes_room *csink_attach_codes_room_new(void)
{
	return calloc(1, sizeof(struct csink_attach_codes_room));
}

int csink_attach_codes_take(struct csink_attach_codes *codes, struct csink_attach_codes_room *room,
			    const struct csink_python_stack *stack, const struct csink_attach_python *python,
			    uint64_t process, uint32_t *ids)
{
	struct csink_attach_codes_room *t = room;
	int err;

	t->stack = stack;
	list_heads(t, python);
	look_up(codes, t);
	if (!copy_heads(t) || !copy_content(t))
		return -EAGAIN;
	for (uint32_t i = 0; i < t->nr_heads; i++) {
		if (!t->heads[i].is_common)
			identify(t, &t->heads[i], process);
	}
	look_up(codes, t);
	err = add_new(codes, t);
	for (uint32_t i = 0; i < stack->nr_frames && !err; i++)
		ids[i] = t->heads[t->head_of[i]].id;
	return err;
}

int csink_attach_codes_init(struct csink_attach_codes *codes)
{
	memset(codes, 0, sizeof(*codes));
	return -pthread_mutex_init(&codes->lock, NULL);
}

void csink_attach_codes_close(struct csink_attach_codes *codes)
{
	pthread_mutex_lock(&codes->lock);
	codes->is_closed = true;
	pthread_mutex_unlock(&codes->lock);
}

void csink_attach_codes_free(struct csink_attach_codes *codes)
{
	for (uint32_t i = 0; i < codes->nr; i++)
		free(codes->at[i].text);
	free(codes->at);
	free(codes->seen);
	csink_table_free(&codes->content);
	csink_table_free(&codes->seen_index);
	pthread_mutex_destroy(&codes->lock);
	memset(codes, 0, sizeof(*codes));
}
