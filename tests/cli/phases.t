#!/bin/sh
# Phases that a program names by <countersink.h>, and sections that it excludes from profiling.
. "$(dirname "$0")/lib.sh"

is "$("$TARGETS/named_phases" 1)" alone 'a program with phases runs without countersink'
ok 'a program with phases is profiled' sh -c '"$0" -q -F 2000 -o p.pb.gz -- "$1" 100 >out' "$COUNTERSINK" "$TARGETS/named_phases"
is "$(cat out)" profiled "countersink_is_here() is true under countersink"
"$COUNTERSINK" report --csv --by phase p.pb.gz >phases
ms() { # of a phase
	awk -F, -v name="$1" '$1 == name { printf "%d\n", $3 / 1000000 + 0.5; found = 1 } END { if (!found) print 0 }' phases
}
about() { # ms name: within a fifth and 5 ms, for a sample's weight may be of the phase before
	ok "$2: $(ms "$2") ms, about $1" test "$(ms "$2")" -ge $(($1 * 4 / 5 - 5)) -a "$(ms "$2")" -le $(($1 * 6 / 5 + 5))
}
about 100 load
about 300 parse
about 200 inner
about 100 child
like "$(cat phases)" '^\[no phase\],' 'samples outside a phase are in [no phase]'
like "$("$COUNTERSINK" report p.pb.gz)" '\[paused by the program\]$' 'paused time is one row'
paused=$("$COUNTERSINK" report --csv p.pb.gz | awk -F, '$1 == "[paused by the program]" { printf "%d\n", $3 / 1000000 }')
ok "paused time is as long as the pause: $paused ms" test "$paused" -ge 155 -a "$paused" -le 245
unlike "$("$COUNTERSINK" report --all --tree --fold 0 p.pb.gz)" 'secret' 'paused time has no stacks'
like "$("$COUNTERSINK" report --all p.pb.gz)" 'samples cover (7[5-9]|8[0-4])' 'time outside the pause was sampled'
if have go; then
	like "$(go tool pprof -top -tagfocus=phase=load p.pb.gz 2>&1)" ' work$' 'go tool pprof selects by the phase label'
else
	skip 'go tool pprof selects by the phase label' 'go is not installed'
fi
ok 'phases are profiled with --timeline' sh -c '"$0" -q --timeline -F 2000 -o t.pb.gz -- "$1" 50 >out' "$COUNTERSINK" "$TARGETS/named_phases"
like "$("$COUNTERSINK" report --by phase t.pb.gz)" ' parse$' '--timeline keeps phases'

# ---- the header alone, as it is installed
cat >user.cc <<'END'
#include <countersink.h>
int main() { countersink_phase_begin("x"); countersink_phase_end(); return countersink_is_here(); }
END
if have c++; then
	ok 'a C++ program compiles with the header' c++ -Wall -Wextra -Werror -pedantic -I "$SRC/include" -o user user.cc
	ok 'the C++ program runs without countersink' ./user
	"$COUNTERSINK" -q -o x.pb.gz -- ./user
	is $? 1 'the C++ program detects countersink'
	ok 'the C++ program works without position-independent code (-no-pie)' sh -c 'c++ -I "$0/include" -fno-pie -no-pie -o user user.cc && ./user' "$SRC"
else
	skip 'a C++ program compiles with the header' 'no c++ here'
fi
done_testing
