/*
 * Explaining a failed perf_event_open: taking over the caller's attributes row by row, and the attr's size. What the
 * rows are is in explain_rows.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/api/explain/explain_rows.h"

static uint64_t load_part(const struct perf_event_attr *attr, const struct csink_part *part)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)attr + part->offset, part->bytes);
	return part->mask ? value & part->mask : value;
}

static void take_part(struct csink_probe *probe, const struct csink_part *part, uint64_t value)
{
	uint64_t old = 0, mask = part->mask ? part->mask : UINT64_MAX;

	memcpy(&old, (const char *)&probe->attr + part->offset, part->bytes);
	old = (old & ~mask) | (value & mask);
	memcpy((char *)&probe->attr + part->offset, &old, part->bytes);
}

static bool differs(const struct csink_probe *probe, const struct csink_row *row)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(row->parts) && row->parts[i].bytes; i++)
		if (load_part(&probe->want, &row->parts[i]) != load_part(&probe->attr, &row->parts[i]))
			return true;
	return false;
}

static void take_row(struct csink_probe *probe, const struct csink_row *row)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(row->parts) && row->parts[i].bytes; i++)
		take_part(probe, &row->parts[i], load_part(&probe->want, &row->parts[i]));
}

static void judge(struct csink_probe *probe, int err, const char *field, const struct csink_verdict *verdicts)
{
	struct csink_explanation *fault = csink_probe_fault(probe, err, CSINK_CAUSE_UNKNOWN, field);

	for (; verdicts->text || verdicts->detail; verdicts++) {
		if (verdicts->err && verdicts->err != err)
			continue;
		fault->cause = verdicts->cause;
		if (verdicts->detail) {
			verdicts->detail(probe, fault);
		} else {
			csink_explain_text(fault, "%s", verdicts->text);
			csink_explain_remedy(fault, "%s", verdicts->remedy);
		}
		return;
	}
	csink_explain_text(fault, "this value is not taken");
}

/* Bit by bit, lowest first, which is also the order of what needs what (inherit before inherit_thread ...). */
static void take_bits(struct csink_probe *probe, const struct csink_row *row)
{
	const struct csink_part *part = &row->parts[0];
	uint64_t want = load_part(&probe->want, part), have = load_part(&probe->attr, part);
	struct perf_event_attr good;
	char field[sizeof(probe->faults[0].field)];
	int err;

	for (int bit = 0; bit < 64; bit++) {
		if (!((want ^ have) >> bit & 1))
			continue;
		good = probe->attr;
		take_part(probe, part, load_part(&probe->attr, part) ^ (1ULL << bit));
		err = csink_probe_try(probe);
		if (!err)
			continue;
		probe->attr = good;
		if (row->bits == csink_flag_names && row->bits[bit])
			snprintf(field, sizeof(field), "%s", row->bits[bit]);
		else if (row->bits[bit])
			snprintf(field, sizeof(field), "%s: %s", row->field, row->bits[bit]);
		else
			snprintf(field, sizeof(field), "%s: bit %d", row->field, bit);
		judge(probe, err, field, csink_row_verdicts(row, bit));
	}
}

static void try_row(struct csink_probe *probe, const struct csink_row *row)
{
	struct perf_event_attr good = probe->attr;
	int err;

	if (!differs(probe, row))
		return;
	take_row(probe, row);
	err = csink_probe_try(probe);
	/* Without the event there is no PMU to ask: the dummy takes no such thing. */
	if (!err || (row->by_pmu && probe->no_event && err == EOPNOTSUPP)) {
		if (err)
			probe->attr = good;
		return;
	}
	probe->attr = good;
	if (row->bits)
		take_bits(probe, row);
	else
		judge(probe, err, row->field, row->verdicts);
}

void csink_probe_rows_before(struct csink_probe *probe)
{
	for (uint32_t i = 0; i < csink_nr_rows_before; i++)
		try_row(probe, &csink_rows_before[i]);
	try_row(probe, probe->want.freq ? &csink_row_freq : &csink_row_period);
}

void csink_probe_rows_after(struct csink_probe *probe)
{
	for (uint32_t i = 0; i < csink_nr_rows_after; i++)
		try_row(probe, &csink_rows_after[i]);
}

/* ---- the size ---------------------------------------------------------------------------------------------------- */

void csink_probe_size(struct csink_probe *probe)
{
	/* As long as the caller says its attr is; the least event, and behind what we know the caller's own bytes. */
	union csink_attr_copy copy = *probe->passed;
	uint32_t size = copy.attr.size;
	struct csink_explanation *fault;
	int fd;

	copy.attr = probe->attr;
	copy.attr.size = size;
	fd = csink_perf_open(&copy.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	probe->nr_probes++;
	if (fd >= 0)
		close(fd);
	if (fd != -E2BIG)
		return;
	fault = csink_probe_fault(probe, -fd, CSINK_CAUSE_BAD_VALUE, "size");
	if (size && size < PERF_ATTR_SIZE_VER0)
		csink_explain_text(fault, "attr.size is %u; the smallest there ever was is %d", size,
				   PERF_ATTR_SIZE_VER0);
	else if (size > CSINK_ATTR_MAX_SIZE)
		csink_explain_text(fault, "attr.size is %u, more than a page", size);
	else {
		fault->cause = CSINK_CAUSE_NEW_FIELD;
		csink_explain_text(
			fault,
			"this kernel knows %u bytes of the attr, and of the caller's %u those behind are not "
			"zero",
			copy.attr.size, size);
	}
	csink_explain_remedy(fault, "set attr.size to %u, which is this kernel's", copy.attr.size);
}
