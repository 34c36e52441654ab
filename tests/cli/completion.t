#!/bin/bash
# What the completion scripts offer in bash, zsh and fish, for each command of the table: its options, their values, and
# what its synopsis says comes behind them.
. "$(dirname "$0")/lib.sh"

for shell in bash zsh fish; do
	countersink completion $shell >script.$shell
done
mkdir -p bin a_directory
printf '#!/bin/sh\n' >bin/sample_program
chmod +x bin/sample_program
PATH=$TMP/bin:$PATH
: >sample_one.pb.gz
: >sample_two.pb.gz
: >sample_words.txt
cp "$(command -v sleep)" bin/sample_sleeper
bin/sample_sleeper 1000 &
sleeper=$!
trap 'kill "$sleeper"; remove_tmp' EXIT
until grep -qx sample_sleeper "/proc/$sleeper/comm"; do :; done

# Each prints what is offered for the last of its words, sorted, on one line.
offered_by_bash() {
	bash --norc -c '
		. ./script.bash
		COMP_WORDS=(countersink "$@") COMP_CWORD=$#
		_countersink
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@" 2>&1 | sort -u | paste -sd' '
}
offered_by_fish() {
	XDG_CONFIG_HOME=$TMP HOME=$TMP fish --no-config -c 'source script.fish; complete -C "$argv"' "countersink $*" 2>&1 |
		cut -f1 | sed 's|.*/\(sample_\)|\1|; s|/$||' | sort -u | paste -sd' '
}
cat >setup.zsh <<'ZSH'
PROMPT= PS2=
autoload -Uz compinit
compinit -u -d ./zcompdump
source ./script.zsh
compadd() {
	local -a hits
	if [[ " $* " != *" -"[OAD]" "* ]]; then
		builtin compadd -O hits "$@"
		print -l -- $hits >>zsh.hits
	fi
	builtin compadd "$@"
}
offer() {
	zle complete-word
	zle kill-whole-line
	print -- --done-- >>zsh.hits
}
zle -N offer
bindkey '^I' offer
print -- --ready-- >>zsh.hits
ZSH
cat >ask.zsh <<'ZSH'
zmodload zsh/zpty zsh/datetime
await() {
	local until=$((EPOCHSECONDS + 60))
	until grep -qx -e "$1" zsh.hits 2>/dev/null; do
		zpty -r -t z >/dev/null
		((EPOCHSECONDS < until)) || exit 1
	done
}
: >zsh.hits
zpty z zsh -f -i
zpty -w z 'source ./setup.zsh'
await --ready--
while read -r line; do
	: >zsh.hits
	zpty -w -n z "$line"$'\t'
	await --done--
	print -r -- "$line|$(grep -vx -e '--done--' -e '' zsh.hits | sort -u | paste -sd' ')"
done
ZSH

# expect LINE WORDS...: each shell offers these words and no other; of a first word, which may be a program, this one too.
lines=()
wants=()
expect() {
	lines+=("$1")
	shift
	wants+=("$*")
}

for command in $(countersink help | sed -n 's/^  \([a-z]\+\)  .*/\1/p'); do
	expect "${command%?}" "$command"
	option=$(countersink help "$command" | sed -n 's/^ *\(-., \)\?\(--[a-z-]*\).*/\2/p' | head -1)
	# One that another option begins with is completed to both.
	# shellcheck disable=SC2046
	expect "$command $option" $(countersink help "$command" | sed -n 's/^ *\(-., \)\?\(--[a-z-]*\).*/\2/p' | grep -e "^$option" | sort)
	synopsis=$(countersink help "$command" | sed -n '1s/Usage: countersink //p')
	case $synopsis in
	*'COMMAND [ARGUMENT]'*)
		expect "$command sample_pro" sample_program
		expect "$command -- sample_pro" sample_program
		expect "$command sample_program sample_w" sample_words.txt
		;;
	*'-- COMMAND'*)
		expect "$command sample_sl" sample_sleeper
		expect "$command -- sample_pro" sample_program
		expect "$command -- sample_program sample_w" sample_words.txt
		expect "$command --pid $sleeper" "$sleeper"
		;;
	*'[COMMAND]'*) expect "$command repor" report ;;
	*FILE* | *' A B'*)
		expect "$command sample_o" sample_one.pb.gz
		expect "$command sample_one.pb.gz sample_t" sample_two.pb.gz
		;;
	*DIRECTORY*) expect "$command a_direct" a_directory ;;
	*PATTERN*) expect "$command page-f" page-faults ;;
	*' '*'|'*)
		word=${synopsis#* }
		word=${word%%|*}
		expect "$command ${word%?}" "$word"
		;;
	*'[OPTION]...') ;; # takes nothing else
	*) is "$synopsis" "" "$command: this test knows what its synopsis means" ;;
	esac
done
expect "report --by thr" thread
expect "gate --placement k" kept
expect "stat -e page-f" page-faults
expect "report --event page-f" page-faults
expect "gate --junit sample_w" sample_words.txt
expect "gate --vs sample_pro" sample_program
expect "run --engine sigt" sigtrap

# is_offered GOT WANT LINE NAME
is_offered() {
	case $3 in
	*' '*) is "$1" "$2" "$4" ;;
	*) like " $1 " " $2 " "$4" ;;
	esac
}

for shell in bash fish; do
	for i in "${!lines[@]}"; do
		if ! have $shell; then
			skip "$shell: ${lines[i]}" "no $shell here"
			continue
		fi
		read -ra words <<<"${lines[i]}"
		is_offered "$(offered_by_$shell "${words[@]}")" "${wants[i]}" "${lines[i]}" "$shell: ${lines[i]}"
	done
done
if have zsh; then
	printf 'countersink %s\n' "${lines[@]}" | timeout 300 zsh -f ask.zsh >zsh.out
fi
for i in "${!lines[@]}"; do
	if have zsh; then
		is_offered "$(sed -n "$((i + 1))s/^[^|]*|//p" zsh.out)" "${wants[i]}" "${lines[i]}" "zsh: ${lines[i]}"
	else
		skip "zsh: ${lines[i]}" "no zsh here"
	fi
done

# Completion does not run what another process has as its name.
hostile='bin/$(touch x)'
cp bin/sample_sleeper "$hostile"
"$hostile" 1000 &
other=$!
until grep -qF '$(touch' "/proc/$other/comm"; do :; done
offered_by_bash attach '' >/dev/null
have fish && offered_by_fish attach s >/dev/null
kill $other
ok "a process's name is not run" test ! -e x

# Names are lines: blanks are part of them, and stars no patterns.
mkdir names && cd names && cp ../script.bash . || exit 1
touch 'a b.pb.gz' '*'
is "$(offered_by_bash report a)" 'a b.pb.gz' "bash: the name of a profile with a blank is one name"
is "$(offered_by_bash stat -o '')" '* a b.pb.gz script.bash' "bash: a name that is a pattern is itself"
cd ..
done_testing
