# shellcheck shell=sh
# For scripts/perf-bisect.sh: what is asked of the cases of a suite, and what the TAP of a gate answers. A question is a line:
# what the point of a case begins with from its name on, a tab, and what a row below it begins with.

# Whether a function got slower, in any case. A row is YAML.
function_question()
{
	name=$(printf %s "$1" | sed 's/["\\]/\\&/g')
	printf ' - \t    - "%s in \n - \t    - "%s at \n' "$name" "$name"
}

# slower_rows ROW <TAP: the questions whose answer is yes: of each slower case its slower functions, else its slower figures;
# those alone that begin with ROW.
slower_rows()
{
	row=$1 awk '
		BEGIN { nr = split(ENVIRON["row"], begins, "\n") }
		function is_asked(line, i) {
			for (i = 1; i <= nr; i++)
				if (index(line, begins[i]) == 1)
					return 1
			return !nr
		}
		function flush() {
			printf "%s", functions != "" ? functions : figures
			name = functions = figures = ""
		}
		/^(not )?ok / { flush() }
		/^not ok / && match($0, / regressed: /) {
			text = substr($0, 1, RSTART)
			# The longest match: a name may have colons, too.
			match(text, / - .*: /)
			name = substr(text, RSTART, RLENGTH)
		}
		/^    - "/ && name != "" && is_asked($0) && match($0, / regressed: /) {
			row = substr($0, 1, RSTART)
			# Where a function of a script begins is another line in another commit.
			if (row ~ / at [^ ]+:[0-9]+ $/)
				sub(/[0-9]+ $/, "", row)
			if (row ~ / (in|at) [^ ]+ ?$/)
				functions = functions name "\t" row "\n"
			else
				figures = figures name "\t" row "\n"
		}
		END { flush() }
	'
}

# answer_suite QUESTIONS <TAP: 0 nothing that is asked for is slower, 1 something is, 2 it is open, 3 a case that is asked for
# is in error, or is not there. QUESTIONS: a file of them; empty: all cases. The points that fail are printed.
answer_suite()
{
	questions=$1 awk '
		BEGIN {
			nr = 0
			while ((getline line <ENVIRON["questions"]) > 0) {
				tab = index(line, "\t")
				cases[nr] = substr(line, 1, tab - 1)
				rows[nr++] = substr(line, tab + 1)
			}
		}
		/^(not )?ok / {
			text = substr($0, index($0, " - "))
			nr_here = 0
			for (i = 0; i < nr; i++) {
				if (index(text, cases[i]) == 1) {
					seen[i] = 1
					here[nr_here++] = rows[i]
				}
			}
			is_open = 0
			if (/^ok / || (nr && !nr_here))
				next
			print
			is_open = 1
			if (index(text, ": error: "))
				errs = 1
			else if (index(text, ": inconclusive: "))
				open = 1 # without rows
			else if (!nr && index(text, " regressed: "))
				regressed = 1
			else if (!nr)
				open = 1
		}
		/^    - "/ && is_open {
			for (k = 0; k < nr_here; k++) {
				rest = index($0, here[k]) == 1 ? substr($0, length(here[k]) + 1) : ""
				if (rest ~ /^([^ ]+ )?regressed: /)
					regressed = 1
				else if (rest ~ /^([^ ]+ )?inconclusive: /)
					open = 1
			}
		}
		END {
			for (i = 0; i < nr; i++)
				errs = errs || !seen[i]
			exit regressed ? 1 : errs ? 3 : open ? 2 : 0
		}
	'
}
