/*
 * The table of stacks: see stacks.h. Runs in handlers of any thread, without locks; makes a system call only to grow.
 */
#include "preload/core/record/stacks.h"

#include <stddef.h>

#include "include/internal/base.h"
#include "preload/core/record/hash_index.h"

/* Entries that hold many: the first of a thread holds one, the next ones grow up to a quarter of a block. */
enum { FIRST_ROOM = 1, LARGEST_CHUNK = 1008 };

CSINK_INDEX(nodes);
CSINK_INDEX(rows);

void csink_stacks_reset(void)
{
	csink_index_reset(&nodes);
	csink_index_reset(&rows);
}

void csink_stacks_unlock(void)
{
	csink_index_unlock(&nodes);
	csink_index_unlock(&rows);
}

/* ---- hashes ---- */

static inline uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ULL;
	h ^= h >> 32;
	return h;
}

/* As the index wants it. */
static inline uint64_t not_0(uint64_t hash)
{
	return hash ? hash : 1;
}

/* Two independent lanes, so that the multiplications overlap. */
static uint64_t hash_frames(const uint64_t *frames, uint32_t n)
{
	uint64_t a = 0x9e3779b97f4a7c15ULL + n, b = 0xc2b2ae3d27d4eb4fULL;
	uint32_t i;

	for (i = 0; i + 2 <= n; i += 2) {
		a = (a ^ frames[i]) * 0x9fb21c651e98df25ULL;
		b = (b ^ frames[i + 1]) * 0xff51afd7ed558ccdULL;
		a ^= a >> 29;
		b ^= b >> 31;
	}
	if (i < n)
		a = (a ^ frames[i]) * 0x9fb21c651e98df25ULL;
	return mix(a ^ mix(b));
}

static uint64_t hash_chain(const struct csink_sample *sample)
{
	return hash_frames(sample->frames, sample->nr_frames) ^
	       mix(sample->epoch_ns * 0x9e3779b97f4a7c15ULL + sample->chain_flags);
}

/* ---- the latest callers ---- */

