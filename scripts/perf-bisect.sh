#!/bin/sh
# Finds the commit that made something slower, with git:
#
#     git bisect start BAD GOOD
#     git bisect run perf-bisect.sh GOOD ./bench ARGUMENT...
#
# First BAD is compared with GOOD: what got slower between them (functions; figures of the whole command, such as its CPU
# time, where no function did) is what is looked for. Then each commit is compared with GOOD, which is built once. The
# answers are those that git bisect asks for: 0 nothing of it is slower than in GOOD, 1 something is, 125 the commit says
# nothing (it does not build, its command fails, it is still open after all tries), 128 something is wrong, stop. What is
# open is no answer: the commit is compared again, with twice the runs.
#
# With --suite among PERF_GATE_OPTIONS, what is looked for is what got slower in the cases of a suite of benchmarks;
# --cases chooses them. A commit whose case errs, or that does not have it, is skipped (125). Cases are not screened.
#
# PERF_GATE_BUILD     how a commit is built, a shell command (make)
# PERF_GATE_OPTIONS   more options of countersink gate (--max-time=120)
# PERF_GATE_FUNCTION  look for this function alone
# PERF_GATE_TRIES     how often a commit is compared while it is open, each time with twice the runs (3)
# COUNTERSINK         the program (countersink)
set -eu
if [ $# -lt 2 ]; then
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 128
fi
good=$1
shift
[ "$1" != -- ] || shift
top=$(git rev-parse --show-toplevel)
. "$(dirname "$0")/lib/gate_functions.sh"
. "$(dirname "$0")/lib/suite_questions.sh"
directory=$(git rev-parse --absolute-git-dir)/perf-bisect
case " ${PERF_GATE_OPTIONS:-} " in
*' --suite '* | *' --suite='*)
	is_suite=yes
	# What comes later overrides this. Few cases are asked for: each gets all of its runs. Counted ones are not screened.
	case " $PERF_GATE_OPTIONS " in
	*' --deterministic '* | *' --deterministic='*)
		is_counted=yes
		PERF_GATE_OPTIONS="--max-time=120 $PERF_GATE_OPTIONS"
		;;
	*)
		is_counted=
		PERF_GATE_OPTIONS="--screen=0 --max-time=120 $PERF_GATE_OPTIONS"
		;;
	esac
	;;
*) is_suite='' is_counted='' ;;
esac

say()
{
	printf 'perf-bisect: %s\n' "$1" >&2
}

stop()
{
	say "$1"
	exit 128
}

# build_commit ID DIRECTORY: builds a commit outside the working tree.
build_commit()
{
	mkdir -p "$2"
	git -C "$top" archive "$1" | tar -x -C "$2"
	build_in "$2" "$directory/log"
}

# answer QUESTIONS: reads what a gate wrote; 0 nothing that is asked for is slower, 1 something is, 2 it is open. QUESTIONS:
# a file with what points begin with, from their names on; empty: all points.
answer()
{
	questions=$1 awk '
		BEGIN { while ((getline line <ENVIRON["questions"]) > 0) wanted[nr++] = line }
		/^not ok / {
			text = substr($0, index($0, " - "))
			asked = !nr
			for (i = 0; i < nr; i++)
				asked = asked || index(text, wanted[i]) == 1
			if (!asked)
				next
			print
			if (index(text, " regressed: "))
				regressed = 1
			else
				open = 1
		}
		END { exit regressed ? 1 : open ? 2 : 0 }
	' "$directory/gate.tap"
}

# More runs than the latest gate made, as options of the next one.
twice_the_runs()
{
	if [ -z "$is_suite" ]; then
		runs=$(sed -n 's/^# runs: \([0-9]*\) .*/\1/p' "$directory/gate.tap")
		more="--runs $((2 * runs))"
		return
	fi
	if [ "$is_counted" ]; then
		runs=$(sed -n 's/^# runs: .* counted, at least \([0-9]*\) times .*/\1/p' "$directory/gate.tap")
		seconds=$(sed -n 's/^# runs: .* counted, .* in \([0-9]*\)[0-9.]* s$/\1/p' "$directory/gate.tap")
		more="--runs $((2 * runs)) --max-time $((4 * seconds + 10))"
		return
	fi
	runs=$(sed -n 's/^# runs: .* to screen, \([0-9]*\) fresh .*/\1/p' "$directory/gate.tap")
	seconds=$(sed -n 's/^# runs: .* in \([0-9]*\)[0-9.]* s; .*/\1/p' "$directory/gate.tap")
	twice=$((2 * runs > 20 ? 2 * runs : 20))
	more="--confirm $((twice < 1000 ? twice : 1000)) --max-time $((2 * seconds + 10))"
}

