#!/bin/bash
# What is built is hardened, by what readelf finds in the files.
. "$(dirname "$0")/lib.sh"

have readelf || skip_all "no readelf here"
case $(readelf -hW "$COUNTERSINK" | sed -n 's/ *Type: *//p') in
EXEC*) skip_all "built with STATIC=1: Debian's libunwind.a is not position-independent" ;;
esac

# hardened FILE: what programs and libraries have alike.
hardened() {
	name=${1##*/}
	readelf -dW "$1" >dynamic
	readelf -lW "$1" >segments
	ok "$name was read" test -s dynamic -a -s segments
	like "$(cat dynamic)" '\((FLAGS\) +.*BIND_NOW|FLAGS_1\) +.*NOW)' "$name binds all functions when it is loaded"
	like "$(cat segments)" '^ *GNU_RELRO ' "$name has its tables read-only after relocation"
	is "$(awk '$1 == "GNU_STACK" { print $7 $8 }' segments)" "RW0x10" "$name has no executable stack"
	is "$(awk '$1 == "LOAD" && / RWE /' segments)" "" "no segment of $name is both writable and executable"
	is "$(grep -E 'TEXTREL' dynamic)" "" "$name needs no relocation of its code"
	is "$(grep -E '\((RPATH|RUNPATH)\)' dynamic)" "" "$name looks for libraries nowhere of its own"
}

for program in countersink countersink-send; do
	file=$BUILT/bin/$program
	if ! [ -x "$file" ]; then
		skip "$program is hardened" "the headers of libcurl are not here"
		continue
	fi
	hardened "$file"
	like "$(readelf -hW "$file")" '^ *Type: +DYN ' "$program is loaded anywhere"
	like "$(cat dynamic)" 'FLAGS_1\) +.* PIE' "$program is a position-independent program"
	readelf -W --dyn-syms "$file" >symbols
	like "$(cat symbols)" ' UND __stack_chk_fail@' "$program checks its stack"
done
for library in libcountersink.so libcountersink-api.so.0 countersink/qemu_count.so; do
	hardened "$BUILT/lib/$library"
done

# ---- checked calls: in the launcher, and none in what runs in programs
chk_calls() {
	readelf -W --dyn-syms "$1" | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }' | sed -n '/^__stack_chk_fail$/d; /_chk$/p' | sort
}
is "$(chk_calls "$LIB")" "" "the injected library calls no checking function of libc"
if ! grep -qE -- '-O0|-fsanitize' "$BUILT/flags"; then
	calls=$(chk_calls "$COUNTERSINK")
	for call in memcpy snprintf fprintf read; do
		like "$calls" "^__${call}_chk\$" "the launcher has calls of $call that are checked"
	done
	is "$(grep '^__memmove_chk' <<<"$calls")" "" "none of them is memmove, which valgrind takes for a memcpy"
	is "$(chk_calls "$BUILT/bin/countersink-send" 2>/dev/null | grep -c '^__snprintf_chk$')" "$(ls "$BUILT/bin/countersink-send" 2>/dev/null | wc -l)" \
		"so has countersink-send, where it is built"
else
	skip "the launcher's checked calls" "built without optimisation or with sanitizers"
fi

# ---- branch targets: every object of the launcher's is marked
if [ "$(uname -m)" = x86_64 ]; then
	find "$BUILT/obj/launcher" -name '*.o' ! -name html_pages.o ! -name completion_text.o ! -name modules.o >objects
	ok "the launcher's objects are there" test "$(wc -l <objects)" -gt 100
	is "$(xargs readelf -nW <objects | grep -c 'x86 feature: IBT, SHSTK$')" "$(wc -l <objects)" \
		"each of them is marked for indirect branch tracking and shadow stacks"
	ok "main begins with a branch target" sh -c 'objdump -d --disassemble=main "$0" | grep -q endbr64' "$COUNTERSINK"
else
	skip "branch targets" "read on x86-64 only"
fi
done_testing
