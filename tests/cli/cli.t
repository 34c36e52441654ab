#!/bin/bash
# The command line: what is refused and how, help, the manual pages, values and their sources, completion.
. "$(dirname "$0")/lib.sh"
PATH=$BUILD/bin:/usr/bin:/bin # no directory that this user cannot search: "not found" would be "not permitted"
export HOME=$TMP

# refused STATUS REGEX NAME ARGUMENT...: nothing is run, one line says why.
refused() {
	local status=$1 regex=$2 name=$3
	shift 3
	rm -f was_run
	countersink "$@" >out 2>err
	is $? "$status" "$name: status $status"
	like "$(cat err)" "$regex" "$name: the reason is reported"
	is "$(wc -l <err) $(wc -c <out)" "1 0" "$name: in one line on stderr"
	ok "$name: the command was not run" test ! -e was_run
}

refused 125 "unknown option '--freqency'; did you mean '--frequency'" "unknown long option" --freqency 5 touch was_run
refused 125 "unknown option '-z'" "unknown short option" -z touch was_run
refused 125 'option -F needs a value' "short option without its value" -F
refused 125 'option --events needs a value' "long option without its value" --events
refused 125 "option --frequency: '0' is not a whole number above 0" "-F 0" -F 0 touch was_run
refused 125 "option --frequency: '-1' is not" "-F -1" -F -1 touch was_run
refused 125 "option --frequency: 'abc' is not" "-F abc" -F abc touch was_run
refused 125 "option --frequency: '1e3' is not" "-F 1e3" -F 1e3 touch was_run
refused 125 "option --frequency: '' is not" "-F with nothing" --frequency= touch was_run
refused 125 "option --frequency: '99999999999999999999' is too large" "-F too large" -F 99999999999999999999 touch was_run
refused 125 "option --period: '0' is not" "-c 0" -c 0 touch was_run
refused 125 'options --frequency and --period exclude each other' "both rates" -F 5 -c 5 touch was_run
refused 125 "option --engine: 'sigtarp' is unknown; did you mean 'sigtrap'.*one of: auto, sigtrap, signal, timer, none" \
	"unknown engine" --engine sigtarp touch was_run
refused 125 "option --unwind: 'dwraf' is unknown; did you mean 'dwarf'" "unknown unwinder" --unwind=dwraf touch was_run
refused 125 "option --unwind: 'libunwind' is unknown .one of: auto, dwarf, fp, none.; it is for countersink attach alone" \
	"run: attach's unwinder" --unwind=libunwind touch was_run
COUNTERSINK_UNWIND=libunwind refused 125 "COUNTERSINK_UNWIND in the environment: 'libunwind' is unknown" \
	"run: attach's unwinder in the environment" touch was_run
refused 125 "option --events: .*'cylces'.*did you mean 'cycles'" "unknown event" -e cylces touch was_run
refused 125 "option --quiet: 'maybe' is neither yes nor no" "bad flag" --quiet=maybe touch was_run
refused 125 "option --output: '%q' means nothing" "bad output template" -o %q touch was_run
refused 125 'option --output: the value is empty' "empty output" -o '' touch was_run
refused 125 'no command given' "no command" run
refused 125 'no command given' "no arguments"
COUNTERSINK_FREQUENCY=abc refused 125 "COUNTERSINK_FREQUENCY in the environment: 'abc' is not" "bad environment" touch was_run
COUNTERSINK_ENGINE=x refused 125 "COUNTERSINK_ENGINE in the environment: 'x' is unknown" "bad engine there" touch was_run
COUNTERSINK_EVENTS=nonsense refused 125 "COUNTERSINK_EVENTS in the environment: .*'nonsense'" "bad event there" touch was_run
COUNTERSINK_QUIET=x refused 125 "COUNTERSINK_QUIET in the environment: 'x' is neither" "bad flag there" touch was_run
refused 2 "unknown option '--al'; did you mean '--all'" "report: unknown option" report --al
refused 2 "no command 'reprot'; did you mean 'report'" "help: unknown command" help reprot
refused 2 "no completion for 'csh'" "completion: unknown shell" completion csh
refused 127 "reprot: command not found; did you mean 'report'" "a misspelt command of ours" reprot

