# The command that the line is for: run, where the first word names none.
function __countersink_command
	set -l words (commandline -opc)
	if set -q words[2]; and contains -- $words[2] $__countersink_commands
		echo $words[2]
	else
		echo run
	end
end
function __countersink_is
	test (__countersink_command) = $argv[1]
end
function __countersink_is_first
	test (count (commandline -opc)) -eq 1
end
# What comes behind the options, a line each; behind '--' with that.
function __countersink_operands
	set -l words (commandline -opc)
	set -l valued __countersink_valued_(__countersink_command)
	set -e words[1]
	if set -q words[1]; and contains -- $words[1] $__countersink_commands
		set -e words[1]
	end
	while set -q words[1]; and string match -q -- '-*' $words[1]; and test $words[1] != --
		if contains -- $words[1] $$valued
			set -e words[1]
		end
		set -e words[1]
	end
	set -q words[1]; and printf '%s\n' $words
end
function __countersink_has_operands
	test (count (__countersink_operands)) -gt 0
end
# A program, and what completes it. Where a process is meant, it is one only behind '--'.
function __countersink_program
	set -l words (__countersink_operands)
	if set -q words[1]; and test $words[1] = --
		set -e words[1]
	else if test (__countersink_command) = attach
		return
	else if not set -q words[1]; and string match -q -- '-*' (commandline -ct)
		return
	end
	complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
function __countersink_processes
	__countersink_has_operands; or cat /proc/*/comm 2>/dev/null | string match -r '^[A-Za-z0-9_.-]+$' | sort -u
end
function __countersink_pids
	string match -r '[0-9]+$' -- /proc/*
end
function __countersink_profiles
	__fish_complete_suffix .pb.gz
end
