#!/bin/sh
# The public headers: each alone in strict C and C++, and programs that were compiled with other kernel headers, in which
# perf_event_attr has another size.
. "$(dirname "$0")/lib.sh"

if ! have cc; then
	skip_all "there is no compiler"
fi

for header in countersink.h $(cd "$SRC/include" && ls countersink/*.h); do
	printf '#include <%s>\nint main(void)\n{\n\treturn 0;\n}\n' "$header" >alone.c
	for std in c99 c11 c17; do
		ok "$header alone, -std=$std" cc -std=$std -Wall -Wextra -pedantic -Werror -I"$SRC/include" -c -o alone.o alone.c
	done
	if have c++; then
		ok "$header alone, -std=c++11" \
			c++ -x c++ -std=c++11 -Wall -Wextra -pedantic -Werror -I"$SRC/include" -c -o alone.o alone.c
	else
		skip "$header alone, -std=c++11" "there is no C++ compiler"
	fi
done

# A program compiled with a perf_event_attr of ATTR_BYTES, with canaries behind each.
mkdir -p fake/linux
cat >fake/linux/perf_event.h <<'END'
#pragma once
#define perf_event_attr perf_event_attr_of_the_system
#include_next <linux/perf_event.h>
#undef perf_event_attr
struct perf_event_attr {
	__u32 type, size;
	__u64 config, sample_period, sample_type, read_format, flags;
	unsigned char rest[ATTR_BYTES - 48];
};
END
cat >client.c <<'END'
#include <countersink/persist.h>
#include <countersink/reserve.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXCLUDE_KERNEL (1 << 5 | 1 << 6)
struct guarded {
	struct csink_persist_event event;
	unsigned char behind[256];
};
static int is_broken(const struct guarded *g)
{
	for (size_t i = 0; i < sizeof(g->behind); i++)
		if (g->behind[i] != 0xa5)
			return 1;
	return 0;
}
/* But for size, which says how much of it both sides know. */
static int is_same(struct perf_event_attr got, const struct perf_event_attr *want)
{
	if (got.size > want->size)
		return 0;
	got.size = want->size;
	return !memcmp(&got, want, sizeof(got));
}
static struct guarded listed;
static int take(const struct csink_persist_event *event, void *id)
{
	if (event->id != *(uint64_t *)id)
		return 0;
	listed.event = *event;
	return 1;
}
int main(int argc, char **argv)
{
	static struct perf_event_attr attrs[3];
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .read_format = 3,
				       .flags = EXCLUDE_KERNEL};
	struct csink_reserve_probe probe;
	struct guarded g, again;
	uint64_t id;
	int fd, kept, err;

	(void)argv;
	memset(&g, 0xa5, sizeof(g));
	memset(&again, 0xa5, sizeof(again));
	memset(&listed, 0xa5, sizeof(listed));
	memset(&g.event, 0, sizeof(g.event));
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8);
	g.event.attr = attr;
	g.event.cpu = -1;
	if (argc > 1) /* a field that no library knows */
		((unsigned char *)&g.event.attr)[sizeof(attr) - 1] = 1;
	err = csink_persist_detach(fd, &g.event, NULL);
	id = g.event.id;
	printf("detach %d", err);
	if (!err) {
		kept = csink_persist_open(id, -1, &again.event, NULL);
		printf(" open %d same %d", kept >= 0, is_same(again.event.attr, &attr));
		err = csink_persist_list(take, &id, NULL);
		printf(" list %d same %d", err, is_same(listed.event.attr, &attr));
		printf(" attach %d", csink_persist_attach(kept, NULL));
	}
	attr.read_format = 0;
	attrs[0] = attrs[1] = attrs[2] = attr;
	attrs[1].config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	printf(" probe %d", csink_reserve_probe(attrs, 3, &probe));
	attrs[2].config = 1000; /* no such event: the third one is to blame, wherever it stands */
	csink_reserve_probe(attrs, 3, &probe);
	printf(" blames %u", probe.refused + 1);
	printf(" broken %d\n", is_broken(&g) + is_broken(&again) + is_broken(&listed));
	return 0;
}
END
if ! countersink stat -x -e page-faults:u true 2>&1 | grep -q ',counted,'; then
	skip "clients with headers of other sizes" "perf_event_open is refused here"
	done_testing
	exit
fi
export COUNTERSINK_PERSIST_DIR=$TMP
for bytes in 64 96 112 120 128 136 144 256; do
	if ! cc -std=gnu11 -Wall -Wextra -DATTR_BYTES=$bytes -Ifake -I"$SRC/include" -o "client$bytes" client.c -L"$BUILD/lib" \
		-lcountersink-api -Wl,-rpath,"$BUILD/lib" 2>err; then
		is "$(cat err)" "" "a client whose attr has $bytes bytes is compiled"
		continue
	fi
	is "$(COUNTERSINK_OUTPUT=$TMP/out ./client$bytes 2>/dev/null)" \
		"detach 0 open 1 same 1 list 1 same 1 attach 0 probe 0 blames 3 broken 0" "a client whose attr has $bytes bytes works"
done
like "$(COUNTERSINK_OUTPUT=$TMP/out ./client256 unknown 2>/dev/null)" '^detach -7 probe 0 .*broken 0$' \
	"an attribute that the library does not know is refused: E2BIG"
done_testing
