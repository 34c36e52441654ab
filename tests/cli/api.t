#!/bin/bash
# The two libraries: what each exports, and when the one that is injected loads the other.
. "$(dirname "$0")/lib.sh"

API=$BUILD/lib/libcountersink-api.so
exports() {
	nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u
}

# declared HEADER...: the functions that headers declare, without those that they define themselves.
declared() {
	sed 's,/\*[^*]*\*/,,g' "$@" | awk '
		/^\/\*/ { comment = 1 } comment { if (/\*\//) comment = 0; next }
		/^(static|typedef|#)/ { next }
		match($0, /^[a-z].*csink_[a-z_0-9]+\(/) { name = substr($0, 1, RLENGTH - 1); sub(/.*[ *]/, "", name); print name }' |
		sort -u
}

is "$(exports "$API")" "$( (declared "$SRC"/include/countersink/*.h; echo csink_private_names) | sort)" \
	"the API library exports what its headers declare"
is "$(exports "$LIB" | grep csink)" "$(declared "$SRC/include/countersink.h")" \
	"the injected library exports the functions of countersink.h, and no others of ours"
sed -n 's/^CSINK_EXPORT .*[ *]\([a-zA-Z_0-9]*\)(.*/\1/p' "$SRC"/preload/agent/interpose/*.c | grep -v '^csink_\|^__asm__$' | sort -u >interposed
ok "preload/agent/interpose has interposed calls" test "$(wc -l <interposed)" -gt 50
is "$(exports "$LIB" | comm -13 - interposed)" "" "the injected library exports every interposed call (libcountersink.map)"
is "$(readelf -d "$API" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" libcountersink-api.so.0 "the API library has a soname"
is "$(nm -D --defined-only "$API" | awk '$2 != "A" { sub(/.*@+/, "", $3); print $3 }' | sort | uniq -c | awk '{ print $2 }' | xargs)" \
	"COUNTERSINK_0.1 CSINK_PRIVATE" "each function of the API library has a version"
version() {
	sed -n "s/^#define CSINK_API_$1 //p" "$SRC/include/countersink/version.h"
}
is "COUNTERSINK_$(version MAJOR).$(version MINOR)" COUNTERSINK_0.1 "the version of the functions is that of version.h"
is "$(nm -D --undefined-only "$API" "$LIB" | grep csink | grep -v ' w csink_[a-z]*_object$')" "" \
	"neither library needs a function of the other"

# The loader refuses a program its start if its glibc lacks a version that a preloaded library needs, be the symbol weak
# or not. GLIBC_2.17 is of 2012, and the first for arm64. What is moved or younger: preload/agent/old_glibc.h.
newer_than_2_17() {
	readelf -W --dyn-syms "$1" | awk '$7 == "UND" && match($8, /@GLIBC_[0-9.]+/) {
		split(substr($8, RSTART + 7, RLENGTH - 7), v, ".")
		if (v[1] > 2 || v[2] > 17) print $8 }' | sort -u | xargs
}
is "$(newer_than_2_17 "$LIB")" "" "the injected library needs no function of a glibc after 2.17"
for object in alloc lock; do
	is "$(newer_than_2_17 "${LIB%/*}/countersink/libcountersink-$object.so")" "" "nor does the preload object of -e $object"
	is "$(readelf -VW "${LIB%/*}/countersink/libcountersink-$object.so" | sed -n 's/.*Name: GLIBC_2\.\([0-9]*\)[. ].*/\1/p' | awk '$1 > 17')" "" \
		"or any version after it"
done
isnt "$(newer_than_2_17 "$API")" "" "the point above would see one: the API library has some"
is "$(readelf -VW "$LIB" | sed -n 's/.*Name: GLIBC_2\.\([0-9]*\)[. ].*/\1/p' | awk '$1 > 17')" "" \
	"the injected library needs no version of glibc after 2.17, of a symbol or without one"
is "$(readelf -W --dyn-syms "$LIB" | awk '$7 == "UND" && $5 == "WEAK" { sub(/@.*/, "", $8); print $8 }' |
	grep -v '^csink_[a-z]*_object$\|^_ITM_\|^__gmon_start__\|^__cxa_finalize\|^__lsan_\|^__tsan_func_' | sort | xargs)" \
	"$(sed -n 's/^\tX([a-z_A-Z0-9]*, \([a-z_0-9]*\), "GLIBC.*/\1/p' "$SRC/preload/agent/old_glibc.h" | sort | xargs)" \
	"what an older glibc has in libdl and libpthread is weak: the list of old_glibc.h"

# What every program of a run has mapped.
if [ "$(uname -m)" = x86_64 ]; then
	size "$LIB" | awk 'NR == 2 { print $1, $3 }' >sizes
	read -r text bss <sizes
	# What the walk of native frames uses of kept pages, too, is there only with a language.
	interp=$(size "$BUILT"/obj/preload/agent/interp/*.o "$BUILT/obj/preload/agent/unwind/kept_pages.o" | awk 'NR > 1 { sum += $1 } END { print sum }')
	code=$(size -A "$LIB" | awk '$1 == ".text" { print $2 }')
	ok "the injected library has at most 200 KiB of code in all (${code:-unknown} bytes)" test "${code:-999999}" -le 204800
	ok "without the readers of interpreters ($interp bytes), the injected library has at most 200 KiB of code, constants and tables" \
		test "$((${text:-999999} - ${interp:-0}))" -le 204800
	ok "the injected library has at most 256 KiB of code, constants and tables in all (${text:-unknown} bytes)" test "${text:-999999}" -le 262144
	ok "the injected library has at most 64 KiB of zeroes (${bss:-unknown} bytes)" test "${bss:-999999}" -le 65536
else
	skip "the injected library's size" "the bounds are those of x86-64"
fi

# loaded COMMAND...: how often processes below it loaded the API library.
loaded() {
	rm -f debug.*
	LD_DEBUG=files LD_DEBUG_OUTPUT=$TMP/debug "$@" >out 2>err
	cat debug.* | grep -c 'file=.*libcountersink-api\.so.*generating link map'
}
is "$(loaded countersink -q -o l.pb.gz -e page-faults:u,minor-faults:u -- true)" 0 \
	"the programs of a launcher do not load the API library"
alone() {
	env LD_PRELOAD="$LIB" COUNTERSINK_QUIET=1 COUNTERSINK_OUTPUT="$TMP/a.pb.gz" "$@"
}
is "$(loaded alone true)" 0 "by the environment alone, a program with the default event does not load the API library"
is "$(loaded alone COUNTERSINK_EVENTS=task-clock true)" 0 "by the environment alone, a program with task-clock does not load the API library"
is "$(loaded alone COUNTERSINK_EVENTS=page-faults:u,minor-faults:u true)" 1 "by the environment alone, event names that have to be looked up load the API library"
is "$(alone COUNTERSINK_EVENTS=page-faults:u,minor-faults:u cat /proc/self/maps | grep -c libcountersink-api)" 0 \
	"the API library is closed after the look-up of event names"

# Names that need it, and it is not there, or of another build.
mkdir copy
cp -r "$BUILD/bin" "$BUILD/lib" copy
rm copy/lib/libcountersink-api.so*
unfound() {
	COUNTERSINK_EVENTS=page-faults:u,minor-faults:u COUNTERSINK_REPORT=1 COUNTERSINK_OUTPUT=$TMP/m.pb.gz \
		LD_PRELOAD=$TMP/copy/lib/libcountersink.so "$TARGETS/burn" 30 >out 2>err
	echo "$? $(grep -c '^burn ' out)"
}
is "$(unfound)" "0 1" "without the API library the program runs"
like "$(cat err)" 'page-faults:u,minor-faults:u: names of events are looked up by libcountersink-api\.so\.0, which is not beside libcountersink\.so: install it there; sampling CPU time instead' \
	"without the API library a line reports what is missing"
like "$(cat err)" ' burn_60' "without the API library the default event is sampled"
cp "$TARGETS/old_names.so" copy/lib/libcountersink-api.so.0
is "$(unfound)" "0 1" "with another library in place of the API library the program runs"
like "$(cat err)" 'libcountersink-api\.so\.0, which is of another version' "with another library in place of the API library a line reports it"
done_testing