# ask TREE QUESTIONS COMMAND [ARGUMENT]...: compares until there is an answer: 0, 1 or 2 as of answer, 3 an error.
ask()
{
	tree=$1 questions=$2 more='' try=1
	shift 2
	while :; do
		status=0
		rm -f "$directory/gate.tap"
		compare "$directory/good" "$tree" "--quiet --strict --tap $(quoted "$directory/gate.tap") $more" "$@" || status=$?
		case $status in
		0 | 3) ;;
		1) [ "$is_suite" ] && grep -q '^1\.\.' "$directory/gate.tap" || return 3 ;;
		4) return 3 ;;
		*) stop "countersink gate ended with status $status" ;;
		esac
		found=0
		if [ "$is_suite" ]; then
			answer_suite "$questions" <"$directory/gate.tap" || found=$?
		else
			answer "$questions" || found=$?
		fi
		[ "$found" = 2 ] || return "$found"
		twice_the_runs
		[ "$try" -lt "${PERF_GATE_TRIES:-3}" ] || return 2
		try=$((try + 1))
		say "open after $runs pairs of runs; again, with twice as many"
	done
}

# The function that was asked for, as a point begins with it; nothing if none was.
begin_questions()
{
	if [ "$is_suite" ]; then
		[ -z "${PERF_GATE_FUNCTION:-}" ] || function_question "$PERF_GATE_FUNCTION"
		return
	fi
	[ -z "${PERF_GATE_FUNCTION:-}" ] || printf ' - %s in \n' "$PERF_GATE_FUNCTION" | sed 's/[#\\]/\\&/g'
}

# What is asked of each commit is found once a bisection; it is in $directory/questions, for what $directory/asked says.
find_questions()
{
	terms=$(git bisect terms --term-bad 2>/dev/null) || terms=bad
	bad=$(git rev-parse --quiet --verify "refs/bisect/$terms^{commit}") || {
		# By hand, not by git bisect. What a bisection asked is no longer there.
		rm -f "$directory/asked"
		begin_questions >"$directory/questions"
		return 0
	}
	asked=$(printf '%s\n' "${PERF_GATE_OPTIONS:-}" "${PERF_GATE_FUNCTION:-}" "$@" | git hash-object --stdin)
	# What was bad at the first commit is in the log to the last one.
	if [ -e "$directory/asked" ] && read -r key before <"$directory/asked" && [ "$key" = "$asked" ] &&
		git bisect log | grep -qF "[$before]"; then
		return 0
	fi
	begin_questions >"$directory/questions"
	rm -rf "$directory/bad" "$directory/asked"
	build_commit "$bad" "$directory/bad" || stop "the bad commit $bad does not build"
	found=0
	ask "$directory/bad" "$directory/questions" "$@" || found=$?
	case $found in
	1) ;;
	2) stop "it is open whether ${PERF_GATE_FUNCTION:-anything} got slower from $good to the bad commit ($runs pairs of runs)" ;;
	3) stop "the bad commit cannot be compared with $good" ;;
	*) stop "from $good to the bad commit, ${PERF_GATE_FUNCTION:-nothing} got ${PERF_GATE_FUNCTION:+no }slower" ;;
	esac
	if [ "$is_suite" ]; then
		slower_rows "$(cut -f 2 "$directory/questions")" <"$directory/gate.tap" >"$directory/slower"
		mv "$directory/slower" "$directory/questions"
	elif [ -z "${PERF_GATE_FUNCTION:-}" ]; then
		sed -n 's/^not ok [0-9]*\( - .* in .* \)regressed: .*/\1/p' "$directory/gate.tap" >"$directory/questions"
		[ -s "$directory/questions" ] ||
			sed -n 's/^not ok [0-9]*\( - .* \)regressed: .*/\1/p' "$directory/gate.tap" >"$directory/questions"
	fi
	rm -rf "$directory/bad"
	printf '%s %s\n' "$asked" "$bad" >"$directory/asked"
}

id=$(git rev-parse --verify "$good^{commit}") || exit 128
if [ "$(cat "$directory/built" 2>/dev/null)" != "$id ${PERF_GATE_BUILD:-}" ]; then
	rm -rf "$directory"
	build_commit "$id" "$directory/good" || stop "$good does not build"
	printf '%s %s\n' "$id" "${PERF_GATE_BUILD:-}" >"$directory/built"
fi
here=$(git rev-parse --short HEAD)
build_in "$top" "$directory/log" || {
	say "$here does not build: skipped"
	exit 125
}
find_questions "$@"
found=0
ask "$top" "$directory/questions" "$@" || found=$?
case $found in
2) say "$here: still open after $runs pairs of runs: skipped (PERF_GATE_TRIES and --max-time allow more)" ;;
3) say "$here cannot be compared with $good: skipped" ;;
*) exit "$found" ;;
esac
exit 125