/* By fours: most comparisons are of equal ones. */
static bool same_frames(const uint64_t *a, const uint64_t *b, uint32_t n)
{
	uint32_t i;

	for (i = 0; i + 4 <= n; i += 4)
		if ((a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) | (a[i + 3] ^ b[i + 3]))
			return false;
	for (; i < n; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static inline bool same_root(const struct csink_stack_memo *memo, const struct csink_sample *sample)
{
	return memo->node && memo->epoch_ns == sample->epoch_ns && memo->chain_flags == sample->chain_flags;
}

static inline bool same_chain(const struct csink_stack_memo *memo, const struct csink_sample *sample)
{
	if (!same_root(memo, sample))
		return false;
	if (sample->same && memo->same == sample->same)
		return true;
	return memo->nr_frames == sample->nr_frames && same_frames(memo->frames, sample->frames, sample->nr_frames);
}

static void remember(const struct csink_sample *sample, csink_ref_t node, uint64_t hash)
{
	struct csink_stack_memo *memo = sample->memo;

	memo->node = node;
	memo->nr_frames = sample->nr_frames;
	memo->epoch_ns = sample->epoch_ns;
	memo->chain_flags = sample->chain_flags;
	memo->hash = hash;
	memo->same = sample->same;
	for (uint32_t i = 0; i < sample->nr_frames; i++)
		memo->frames[i] = sample->frames[i];
}

/* ---- nodes ---- */

/*
 * The size of a chunk: an entry with a head of so many bytes and room for more of @each, committed empty; what is put
 * there is published one by one, by its number. At the end of an extent it is made to fit. Every one is twice as large
 * as the last (@room).
 */
static uint32_t chunk_bytes(const struct csink_writer *writer, uint16_t *room, uint32_t head, uint32_t each)
{
	uint32_t largest = (LARGEST_CHUNK - head) / each, left = (writer->end - writer->pos) * 8;
	uint32_t nr = CSINK_MIN(CSINK_MAX(*room, (uint32_t)FIRST_ROOM), largest);

	*room = (uint16_t)CSINK_MIN(2 * nr, largest);
	if (left >= head + FIRST_ROOM * each)
		nr = CSINK_MIN(nr, (left - head) / each);
	return head + nr * each;
}

static csink_ref_t new_node(struct csink_recording *rec, struct csink_writer *writer, struct csink_stack_memo *memo,
			    const struct csink_rec_node *node)
{
	struct csink_rec_nodes *chunk = memo->nodes;
	struct csink_rec_node *at;
	uint32_t bytes;

	if (!chunk || memo->nodes_nr == memo->nodes_max) {
		bytes = chunk_bytes(writer, &memo->nodes_room, sizeof(*chunk), sizeof(*node));
		chunk = csink_recording_reserve(rec, writer, bytes);
		if (!chunk)
			return 0;
		csink_recording_commit(chunk, bytes, CSINK_ENTRY_NODES, 0);
		memo->nodes = chunk;
		memo->nodes_nr = 0;
		memo->nodes_max = (uint16_t)((bytes - sizeof(*chunk)) / sizeof(*node));
	}
	at = &chunk->nodes[memo->nodes_nr++];
	*at = *node;
	/* Pairs with the reader's acquire: what is counted is written. */
	__atomic_store_n(&chunk->nr, memo->nodes_nr, __ATOMIC_RELEASE);
	return csink_recording_ref(rec, at);
}

/* Take back the node that new_node gave last; no other thread has seen it. */
static void drop_newest_node(struct csink_stack_memo *memo)
{
	__atomic_store_n(&memo->nodes->nr, --memo->nodes_nr, __ATOMIC_RELEASE);
}

struct node_key {
	const struct csink_recording *rec;
	struct csink_rec_node node;
};

static bool match_node(csink_ref_t ref, uint32_t aux, const void *key)
{
	const struct node_key *k = key;
	const struct csink_rec_node *node = csink_recording_at(k->rec, ref);

	(void)aux;
	return node->pc == k->node.pc && node->parent == k->node.parent && node->flags == k->node.flags;
}

/*
 * Nodes whose parents are near each other in the recording have slots near each other: those of a new stack are made
 * one after the other, and slots all over the index would take a page each.
 */
static uint64_t hash_node(const struct csink_rec_node *node)
{
	enum { NEAR = 0xff }; /* bits of the slot's place that differ for nodes of near parents */
	uint64_t hash = mix(node->pc * 0x9e3779b97f4a7c15ULL ^ ((uint64_t)node->parent << 32 | node->flags));
	uint32_t low = (node->parent ^ node->parent >> 8) & ~(uint32_t)NEAR;

	return not_0((hash & ~(uint64_t)(uint32_t)~NEAR) | low);
}

/*
 * The node of a caller below another one, or a root; 0 when the recording is full. *parent_is_new: the parent was made
 * just now, so that it has no children to be looked for; set to whether the node is.
 */
static csink_ref_t node_get(struct csink_recording *rec, struct csink_writer *writer, struct csink_stack_memo *memo,
			    struct csink_rec_node node, bool *parent_is_new)
{
	struct node_key key = {rec, node};
	uint64_t hash = hash_node(&node);
	const struct csink_index_slot *slot = *parent_is_new ? NULL : csink_index_find(&nodes, hash, match_node, &key);
	csink_ref_t ref, indexed;

	if (slot)
		return atomic_load_explicit(&slot->ref, memory_order_relaxed);
	ref = new_node(rec, writer, memo, &node);
	if (!ref)
		return 0;
	/* Another thread may have stored the same node meanwhile: go on from that one, and take ours back. */
	indexed = csink_index_insert(&nodes, hash, ref, 0, match_node, &key);
	*parent_is_new = indexed == ref;
	if (indexed != ref)
		drop_newest_node(memo);
	return indexed;
}

/* 0: none; or the node is not where one can be, because the file was overwritten. */
static inline csink_ref_t parent_of(const struct csink_recording *rec, csink_ref_t node, csink_ref_t end)
{
	if (CSINK_UNLIKELY(!node || node >= end))
		return 0;
	return ((const struct csink_rec_node *)csink_recording_at(rec, node))->parent;
}

/* From the outermost caller inwards, beginning where the latest callers of the thread were others. */
static csink_ref_t chain_node(struct csink_recording *rec, struct csink_writer *writer,
			      const struct csink_sample *sample)
{
	const struct csink_stack_memo *memo = sample->memo;
	uint32_t n = sample->nr_frames, same = 0, limit;
	csink_ref_t node = 0, end;
	bool is_new = false;

	if (same_root(memo, sample)) {
		limit = CSINK_MIN(n, memo->nr_frames);
		end = csink_recording_end(rec, sizeof(struct csink_rec_node));
		while (same < limit && memo->frames[memo->nr_frames - 1 - same] == sample->frames[n - 1 - same])
			same++;
		node = memo->node;
		for (uint32_t i = memo->nr_frames; i > same; i--)
			node = parent_of(rec, node, end);
	}
	if (!node) {
		same = 0;
		node = node_get(rec, writer, sample->memo,
				(struct csink_rec_node){.pc = sample->epoch_ns, .flags = sample->chain_flags}, &is_new);
	}
	for (uint32_t i = n - same; i-- > 0 && node;)
		node = node_get(rec, writer, sample->memo,
				(struct csink_rec_node){.pc = sample->frames[i], .parent = node}, &is_new);
	return node;
}

CSINK_OPTIONAL(csink_stacks_node)
csink_ref_t csink_stacks_node(struct csink_recording *rec, struct csink_writer *writer,
			      const struct csink_sample *sample)
{
	csink_ref_t node;

	if (same_chain(sample->memo, sample))
		return sample->memo->node;
	node = chain_node(rec, writer, sample);
	if (node)
		remember(sample, node, hash_chain(sample));
	return node;
}

/* ---- rows and cells ---- */

/* A store of our own, never torn, that the launcher may read while we run; the row has one writer. */
#define ADD_RELAXED(to, n) __atomic_store_n(to, __atomic_load_n(to, __ATOMIC_RELAXED) + (n), __ATOMIC_RELAXED)

static inline uint64_t cell_leaf(const struct csink_rec_cell *cell)
{
	return (uint64_t)cell->leaf_high << 32 | cell->leaf_low;
}

/* False, and nothing is added, where the sums would not fit. */
static bool cell_add(struct csink_rec_cell *cell, const uint64_t *weights, uint32_t nr_weights, uint64_t nr)
{
	uint64_t over = (cell->nr_samples + nr) >> 16;

	for (uint32_t i = 0; i < nr_weights; i++)
		over |= weights[i] >> 32 | (cell->weights[i] + (weights[i] & UINT32_MAX)) >> 32;
	if (CSINK_UNLIKELY(over))
		return false;
	ADD_RELAXED(&cell->nr_samples, (uint16_t)nr);
	for (uint32_t i = 0; i < nr_weights; i++)
		ADD_RELAXED(&cell->weights[i], (uint32_t)weights[i]);
	return true;
}

static void row_add(struct csink_rec_row *row, const uint64_t *weights, uint32_t nr_weights, uint64_t nr)
{
	ADD_RELAXED(&row->nr_samples, nr);
	for (uint32_t i = 0; i < nr_weights; i++)
		ADD_RELAXED(&row->weights[i], weights[i]);
}

/* A row of what is in key, with these numbers. */
static struct csink_row new_row(struct csink_recording *rec, struct csink_writer *writer,
				const struct csink_rec_row *key, uint16_t phase, const uint64_t *weights, uint64_t nr)
{
	uint32_t nr_events = rec->nr_events, bytes = (uint32_t)sizeof(*key) + nr_events * 8;
	struct csink_rec_row *row = csink_recording_reserve(rec, writer, bytes);

	if (!row)
		return (struct csink_row){0};
	row->thread = key->thread;
	row->node = key->node;
	row->leaf = key->leaf;
	row_add(row, weights, nr_events, nr);
	csink_recording_commit(row, bytes, CSINK_ENTRY_ROW, phase);
	return (struct csink_row){csink_recording_ref(rec, row), phase, true};
}

static struct csink_stack_cells *cells_for(struct csink_recording *rec, struct csink_writer *writer,
					   const struct csink_sample *sample, uint32_t each)
{
	struct csink_stack_memo *memo = sample->memo;
	struct csink_stack_cells *cells = &memo->cells[sample->phase % CSINK_ARRAY_SIZE(memo->cells)];
	struct csink_rec_cells *chunk;
	uint32_t bytes;

	if (cells->chunk && cells->phase == sample->phase && cells->nr < cells->max)
		return cells;
	if (cells->chunk && cells->phase != sample->phase)
		memo->cells_room = 0; /* phases that take turns leave room behind: let it be little */
	bytes = chunk_bytes(writer, &memo->cells_room, sizeof(*chunk), each);
	chunk = csink_recording_reserve(rec, writer, bytes);
	if (!chunk)
		return NULL;
	chunk->thread = sample->thread;
	csink_recording_commit(chunk, bytes, CSINK_ENTRY_CELLS, sample->phase);
	*cells = (struct csink_stack_cells){chunk, 0, (uint16_t)((bytes - sizeof(*chunk)) / each), sample->phase};
	return cells;
}

/* A cell with these numbers; a row where they, or the leaf, are too large for one. */
static struct csink_row new_cell(struct csink_recording *rec, struct csink_writer *writer,
				 const struct csink_sample *sample, csink_ref_t node, const uint64_t *weights,
				 uint64_t nr)
{
	uint32_t each = csink_cell_bytes(rec->nr_events);
	struct csink_stack_cells *cells = sample->leaf >> 48 ? NULL : cells_for(rec, writer, sample, each);
	struct csink_rec_row key = {.thread = sample->thread, .node = node, .leaf = sample->leaf};
	struct csink_rec_cell *cell;

	if (!cells)
		return new_row(rec, writer, &key, sample->phase, weights, nr);
	cell = (struct csink_rec_cell *)(cells->chunk->cells + cells->nr * each);
	if (!cell_add(cell, weights, rec->nr_events, nr))
		return new_row(rec, writer, &key, sample->phase, weights, nr);
	cell->node = node;
	cell->leaf_low = (uint32_t)sample->leaf;
	cell->leaf_high = (uint16_t)(sample->leaf >> 32);
	/* Pairs with the reader's acquire: what is counted is written. */
	__atomic_store_n(&cells->chunk->nr, ++cells->nr, __ATOMIC_RELEASE);
	return (struct csink_row){csink_recording_ref(rec, cell), sample->phase, false};
}

struct csink_row csink_row_add(struct csink_recording *rec, struct csink_writer *writer, struct csink_row row,
			       csink_ref_t thread, const uint64_t *weights, uint64_t nr)
{
	struct csink_rec_cell *cell = csink_recording_at(rec, row.ref);
	struct csink_rec_row key;

	if (CSINK_UNLIKELY(row.is_wide)) {
		row_add(csink_recording_at(rec, row.ref), weights, rec->nr_events, nr);
		return row;
	}
	if (CSINK_LIKELY(cell_add(cell, weights, rec->nr_events, nr)))
		return row;
	key = (struct csink_rec_row){.thread = thread, .node = cell->node, .leaf = cell_leaf(cell)};
	return new_row(rec, writer, &key, row.phase, weights, nr);
}

struct row_key {
	const struct csink_recording *rec;
	const struct csink_sample *sample;
};

/* What the index keeps beside a row's place. */
static inline uint32_t row_aux(struct csink_row row)
{
	return (uint32_t)row.phase << 1 | row.is_wide;
}

static inline struct csink_row row_of_slot(csink_ref_t ref, uint32_t aux)
{
	return (struct csink_row){ref, (uint16_t)(aux >> 1), aux & 1};
}

/*
 * The hash is of all frames and the thread, too, and of 64 bits: of a million stacks, two have the same one with a
 * probability of 3 in 10^8, and here they need the same leaf besides. To compare all frames, one node after the other,
 * would cost as much as to walk them.
 */
static bool match_row(csink_ref_t ref, uint32_t aux, const void *key)
{
	const struct row_key *k = key;
	const void *at = csink_recording_at(k->rec, ref);
	uint64_t leaf = aux & 1 ? ((const struct csink_rec_row *)at)->leaf : cell_leaf(at);

	return leaf == k->sample->leaf && aux >> 1 == k->sample->phase;
}

static csink_ref_t node_of_row(const struct csink_recording *rec, struct csink_row row)
{
	const void *at = csink_recording_at(rec, row.ref);

	return row.is_wide ? ((const struct csink_rec_row *)at)->node : ((const struct csink_rec_cell *)at)->node;
}

struct csink_row csink_row_alone(struct csink_recording *rec, struct csink_writer *writer, csink_ref_t thread,
				 uint16_t phase, const uint64_t *weights)
{
	struct csink_rec_row key = {.thread = thread};

	return new_row(rec, writer, &key, phase, weights, 0);
}

/* @known  the thread's latest callers are the sample's. */
static __attribute__((noinline)) struct csink_row add_new(struct csink_recording *rec, struct csink_writer *writer,
							  const struct csink_sample *sample, const uint64_t *weights,
							  uint64_t nr, uint64_t chain_hash, uint64_t hash, bool known)
{
	csink_ref_t node = known ? sample->memo->node : chain_node(rec, writer, sample);
	struct row_key key = {rec, sample};
	struct csink_row row;

	if (!node)
		return (struct csink_row){0};
	if (!known)
		remember(sample, node, chain_hash);
	row = new_cell(rec, writer, sample, node, weights, nr);
	if (row.ref)
		csink_index_insert(&rows, hash, row.ref, row_aux(row), match_row, &key);
	return row;
}

struct csink_row csink_stacks_add(struct csink_recording *rec, struct csink_writer *writer,
				  const struct csink_sample *sample, const uint64_t *weights, uint64_t nr)
{
	bool known = same_chain(sample->memo, sample);
	uint64_t chain_hash = known ? sample->memo->hash : hash_chain(sample);
	uint64_t hash = not_0(mix(chain_hash ^ sample->leaf * 0x9e3779b97f4a7c15ULL ^
				  ((uint64_t)sample->thread << 16 ^ sample->phase)));
	struct row_key key = {rec, sample};
	struct csink_index_slot *slot = csink_index_find(&rows, hash, match_row, &key);
	struct csink_row row, now;

	if (CSINK_UNLIKELY(!slot))
		return add_new(rec, writer, sample, weights, nr, chain_hash, hash, known);
	row = row_of_slot(atomic_load_explicit(&slot->ref, memory_order_relaxed),
			  atomic_load_explicit(&slot->aux, memory_order_relaxed));
	if (!known)
		remember(sample, node_of_row(rec, row), chain_hash);
	now = csink_row_add(rec, writer, row, sample->thread, weights, nr);
	if (CSINK_UNLIKELY(now.ref && now.ref != row.ref)) { /* this thread alone looks for it */
		atomic_store_explicit(&slot->aux, row_aux(now), memory_order_relaxed);
		atomic_store_explicit(&slot->ref, now.ref, memory_order_release);
	}
	return now;
}
