#!/bin/bash
# The examples of each public header: compiled against what is installed, as a user would, and run.
. "$(dirname "$0")/lib.sh"

CC=${CC:-cc}
have "${CC%% *}" || skip_all "there is no compiler"
have pkg-config || skip_all "there is no pkg-config"
ok "installed" make -s -C "$SRC" install PREFIX="$TMP/prefix"
export PKG_CONFIG_PATH=$TMP/prefix/lib/pkgconfig COUNTERSINK_PERSIST_DIR=$TMP
is "$(cd "$SRC/include" && echo countersink.h countersink/*.h)" \
	"countersink.h $(cd "$SRC/tests/examples" && for f in *.c; do [ "$f" = phases.c ] || echo "countersink/${f%.c}.h"; done | xargs)" \
	"each public header has an example"
refused=
countersink stat -x -e page-faults:u true 2>&1 | grep -q ',counted,' || refused=yes

# build NAME FLAGS...: the example, warned about all that a user's compiler may warn about.
build() {
	example=$1
	shift
	# shellcheck disable=SC2086 # CC may have words
	$CC -std=gnu11 -O1 -Wall -Wextra -pedantic -Werror -I"$TMP/prefix/include" -o "$example" "$SRC/tests/examples/$example.c" "$@"
}

# runs NAME PATTERN: its output; those that open events are skipped where that is refused.
runs() {
	if [ -n "$refused" ] && [ "$1" != timerq ] && [ "$1" != version ]; then
		skip "$1 runs ($3)" "perf_event_open is refused here"
		return
	fi
	out=$("./$1" 2>&1)
	like "$?:${out//$'\n'/ }" "^0:$2" "$1 runs ($3)"
}

ok "phases is compiled with nothing to link" build phases
like "$(./phases)" '^profiled: no$' "phases runs alone"
countersink -q -o phases.pb.gz -- ./phases >out 2>err
is "$(cat out)" "profiled: yes" "phases runs under countersink"
like "$(countersink report --by phase phases.pb.gz)" 'compute' "the phases of the example are in its profile"

# pkg-config's words on purpose.
for way in shared static; do
	libs=$(pkg-config --libs countersink-api)
	[ $way = shared ] || libs="$TMP/prefix/lib/libcountersink-api.a $(pkg-config --static --libs-only-l countersink-api | sed 's/-lcountersink-api//')"
	for name in explain persist pmc reserve timerq version; do
		# shellcheck disable=SC2046,SC2086
		ok "$name is compiled ($way)" build $name $(pkg-config --cflags countersink-api) $libs -Wl,-rpath,"$TMP/prefix/lib"
	done
	needs=$(readelf -d pmc | grep -c 'NEEDED.*libcountersink-api\.so\.0')
	is "$needs" "$([ $way = shared ] && echo 1 || echo 0)" "a $way program needs the library at run time: $needs"
	export PATH=$TMP/prefix/bin:$PATH
	runs explain 'E[A-Z0-9]+: .*sample_type' $way
	runs persist 'page faults: [0-9]+$' $way
	runs pmc 'CPU time: [1-9][0-9]* ns$' $way
	runs reserve 'reservation: .*probe: ' $way
	runs timerq 'calls: 5$' $way
	runs version 'headers ([0-9]+), library \1$' $way
done
for name in pmc timerq; do
	# shellcheck disable=SC2046
	build "$name" $(pkg-config --cflags --libs countersink-api) -Wl,-rpath,"$TMP/prefix/lib"
	alone=$("./$name" | sed 's/[0-9][0-9][0-9]*/N/')
	is "$(countersink -q -o $name.pb.gz -- "./$name" 2>&1 | sed 's/[0-9][0-9][0-9]*/N/')" "$alone" "$name does the same under countersink"
done
done_testing