# ---- options end where the command begins
is "$(countersink -q echo -q --help -F)" "-q --help -F" "options after the command's name are the command's"
is "$(countersink -q -- echo -- x)" "-- x" "the first -- is ours, the next the command's"
is "$(countersink run -q -F50 --engine=auto --unwind fp echo x)" x "all ways to give a value"
is "$(countersink -qa echo x)" x "flags in one word"
is "$(countersink -qF 50 echo x)" x "flags and a value in one word"
mkdir bin
printf '#!/bin/sh\necho mine "$@"\n' >bin/report
chmod +x bin/report
is "$(PATH=$TMP/bin:$PATH countersink run -q report x)" "mine x" "run REPORT runs a program of that name"
is "$(PATH=$TMP/bin:$PATH countersink -q -- report x)" "mine x" "-- REPORT runs a program of that name"

# ---- where values come from
config() {
	countersink "$@" --print-config | sed -n "s/^$want *//p" | tr -s ' '
}
want=frequency
is "$(config)" "997 default" "a default"
is "$(COUNTERSINK_FREQUENCY=50 config)" "50 environment COUNTERSINK_FREQUENCY" "the environment"
is "$(COUNTERSINK_FREQUENCY=50 config -F 60)" "60 option --frequency" "an option comes before the environment"
is "$(COUNTERSINK_FREQUENCY=abc config -F 60)" "60 option --frequency" "an option overrides an invalid environment variable"
is "$(COUNTERSINK_FREQUENCY='' config)" "997 default" "an empty variable counts as unset"
is "$(config -F 60 -F 70)" "70 option --frequency" "the last of two counts"
want=quiet
is "$(COUNTERSINK_QUIET=on config)" "yes environment COUNTERSINK_QUIET" "a flag from the environment"
is "$(COUNTERSINK_QUIET=on config --quiet=no)" "no option --quiet" "an option overrides a flag of the environment"
countersink --print-config -- touch was_run >/dev/null
ok "--print-config runs nothing" test ! -e was_run
is "$(countersink --version)" "countersink $(sed -n 's/^#define CSINK_VERSION "\(.*\)"/\1/p' "$SRC/include/internal/base.h")" \
	"--version says which"
# Debian's list of symbols has the version in which each came, which stays when the version grows.
is "$(cd "$SRC" && grep -rlF --exclude='*.symbols' "$(countersink --version | sed 's/.* //')" include launcher preload scripts Makefile)" \
	include/internal/base.h "the version stands in one file of the sources"
ok "--version is not refused for what else is wrong" countersink --version --frequency=x

# ---- help, manual pages and the command table agree
plain_man() { # the source without its markup
	sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' "$SRC/launcher/man/$1.1"
}
# Both print: the option as written, its default, its environment variable ("-": none).
help_of() {
	case $1 in
	countersink-send) countersink-send --help ;; # a program of its own
	*) countersink help "$1" ;;
	esac
}
options_of_help() {
	help_of "$1" | awk '
		function entry_ends(   name, text, tail, def, variable) {
			if (entry == "") return
			name = entry; sub(/  .*/, "", name)
			def = variable = "-"
			if (match(entry, / \[[^]]*\]$/)) {
				tail = substr(entry, RSTART + 2, RLENGTH - 3)
				if (match(tail, /COUNTERSINK_[A-Z_]*$/)) { variable = substr(tail, RSTART); tail = substr(tail, 1, RSTART - 1) }
				sub(/; $/, "", tail)
				if (tail != "") def = tail
			}
			print name "|" def "|" variable
			entry = ""
		}
		/^  (    )?(-|COUNTERSINK_)/ { entry_ends(); sub(/^ */, ""); entry = $0; next }
		/^ +[^ ]/ { sub(/^ */, ""); entry = entry (entry ~ /\|$/ ? "" : entry ~ /  / ? " " : "  ") $0; next }
		{ entry_ends() }
		END { entry_ends() }' | sort
}
options_of_man() {
	plain_man "countersink-$1" | awk '
		function entry_ends() { if (name != "") print name "|" def "|" variable; name = "" }
		after_tp && (/^-/ || /^COUNTERSINK_.*=/) { name = $0; def = variable = "-" }
		/^Default: / { def = $0; sub(/^Default: /, "", def); sub(/\.( Environment: .*)?$/, "", def) }
		/Environment: / { variable = $0; sub(/.*Environment: /, "", variable); sub(/\.$/, "", variable) }
		{ after_tp = /^\.TP/ }
		/^\.(TP|SH|PP)/ { entry_ends() }
		END { entry_ends() }' | sort
}
countersink help | sed -n 's/^  \([a-z]\+\)  .*/\1/p' >commands
is "$(countersink help | awk 'length > 80')" "" "the overview fits 80 columns"
for command in $(cat commands); do
	options_of_help "$command" >help.options
	ok "$command: help has options" grep -q -- '--help' help.options
	is "$(countersink "$command" --help)" "$(countersink help "$command")" "$command: --help prints the same as help"
	is "$(countersink help "$command" | awk 'length > 80')" "" "$command: help fits 80 columns"
	statuses=$(countersink help "$command" | sed -n '3,/^$/p' | tr '\n' ' ' | sed -n 's/.*(\([0-9].*\)).*/\1/p' | grep -o '[0-9]\+')
	for status in $statuses; do
		like "$(plain_man "countersink-$command" | sed -n '/^\.SH EXIT STATUS/,/^\.SH [^E]/p')" "(^|, )(\.B )?$status( |$)" \
			"$command: its manual page has status $status of its help"
	done
	[ "$(wc -l <help.options)" -gt 3 ] || continue # only what every command takes
	is "$(options_of_man "$command")" "$(cat help.options)" "$command: its manual page has the same options, defaults, environment variables"
