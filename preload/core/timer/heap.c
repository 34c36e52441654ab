/* The heap of waiting events: a binary heap by (due, seq), so that events due together come out in the order they came.
 * Called by the owner of the queue alone (queue.h). Async-signal-safe.
 */
#include "preload/core/timer/queue.h"

static bool is_before(const struct csink_timerq_node *a, const struct csink_timerq_node *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

static void place(struct csink_timerq *q, uint32_t pos, struct csink_timerq_node node)
{
	q->heap[pos] = node;
	csink_timerq_event(q, node.event)->heap_pos = pos + 1;
}

/* Move parents down from pos until node fits there. */
static void sift_up(struct csink_timerq *q, uint32_t pos, struct csink_timerq_node node)
{
	while (pos && is_before(&node, &q->heap[(pos - 1) / 2])) {
		place(q, pos, q->heap[(pos - 1) / 2]);
		pos = (pos - 1) / 2;
	}
	place(q, pos, node);
}

/* Move the first children up into pos until node fits there. */
static void sift_down(struct csink_timerq *q, uint32_t pos, struct csink_timerq_node node)
{
	uint32_t child;

	while ((child = 2 * pos + 1) < q->nr_heap) {
		if (child + 1 < q->nr_heap && is_before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (is_before(&node, &q->heap[child]))
			break;
		place(q, pos, q->heap[child]);
		pos = child;
	}
	place(q, pos, node);
}

void csink_timerq_heap_push(struct csink_timerq *q, uint32_t index)
{
	const struct csink_timerq_event *event = csink_timerq_event(q, index);

	sift_up(q, q->nr_heap++, (struct csink_timerq_node){event->due_ns, event->seq, index});
}

void csink_timerq_heap_remove(struct csink_timerq *q, uint32_t index)
{
	struct csink_timerq_event *event = csink_timerq_event(q, index);
	struct csink_timerq_node last;
	uint32_t pos;

	if (!event->heap_pos)
		return;
	pos = event->heap_pos - 1;
	event->heap_pos = 0;
	last = q->heap[--q->nr_heap];
	if (pos == q->nr_heap)
		return;
	/* The last one fills the hole; its place may lie above it or below. */
	if (pos && is_before(&last, &q->heap[(pos - 1) / 2]))
		sift_up(q, pos, last);
	else
		sift_down(q, pos, last);
}
