#!/bin/bash
# Sources of function names when the program's own file has none, or is gone.
. "$(dirname "$0")/lib.sh"

record() { # directory program: record a run of it
	rm -rf "$1" && mkdir -m 700 "$1" && COUNTERSINK_FREQUENCY=1000 COUNTERSINK_RUN_DIR=$PWD/$1 LD_PRELOAD=$LIB "$2" 2000 >/dev/null
}
functions() { # directory [options]: the report's lines of functions
	"$COUNTERSINK" report --all "$@" 2>&1
}
have objcopy || skip_all 'no objcopy here'
id=$(readelf -n "$TARGETS/inlines" | sed -n 's/.*Build ID: //p')
[ -n "$id" ] || skip_all 'the compiler makes no build-ids'
objcopy --only-keep-debug "$TARGETS/inlines" whole.debug
strip -o prog "$TARGETS/inlines"

# ---- beside the program
ok 'a stripped program is recorded' record run ./prog
unlike "$(functions run)" ' churn$' 'a stripped program has no function names'
like "$(functions run)" '\[prog\+0x[0-9a-f]+\]$' "a stripped program's rows begin where its functions begin"
cp whole.debug prog.debug
objcopy --add-gnu-debuglink=prog.debug prog
like "$(functions run)" ' churn$' 'a debug link leads to the names'
like "$(functions run)" 'scramble.*\(inlined\)$' 'a debug link leads to inlined names'
mkdir .debug && mv prog.debug .debug/
like "$(functions run)" ' churn$' 'a debug link into .debug leads to the names'
objcopy --remove-section=.note.gnu.build-id .debug/prog.debug
printf x >>.debug/prog.debug
unlike "$(functions run)" ' churn$' 'a debug file of another build is ignored'
rm -r .debug
objcopy --remove-section=.note.gnu.build-id --remove-section=.gnu_debuglink prog bare
cp whole.debug crc.debug
objcopy --remove-section=.note.gnu.build-id crc.debug
objcopy --add-gnu-debuglink=crc.debug bare
ok 'a program without a build-id is recorded' record bare.run ./bare
like "$(functions bare.run)" ' churn$' 'without a build-id a debug link is checked by its checksum'
printf x >>crc.debug
unlike "$(functions bare.run)" ' churn$' 'a debug link with a wrong checksum is ignored'

# ---- debuginfod, on request only
mkdir -p "server/buildid/$id"
cp whole.debug "server/buildid/$id/debuginfo"
cp "$TARGETS/inlines" "server/buildid/$id/executable"
export DEBUGINFOD_CACHE_PATH=$PWD/dcache
if ldconfig -p | grep -q 'libdebuginfod\.so\.1'; then
	export DEBUGINFOD_URLS=file://$PWD/server
	objcopy --remove-section=.gnu_debuglink prog
	unlike "$(functions run)" ' churn$' 'without --debuginfod no server is asked'
	ok 'without --debuginfod nothing is fetched' test ! -e dcache
	like "$(functions --debuginfod run)" ' churn$' '--debuginfod fetches names'
	rm -rf dcache
	like "$(COUNTERSINK_DEBUGINFOD=1 functions run)" ' churn$' 'COUNTERSINK_DEBUGINFOD=1 fetches names'
	mv prog prog.gone
	rm -rf dcache
	like "$(functions run)" 'warning +prog is gone: its functions have no names' 'a missing program is reported'
	like "$(functions --debuginfod run)" ' churn$' '--debuginfod fetches the names of a missing program'
	mv prog.gone prog
	if have python3; then
		python3 -u -m http.server -b 127.0.0.1 -d server 0 >server.log 2>&1 &
		server=$!
		wait_until 20 grep -q 'port [0-9]' server.log
		rm -rf dcache
		like "$(DEBUGINFOD_URLS=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\) .*/\1/p' server.log) functions --debuginfod run)" ' churn$' \
			'--debuginfod asks a server on the network'
		kill "$server"
	fi
	rm -rf dcache
	like "$(DEBUGINFOD_URLS='' functions --debuginfod run)" 'warning +--debuginfod: DEBUGINFOD_URLS names no server' '--debuginfod without a server is reported'
	cp whole.debug wrong && objcopy --remove-section=.note.gnu.build-id wrong "server/buildid/$id/debuginfo"
	rm -rf dcache
	unlike "$(functions --debuginfod run)" ' churn$' 'debug information of another build from a server is ignored'
else
	skip 'debuginfod' 'libdebuginfod is not installed'
fi

# ---- a program replaced, deleted, or in another root
cp "$TARGETS/inlines" later
ok 'a program that will be replaced is recorded' record later.run ./later
cp "$TARGETS/burn" later
like "$(functions later.run)" 'warning +later was replaced since it ran \(its build-id differs\): its functions have no names' 'a replaced program is reported'
unlike "$(functions later.run)" ' churn$' 'a replaced program has no names'
rm later
like "$(functions later.run)" 'warning +later is gone' 'a deleted program is reported'
if [ "$(id -u)" = 0 ] && unshare -m true 2>unshare.err; then
	# A program visible only in the process's own root directory.
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
	like "$(functions roots.run)" 'hidden is gone' 'a file in a root that has ended is reported as gone'
else
	skip 'a file that only the process sees' 'no mount namespaces here'
fi
done_testing
