/*
 * Decodes the tables of V8: see v8_positions.h and struct csink_rec_v8_lines. Runs in the launcher, on the thread that
 * collects. The tables come from a profiled process: they may have any content. Sources: V8's
 * src/codegen/source-position-table.cc, src/baseline/bytecode-offset-iterator.cc and src/interpreter/bytecodes.h
 * of 10.2 to 13.6; for 14.1 and 14.6 (node 25 and 26), Bytecodes::kBytecodeSizes in the programs, and their places as
 * tests/cli/frames_v8.t compares them.
 */
#include "launcher/collect/v8_positions.h"

#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"

#define FUNCTION_ENTRY (-1) /* the offset of what runs before the first bytecode */

struct reader {
	const uint8_t *at, *end;
};

/* 0 at the end. */
static uint64_t number(struct reader *r)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte = 1 << 7;

	for (; byte & 1 << 7 && r->at < r->end && shift < 64; shift += 7) {
		byte = *r->at++;
		value |= (uint64_t)(byte & 127) << shift;
	}
	return value;
}

static int64_t signed_number(struct reader *r)
{
	uint64_t value = number(r);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* ---- baseline code ----------------------------------------------------------------------------------------------- */

/*
 * The operands of each bytecode, by version: 'a' and the number of bytes that a prefix doubles or quadruples, and 6
 * times the number of other bytes. The first bytecodes are the prefixes: two that double, and two that quadruple, in
 * turn.
 */
enum { NR_PREFIXES = 4, FIXED = 6 };
static const struct {
	uint32_t version;
	const char *operands;
} versions[] = {
	{10 << 16 | 2,
	 "aaaaabcdeopbabaaaaabddbbbcbbbaaagcccdbbddbddhddcccdddddjbccccccccccccccccccccccccbbbbaaabbbeedefecde"
	 "eopiieeccccccccbbbbaiiabiaicibccccaaacbbbbbbbbbbbbbbbbbbbbbbdbccebaaaabaabdeddabbaaaaaaaaaaaaaaaaa"},
	{11 << 16 | 3,
	 "aaaaabcdeopbabaaaaabddbbbcbbbaaagcccdbbddbddhddcccdddjdjccccccccccccccccccccccccbbbbaaabbbdeedefecde"
	 "eopiieeccccccccbbbbaoiabiaicibccccaaadbbbbbbbbbbbbbbbbbbbbbbdbccebaaaabaabdeddabbaaaaaaaaaaaaaaaaa"},
	{12 << 16 | 4,
	 "aaaaabcdeopbabaaaaabddbbbcbbbaaagcccdbdbbddbddhddceccdddjdjccccccccccccccccccccccccbbbbaaabbbdeedefe"
	 "cdeeopiieecccccccccabbbaaoiabiaicibccccaaadbbbbbbbbbbbbbbbbbbbbbbdbccebaaaabaabdeddabbaaaaaaaaaaaaaaaaa"},
	{13 << 16 | 6,
	 "aaaaabcdeopbabaaaaabdddbbbbcbbbaaagcccdbdbbdddbdddhddceccdddjdjccccccccccccccccccccccccbbbbaabbbbdee"
	 "defecdeeopiieecccccccccabbbaaoiabiaicibccccaaadbbbbbbbbbbdbbbbbbbbbbbbddbcebaaaabaabdeddabbaaaaaaaaaaaaaaaa"
	 "a"},
	{14 << 16 | 1,
	 "aaaaabcdeopbabaaaaabdddbbbbcbbbaaagcccdbdbbdddbdddhddceccdddjdjbcccccccccccciccccccccccccbbbbaabbbbd"
	 "eedefecdeeopiieecccccccccabbbaaoiabiaicibcccccaaadbbbbbbbbbbdbbbbbbbbbbbbddbcebdaaaabaabdeddabbaaaaa"
	 "aaaaaaaaaaaa"},
	{14 << 16 | 6,
	 "aaaaabcdeopbabaaaaabdddbbbbcbbbaaagcccdbdbbdddbdddhddceccdddjdjccccccccccccciccccccccccccbbbbaabbbbd"
	 "eedefecdeeopiieecnnnnnnccabbbaaoiabiaicibcccccaaadbbbbbbbbbbdbbbbbbbbbbbbddbcebeaaaabaabdeddabgaaaaa"
	 "aaaaaaaaaaaa"},
};

/* Step over a bytecode. False: there is none, or it is none of this version. */
static bool step(struct reader *bytecodes, const char *operands)
{
	uint32_t scale = 1, code, nr = (uint32_t)strlen(operands), letter;

	if (bytecodes->at < bytecodes->end && *bytecodes->at < NR_PREFIXES)
		scale = 2U << (*bytecodes->at++ & 1);
	if (bytecodes->at == bytecodes->end || *bytecodes->at >= nr)
		return false;
	code = *bytecodes->at++;
	letter = (uint32_t)(operands[code] - 'a');
	letter = letter / FIXED + letter % FIXED * scale;
	if ((size_t)(bytecodes->end - bytecodes->at) < letter)
		return false;
	bytecodes->at += letter;
	return true;
}

/* From a position in baseline code to one in the bytecodes. False: the tables do not fit together. */
static bool find_bytecode(struct reader bytecodes, struct reader offsets, uint32_t version, uint32_t position,
			  int64_t *offset)
{
	const uint8_t *begin = bytecodes.at;
	const char *operands = NULL;
	uint64_t end = number(&offsets);
	bool is_found = position <= end;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(versions); i++)
		operands = versions[i].version == version ? versions[i].operands : operands;
	*offset = FUNCTION_ENTRY;
	while (operands && offsets.at < offsets.end) {
		const uint8_t *at = bytecodes.at;

		if (!step(&bytecodes, operands))
			return false;
		end += number(&offsets);
		if (!is_found)
			*offset = at - begin;
		is_found |= position <= end;
	}
	return operands && is_found && bytecodes.at == bytecodes.end;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/*
 * The last place at or before an offset. False: there is none. Each has the distance from the one before it, with
 * flags: whether it is of a statement, as the sign (-1 - n, which is stored as 2 * n + 1); since 14 the two lowest bits
 * of a number without sign.
 */
static bool find_place(struct reader r, uint32_t version, int64_t offset, uint32_t *place)
{
	enum { IS_EXTERNAL = 1, PLACE_SHIFT = 1, PLACE_BITS = 30, FIRST_WITH_BITS = 14 << 16 };
	int64_t at = FUNCTION_ENTRY, source = 0;
	bool is_known = false;

	while (r.at < r.end) {
		int64_t more = (int64_t)(number(&r) >> (version >= FIRST_WITH_BITS ? 2 : 1));

		at = csink_add(at, more);
		source = csink_add(source, signed_number(&r));
		if (at > offset)
			break;
		if (source < 0 || source & IS_EXTERNAL)
			continue;
		*place = (uint32_t)(source >> PLACE_SHIFT & ((1 << PLACE_BITS) - 1)) - 1;
		is_known = *place != UINT32_MAX;
	}
	return is_known;
}

struct csink_v8_source csink_v8_source(const struct csink_rec_code *code, uint32_t position)
{
	const uint8_t *table = (const uint8_t *)code->text + code->nr_names, *end = table + code->nr_table;
	struct csink_rec_v8_lines lines = {0};
	struct csink_v8_source source;
	struct reader positions, bytecodes;
	int64_t offset = position;
	size_t nr = CSINK_MIN((size_t)code->nr_table, sizeof(lines));

	memcpy(&lines, table, nr);
	source = (struct csink_v8_source){.start = lines.start, .length = lines.length};
	table += nr;
	if (nr < sizeof(lines) || lines.nr_positions > (size_t)(end - table) ||
	    lines.nr_bytecodes > (size_t)(end - table) - lines.nr_positions)
		return source;
	positions = (struct reader){table, table + lines.nr_positions};
	bytecodes = (struct reader){positions.end, positions.end + lines.nr_bytecodes};
	if (lines.nr_bytecodes &&
	    !find_bytecode(bytecodes, (struct reader){bytecodes.end, end}, lines.version, position, &offset))
		return source;
	source.is_known = find_place(positions, lines.version, offset, &source.place);
	return source;
}
