#!/bin/bash
# Where names come from when the program's own file has none, or is not there any more.
. "$(dirname "$0")/lib.sh"

record() { # folder program: record a run of it
	rm -rf "$1" && mkdir -m 700 "$1" && COUNTERSINK_FREQUENCY=1000 COUNTERSINK_RUN_DIR=$PWD/$1 LD_PRELOAD=$LIB "$2" 600 >/dev/null
}
functions() { # folder [options]: the report's lines of functions
	"$COUNTERSINK" report --all "$@" 2>&1
}
have objcopy || skip_all 'no objcopy here'
id=$(readelf -n "$TARGETS/inlines" | sed -n 's/.*Build ID: //p')
[ -n "$id" ] || skip_all 'the compiler makes no build-ids'
objcopy --only-keep-debug "$TARGETS/inlines" whole.debug
strip -o prog "$TARGETS/inlines"

# ---- beside the program
ok 'a stripped program is recorded' record run ./prog
unlike "$(functions run)" ' churn$' 'it has no names'
like "$(functions run)" '\[prog\+0x[0-9a-f]+\]$' 'but where its functions begin'
cp whole.debug prog.debug
objcopy --add-gnu-debuglink=prog.debug prog
like "$(functions run)" ' churn$' 'a debug link leads to them'
like "$(functions run)" 'scramble.*\(inlined\)$' 'inlined ones too'
mkdir .debug && mv prog.debug .debug/
like "$(functions run)" ' churn$' 'in .debug, too'
objcopy --remove-section=.note.gnu.build-id .debug/prog.debug
printf x >>.debug/prog.debug
unlike "$(functions run)" ' churn$' 'a debug file that is not what it should be is none'
rm -r .debug
objcopy --remove-section=.note.gnu.build-id --remove-section=.gnu_debuglink prog bare
cp whole.debug crc.debug
objcopy --remove-section=.note.gnu.build-id crc.debug
objcopy --add-gnu-debuglink=crc.debug bare
ok 'a program without a build-id' record bare.run ./bare
like "$(functions bare.run)" ' churn$' 'its debug link is told by the checksum'
printf x >>crc.debug
unlike "$(functions bare.run)" ' churn$' 'which must be right'

# ---- debuginfod, on request only
mkdir -p "server/buildid/$id"
cp whole.debug "server/buildid/$id/debuginfo"
cp "$TARGETS/inlines" "server/buildid/$id/executable"
export DEBUGINFOD_CACHE_PATH=$PWD/dcache
if ldconfig -p | grep -q 'libdebuginfod\.so\.1'; then
	export DEBUGINFOD_URLS=file://$PWD/server
	objcopy --remove-section=.gnu_debuglink prog
	unlike "$(functions run)" ' churn$' 'no server is asked unless it is said'
	ok 'so nothing was fetched' test ! -e dcache
	like "$(functions --debuginfod run)" ' churn$' 'a server has the names'
	rm -rf dcache
	like "$(COUNTERSINK_DEBUGINFOD=1 functions run)" ' churn$' 'the environment can say it'
	mv prog prog.gone
	rm -rf dcache
	like "$(functions run)" 'warning +prog is gone: its functions have no names' 'a program that is gone has none'
	like "$(functions --debuginfod run)" ' churn$' 'a server has it too'
	mv prog.gone prog
	if have python3; then
		python3 -u -m http.server -b 127.0.0.1 -d server 0 >server.log 2>&1 &
		server=$!
		wait_until 20 grep -q 'port [0-9]' server.log
		rm -rf dcache
		like "$(DEBUGINFOD_URLS=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\) .*/\1/p' server.log) functions --debuginfod run)" ' churn$' \
			'one on the network as well'
		kill "$server"
	fi
	rm -rf dcache
	like "$(DEBUGINFOD_URLS='' functions --debuginfod run)" 'warning +--debuginfod: DEBUGINFOD_URLS names no server' 'without a server that is said'
	cp whole.debug wrong && objcopy --remove-section=.note.gnu.build-id wrong "server/buildid/$id/debuginfo"
	rm -rf dcache
	unlike "$(functions --debuginfod run)" ' churn$' 'what a server has must be of the build, too'
else
	skip 'debuginfod' 'libdebuginfod is not installed'
fi

# ---- replaced, deleted, in another root
cp "$TARGETS/inlines" later
ok 'a program' record later.run ./later
cp "$TARGETS/burn" later
like "$(functions later.run)" 'warning +later was replaced since it ran \(its build-id is another\): its functions have no names' 'one that was replaced is refused'
unlike "$(functions later.run)" ' churn$' 'and gives no names'
rm later
like "$(functions later.run)" 'warning +later is gone' 'one that was deleted is missed'
if [ "$(id -u)" = 0 ] && unshare -m true 2>unshare.err; then
	# A process that has our program where we have none: its root is asked for it.
	mkdir inside
	cp "$TARGETS/inlines" inside/hidden
	mkdir -m 700 roots.run
	cat >inside.sh <<-END
		mount -t tmpfs none "$PWD/nest" && cp inside/hidden nest/ &&
		exec env COUNTERSINK_FREQUENCY=1000 COUNTERSINK_RUN_DIR=$PWD/roots.run LD_PRELOAD=$LIB "$PWD/nest/hidden" 2000000
	END
	mkdir nest
	unshare -m sh inside.sh >inside.out 2>&1 &
	guest=$!
	wait_until 60 sh -c '"$0" report --csv --by module roots.run 2>&1 | grep -q nest/hidden' "$COUNTERSINK"
	wait_until 60 sh -c '"$0" report --all roots.run 2>&1 | grep -q " churn$"' "$COUNTERSINK"
	like "$(functions roots.run)" ' churn$' 'a file that only the process sees is read in its root'
	kill "$guest"
	wait "$guest" 2>wait.err
	like "$(functions roots.run)" 'hidden is gone' 'which is gone with it'
else
	skip 'a file that only the process sees' 'no mount namespaces here'
fi
done_testing