done
if [ -x "$BUILD/bin/countersink-send" ]; then
	is "$(options_of_man send)" "$(options_of_help countersink-send)" "countersink-send: its manual page has the same options, defaults, environment variables"
else
	skip "countersink-send: its manual page has the same options, defaults, environment variables" "the headers of libcurl are not here"
fi
is "$(plain_man countersink | sed -n '/^\.SH COMMANDS/,/^\.SH OPTIONS/p' | sed -n 's/^\([a-z]\+\)$/\1/p')" "$(cat commands)" \
	"countersink(1) lists the commands of the table"
for command in $(cat commands); do
	countersink help "$command" | sed -n '1s/^Usage: //p'
done >usages
is "$(plain_man countersink | sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' | grep -v '^\.')" "$(cat usages)" \
	"countersink(1)'s synopsis has every command, used as its --help says"
for file in "$SRC"/launcher/man/*.[1-9]*; do
	page=${file##*/}
	ok "make install takes $page: it is of section 1, 3, 5 or 7" expr "$page" : '.*\.[1357]$'
	if have man; then
		is "$(man --warnings -l "$file" 2>&1 >/dev/null)" "" "man has no warnings about $page"
	else
		skip "man has no warnings about $page" "no man here"
	fi
done
COLUMNS=80 countersink --help >/dev/full 2>err
isnt $? 0 "help to a full device is an error"
like "$(cat err)" 'No space left' "a full device for help is reported"

# ---- completion
complete_bash() { # the words of a line, the last one being completed
	bash --norc -c '
		eval "$(countersink completion bash)"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_countersink
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
like "$(complete_bash countersink rep)" '^report$' "bash: completion of a command"
is "$(complete_bash countersink --fre)" "--frequency" "bash: completion of an option of run"
is "$(complete_bash countersink run --fre)" "--frequency" "bash: completion of an option after run"
is "$(complete_bash countersink report --q)" "--quiet" "bash: completion of an option of report"
is "$(complete_bash countersink --engine = sig | sort | tr '\n' ' ')" "signal sigtrap " "bash: completion of values after ="
is "$(complete_bash countersink --unwind dw)" "dwarf" "bash: completion of values in the next word"
is "$(complete_bash countersink -e page)" "page-faults" "bash: completion of events"
like "$(complete_bash countersink -F 50 prov)" '^prove$' "bash: completion of the command itself"
: >some_file
is "$(complete_bash countersink -q cat some_f)" "some_file" "bash: completion of the command's arguments"
is "$(complete_bash countersink -o some_f)" "some_file" "bash: completion of files"
is "$(complete_bash countersink completion z)" "zsh" "bash: completion of shells"
is "$(complete_bash countersink persist det)" "detach" "bash: completion of persist's actions"
is "$(complete_bash countersink persist detach --pag)" "--pages" "bash: completion of options of persist's actions"
for option in $(countersink help run | sed -n 's/^ *\(-., \)\?\(--[a-z-]*\).*/\2/p'); do
	is "$(complete_bash countersink "$option" | head -1)" "$option" "bash: $option"
done
for shell in bash zsh fish; do
	countersink completion $shell >script.$shell
	if have $shell; then
		ok "$shell takes the script" $shell -n script.$shell
	else
		skip "$shell takes the script" "no $shell here"
	fi
done
if have fish; then
	fish -c 'source script.fish; complete -C"countersink --engine sig"' >fish.out 2>&1
	is "$(cut -f1 fish.out | sort | tr '\n' ' ')" "signal sigtrap " "fish: values"
	like "$(fish -c 'source script.fish; complete -C"countersink rep"' 2>&1)" '^report' "fish: commands"
else
	skip "fish: values" "no fish here"
	skip "fish: commands" "no fish here"
fi

done_testing
