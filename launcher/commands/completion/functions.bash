# Names from a line each: they may have blanks, or be patterns.
_countersink_add() {
	local name
	while IFS= read -r name; do COMPREPLY+=("$name"); done
}
_countersink_files() {
	compopt -o filenames 2>/dev/null
	_countersink_add < <(compgen "$@" -- "$cur")
}
# $1: a kind, or words. $cur is completed.
_countersink_offer() {
	case $1 in
	'<file>') _countersink_files -f ;;
	'<directory>') _countersink_files -d ;;
	'<profile>')
		local ending
		for ending in pb.gz pb pprof folded; do _countersink_files -f -X "!*.$ending"; done
		if ((${#COMPREPLY[@]})); then
			_countersink_files -d
		else
			_countersink_files -f
		fi ;;
	'<pid>') COMPREPLY=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur")) ;;
	'<process>')
		COMPREPLY=($(compgen -W "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -x '[A-Za-z0-9_.-]*' | sort -u)" -- "$cur")) ;;
	'<program>')
		_countersink_add < <(compgen -c -- "$cur")
		if [[ $cur == */* ]]; then _countersink_files -d; fi ;;
	*) COMPREPLY=($(compgen -W "$1" -- "$cur")) ;;
	esac
}
_countersink() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=run i=1 nr=0 program=0 operands values
	local ended=
	COMPREPLY=()
	if ((COMP_CWORD > 1)) && [[ " $_countersink_commands " == *" ${COMP_WORDS[1]} "* ]]; then
		command=${COMP_WORDS[1]} i=2
	fi
	operands=$(_countersink_operands "$command")
	# What comes before the word: options, and operands. Bash splits --option=value into three words.
	for (( ; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			ended=1
			[[ $operands == '<process>' ]] && operands='<program>'
			if [[ $operands == '<program>' ]]; then program=$((i + 1)); break; fi ;;
		=) ((i + 1 < COMP_CWORD)) && ((i++)) ;;
		-?*)
			if [[ ! $ended ]] && _countersink_values "$command ${COMP_WORDS[i]}" >/dev/null &&
			   [[ ${COMP_WORDS[i+1]} != '=' ]]; then
				((i + 1 < COMP_CWORD)) && ((i++))
			fi ;;
		*)
			((nr++))
			if [[ $operands == '<program>' ]]; then program=$i; break; fi ;;
		esac
	done
	if ((program && program < COMP_CWORD)); then
		if declare -F _comp_command_offset >/dev/null; then
			_comp_command_offset "$program"
		elif declare -F _command_offset >/dev/null; then
			_command_offset "$program"
		else
			_countersink_files -f
		fi
		return
	fi
	if [[ ! $ended && $cur == '=' ]] && values=$(_countersink_values "$command $prev"); then
		cur=
	elif [[ ! $ended && $prev == '=' ]] && values=$(_countersink_values "$command ${COMP_WORDS[COMP_CWORD-2]}"); then
		:
	elif [[ ! $ended ]] && values=$(_countersink_values "$command $prev"); then
		:
	elif [[ ! $ended && $cur == -* ]]; then
		values=$(_countersink_options "$command")
	elif [[ $operands == '<'* ]] || ((nr == 0)); then
		values=$operands
	else
		return
	fi
	_countersink_offer "$values"
	if ((COMP_CWORD == 1)) && [[ $cur != -* ]]; then COMPREPLY+=($(compgen -W "$_countersink_commands" -- "$cur")); fi
}
complete -o default -F _countersink countersink
