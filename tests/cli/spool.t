#!/bin/sh
# The spool of countersink-send: profiles that could not be sent are kept, and sent by the next process that sends there; each once,
# also where several send, or one is killed. Pauses take no time: tests/targets/send_shim.c.
. "$(dirname "$0")/lib.sh"

SEND=$BUILD/bin/countersink-send
[ -x "$SEND" ] || skip_all "countersink-send is not built: the headers of libcurl are not here"
for variable in $(env | sed -n 's/^\(PYROSCOPE_[A-Z_]*\|OTEL_[A-Z_]*\|AWS_[A-Z_]*\|[a-zA-Z_]*_proxy\|[A-Z]*_PROXY\)=.*/\1/p'); do
	unset "$variable"
done
SHIM=$TARGETS/send_shim.so
COUNTERSINK_SPOOL=$TMP/spool
COUNTERSINK_SEND_TIMEOUT=60
export COUNTERSINK SEND SHIM COUNTERSINK_SPOOL COUNTERSINK_SEND_TIMEOUT

"$COUNTERSINK" -q -o burn.pb.gz -- "$TARGETS/burn" 60 >/dev/null 2>&1
for name in a b c; do
	cp burn.pb.gz $name.pb.gz
done
cat >later <<'END'
#!/bin/sh
# countersink-send, so many seconds later
SEND_SHIM_AHEAD=$1
shift
export SEND_SHIM_AHEAD
LD_PRELOAD=$SHIM SEND_SHIM=clock exec "$SEND" "$@"
END
chmod +x later

# serve "ANSWER..." SCRIPT: run by sh -c beside a server with these answers; status, stdout and err, and got/.
serve() {
	# shellcheck disable=SC2086 # a word each
	"$SRC/tests/send/server.py" $1 -- sh -c "$2" >stdout 2>err
	status=$?
}

requests() {
	find got -name '*.line' | wc -l
}
paths() { # of the requests, in their order
	for nr in $(seq "$(requests)"); do
		cut -d ' ' -f 2 "got/$nr.line"
	done | xargs
}
kept() {
	find spool -maxdepth 1 -name '*.pb.gz' | wc -l
}
refused() {
	find spool/refused -name '*.pb.gz' | wc -l
}
fresh() {
	rm -rf spool
}

# ---- kept, and sent by the next ----
serve 503:retry=3600 './later 0 --to=put+http://@ADDRESS@/d/%n a.pb.gz'
like "$status $(cat err)" "^4 countersink: a.pb.gz was not sent to the server at [^ ]*: 503 Service Unavailable \(1 try; --send-timeout\); it is kept in $TMP/spool\$" \
	'what cannot be sent is kept, and that is reported'
ok 'the profile is kept as it is' cmp a.pb.gz spool/*.pb.gz
is "$(find spool -printf '%m %y\n' | sort -u | xargs)" '600 f 700 d' 'no other user can read the spool'
fresh
serve '503:retry=3600 200:keep:all' './later 0 --to=put+http://@ADDRESS@/d/%n a.pb.gz; ./later 10 --to=put+http://@ADDRESS@/d/%n b.pb.gz
	echo between $(ls got/*.line | wc -l) >&2; ./later 3700 --to=put+http://@ADDRESS@/d/%n c.pb.gz'
like "$(sed -n 2p err)" "^countersink: b.pb.gz was not sent to .*: it asked for a pause, and the next try is due at 20[-0-9]*T[:0-9]*Z; it is kept in" \
	'a Retry-After lasts from one run to the next'
is "$(sed -n 3p err)" 'between 1' 'no request is made before'
is "$status $(paths) $(kept)" '0 /d/a.pb.gz /d/a.pb.gz /d/b.pb.gz /d/c.pb.gz 0' 'then all are sent, the oldest first, with their own names'
is "$(cat got/[234].peer | sort -u | wc -l)" 1 'over one connection'
like "$(tail -n 1 err)" '^countersink: 2 profiles that were kept were sent to the server at' 'that is reported'
is "$(find spool -type f ! -name '.*')" '' 'no file of theirs is left'
serve '503:date=3600 200' './later 0 --to=put+http://@ADDRESS@/d/%n a.pb.gz; ./later 3500 --to=put+http://@ADDRESS@/d/%n; echo between $(ls got/*.line | wc -l) >&2
	./later 3700 --to=put+http://@ADDRESS@/d/%n'
like "$(cat err)" '^countersink: what is kept in .* was not sent to .*: it asked for a pause' 'so does a date; without a file, what is kept is sent'
is "$status $(sed -n 's/^between //p' err) $(requests) $(kept)" '0 1 2 0' 'nor does that make a request before'
serve '503 503 503 503 200' 'COUNTERSINK_SEND_TIMEOUT=0.4 "$SEND" --to=put+http://@ADDRESS@/d/%n a.pb.gz; ./later 0 --to=put+http://@ADDRESS@/d/%n'
is "$status $(kept)" '0 0' 'without a file, a pause that the server has not asked for is not waited for'
"$SRC/tests/send/server.py" --opens open 200:all -- sh -c 'COUNTERSINK_SEND_TIMEOUT=0.2 "$SEND" --to=put+http://@ADDRESS@/%n a.pb.gz; touch open
	"$SEND" --to=put+http://@ADDRESS@/%n b.pb.gz' 2>err
is "$? $(paths) $(kept)" '0 /a.pb.gz /b.pb.gz 0' 'a server that was away for a while gets all'
serve 'half 200:all' 'COUNTERSINK_SEND_TIMEOUT=0.001 "$SEND" --to=otlp+http://@ADDRESS@ a.pb.gz; ./later 400 --to=otlp+http://@ADDRESS@ b.pb.gz'
is "$status $(requests) $(kept) $(refused)" '0 3 0 0' 'a connection that is cut in mid-body ends with all sent'
serve 'silent 200:all' '"$SEND" --to=otlp+http://@ADDRESS@ a.pb.gz & until [ -e got/1.line ]; do sleep 0.02; done
	kill -9 $!; wait; ./later 400 --to=otlp+http://@ADDRESS@ b.pb.gz'
is "$status $(requests) $(kept) $(refused)" '0 3 0 0' 'so does a process that is killed while it waits for a server'
ok 'OTLP: what is sent twice is the same, with the same profile_id' cmp got/1.body got/2.body

# ---- pauses ----
fresh
rm -f sleeps
serve 429:all 'SEND_SHIM_LOG=sleeps ./later 0 --send-timeout=4000 --to=put+http://@ADDRESS@/ a.pb.gz'
like "$(awk '{ most = 2 ^ (NR - 1); if (most > 300) most = 300; if ($1 > most) bad++; if ($1 > 32) long++ } END { print NR, bad + 0, long + 0 }' sleeps)" \
	'^[1-9][0-9]+ 0 [1-9]' 'pauses are a random part of 1, 2, 4 ... s, and of 300 s at most'
isnt "$(sort -u sleeps | wc -l)" 1 'they are random'
serve '429 200:all' './later 3900 --to=put+http://@ADDRESS@/ b.pb.gz; ./later 9000 --to=put+http://@ADDRESS@/; ./later 9000 --to=put+http://@ADDRESS@/ a.pb.gz'
is "$status" 0 'another server is not concerned'

# ---- other servers, and how a profile is described ----
fresh
serve '503:retry=3600' './later 0 --to=put+http://@ADDRESS@/one/ a.pb.gz; ./later 7200 --to=put+http://@ADDRESS@/two/'
like "$status $(tail -n 1 err)" "^0 countersink: 1 profile in $TMP/spool is for other servers\$" 'what is for another server stays'
fresh
PYROSCOPE_APPLICATION_NAME=first PYROSCOPE_LABELS=zone=a serve '503:retry=60 200:all' './later 0 --to=pyroscope+http://@ADDRESS@ a.pb.gz
	PYROSCOPE_APPLICATION_NAME=second PYROSCOPE_LABELS= ./later 120 --to=pyroscope+http://@ADDRESS@ b.pb.gz'
is "$status $(paths | sed 's/&[^ ]*//g')" '0 /ingest?name=first%7Bzone%3Da%7D /ingest?name=first%7Bzone%3Da%7D /ingest?name=second%7B%7D' \
	'a profile keeps its name and its labels'
fresh
PYROSCOPE_TENANT_ID=one serve '503:retry=60 200:all' './later 0 --to=pyroscope+http://@ADDRESS@ a.pb.gz
	PYROSCOPE_TENANT_ID=two ./later 120 --to=pyroscope+http://@ADDRESS@; ls got/*.line | wc -l; ./later 120 --to=pyroscope+http://@ADDRESS@'
is "$status $(xargs <stdout) $(requests)" '0 1 2' 'no tenant gets the profile of another'
for variable in PYROSCOPE_HTTP_HEADERS=x-scope-orgid= PYROSCOPE_BASIC_AUTH_USER=; do
	fresh
	serve '503:retry=60 200:all' "env ${variable}one ./later 0 --to=pyroscope+http://@ADDRESS@ a.pb.gz
		env ${variable}two ./later 120 --to=pyroscope+http://@ADDRESS@; ls got/*.line | wc -l; env ${variable}one ./later 120 --to=pyroscope+http://@ADDRESS@"
	is "$status $(xargs <stdout) $(requests)" '0 1 2' "nor another one by $variable"
done
fresh
echo 'Authorization: Bearer hunter2' >headers
serve '503:retry=60:echo' './later 0 --to="put+http://@ADDRESS@/?sig=hunter2" --send-headers=headers a.pb.gz'
is "$(kept) $(grep -rl hunter2 spool)" '1 ' 'no secret is in the spool'

# ---- refused ----
fresh
serve '401:say=who 200:all' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz; echo $?; ./later 0 --to=put+http://@ADDRESS@/%n b.pb.gz'
like "$(head -n 1 stdout) $(sed -n 1p err)" "^3 .*: 401 Unauthorized: who; it is kept in $TMP/spool\$" '401: it is kept'
is "$status $(paths) $(kept)" '0 /a.pb.gz /a.pb.gz /b.pb.gz 0' '401: the next try is that of the next run'
serve '403 200' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz b.pb.gz'
is "$status $(requests) $(kept)" '3 1 2' '403: those behind it wait, too'
fresh
serve '302 200:all' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz; echo $?; ./later 0 --to=put+http://@ADDRESS@/%n'
is "$(cat stdout) $status $(requests) $(kept)" '3 0 2 0' 'a redirection: it is kept'
export https_proxy=http://@ADDRESS@
serve '403 407' './later 0 --to=put+https://server.invalid/ a.pb.gz; echo $?; ./later 0 --to=put+https://server.invalid/'
unset https_proxy
is "$(cat stdout) $status $(requests) $(kept)" '3 3 2 1' 'a proxy that refuses: it is kept'
fresh
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=own-ca -addext subjectAltName=IP:127.0.0.1 -keyout server.key -out server.pem 2>/dev/null
serve '--tls server.pem server.key 200' '"$SEND" --to=put+https://@ADDRESS@/ a.pb.gz; echo $?; "$SEND" --send-ca=server.pem --to=put+https://@ADDRESS@/'
like "$(cat stdout) $status $(requests) $(kept) $(head -n 1 err)" '^3 0 1 0 .*certificate.*; it is kept in' 'a certificate that is not trusted: it is kept'
fresh
serve '503:retry=60 422:say=malformed 200:all' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz; ./later 90 --to=put+http://@ADDRESS@/%n b.pb.gz; echo again >&2
	./later 90 --to=put+http://@ADDRESS@/%n c.pb.gz'
like "$(sed -n 2p err)" "^countersink: $TMP/spool/[0-9a-f.]*.pb.gz was not sent to .*: 422 Unprocessable Entity: malformed; it is in $TMP/spool/refused\$" \
	'what is refused is moved, and that is reported'
is "$(sed -n '/again/,$p' err | grep -c malformed)" 0 'once'
is "$(refused) $(kept) $(cat spool/refused/*.why)" '1 0 422 Unprocessable Entity: malformed' "with the server's words"
is "$status $(paths)" '0 /a.pb.gz /a.pb.gz /b.pb.gz /c.pb.gz' 'the others are sent'
fresh
serve "422:say=$(printf 'a\033[31mb')" './later 0 --to=put+http://@ADDRESS@/ a.pb.gz'
is "$(cat spool/refused/*.why)" '422 Unprocessable Entity: a\x1b[31mb' 'they are escaped for a terminal'
fresh
serve '503:retry=60' './later 0 --to=pyroscope+http://@ADDRESS@ a.pb.gz; ./later 4000 --to=pyroscope+http://@ADDRESS@'
like "$status $(requests) $(tail -n 1 err)" "^0 1 countersink: 1 profile is older than an hour, which Pyroscope refuses: it is in $TMP/spool/refused\$" \
	'Pyroscope: what is older than an hour is not tried, and that is reported'
is "$(kept) $(cat spool/refused/*.why)" '0 it is older than an hour' 'Pyroscope: it is moved'
fresh
serve '413 200 503:retry=60 200:all' './later 0 --to=pyroscope+http://@ADDRESS@ a.pb.gz; ./later 90 --to=pyroscope+http://@ADDRESS@'
is "$status $(requests) $(kept)" '0 4 0' '413: a half that was sent is not sent again'
for half in 1 2 4; do
	cp got/$half.body half$half.pb.gz
done
"$COUNTERSINK" merge -o halves.pb.gz half2.pb.gz half4.pb.gz 2>/dev/null
is "$("$COUNTERSINK" export -f folded halves.pb.gz | sort)" "$("$COUNTERSINK" export -f folded half1.pb.gz | sort)" '413: both are the whole'

# ---- bounds ----
fresh
one=$(($(wc -c <a.pb.gz) + 400)) # with its .todo
serve '503:retry=60' "./later 0 --spool-bytes=$((one * 5 / 2)) --to=put+http://@ADDRESS@/ a.pb.gz b.pb.gz c.pb.gz"
like "$status $(tail -n 1 err)" "^4 countersink: 1 of the oldest profiles that were not sent was removed from $TMP/spool, which has --spool-bytes=$((one * 5 / 2))\$" \
	'the oldest is removed where there is no room, and that is reported'
is "$(grep -h ^name spool/*.todo | xargs)" 'name b.pb.gz name c.pb.gz' 'the others are kept'
fresh
serve '503:retry=60:all' "for at in '1000000 a' '0 b' '0 c'; do
		./later \${at% *} --spool-bytes=$((one * 5 / 2)) --to=put+http://@ADDRESS@/ \${at#* }.pb.gz
	done"
is "$(grep -h ^name spool/*.todo | xargs)" 'name b.pb.gz name c.pb.gz' 'the oldest is the one that was added first, also where the clock was set back'
fresh
serve '503:retry=60' './later 0 --spool-bytes=100 --to=put+http://@ADDRESS@/ a.pb.gz'
like "$status $(kept) $(cat err)" "^4 0 .*: 503 .*; it is not kept: $TMP/spool: it is larger than --spool-bytes\$" 'what is larger than the spool is not kept'
fresh
serve '422 503:retry=60' "./later 0 --spool-bytes=$((one * 3 / 2)) --to=put+http://@ADDRESS@/ a.pb.gz; ./later 0 --spool-bytes=$((one * 3 / 2)) --to=put+http://@ADDRESS@/ b.pb.gz"
is "$(refused) $(kept)" '0 1' 'what was refused is removed first'

# ---- spools that cannot be used ----
unusable() { # NAME PATTERN: of the spool as it is; in mode 500 it is not written
	serve '200 503:retry=60' "./later 0 --to=put+http://@ADDRESS@/ a.pb.gz; echo \$?; ./later 0 --to=put+http://@ADDRESS@/ a.pb.gz"
	like "$(xargs <stdout) $(sed -n 1p err)" "^0 countersink: $2" "$1: that is reported, and the profile is sent"
	like "$status $(tail -n 1 err)" "^4 .*: 503 .*; it is not kept: $2" "$1: what cannot be sent is not kept, and that is reported"
}
fresh
mkdir -m 777 spool
chmod 777 spool
unusable 'a spool that others may write' "$TMP/spool: the spool belongs to another user, or others may write it"
chmod 700 spool
if [ "$(id -u)" = 0 ]; then
	chown 65534 spool
	unusable 'a spool of another user' "$TMP/spool: the spool belongs to another user, or others may write it"
else
	skip 'a spool of another user: that is reported, and the profile is sent' 'only root can give a directory away'
	skip 'a spool of another user: what cannot be sent is not kept, and that is reported' 'only root can give a directory away'
fi
fresh
touch spool
unusable 'a file in the place of the spool' "$TMP/spool: Not a directory"
fresh
mkdir -m 500 spool
user=
if [ "$(id -u)" = 0 ]; then
	chown 65534 spool
	user='setpriv --reuid=65534 --regid=65534 --clear-groups'
fi
serve 503:retry=60 "$user \"\$SEND\" --to=put+http://@ADDRESS@/ a.pb.gz"
like "$status $(xargs <err)" "^4 countersink: $TMP/spool: Permission denied; what cannot be sent is not kept .*; it is not kept: $TMP/spool: Permission denied\$" \
	'a spool that is not writable: that is reported'
fresh
mkdir -m 700 spool
[ -z "$user" ] || chown 65534 spool
serve '503 200:all' "COUNTERSINK_SEND_TIMEOUT=0.001 $user \"\$SEND\" --to=put+http://@ADDRESS@/%n a.pb.gz; chmod 500 spool
	COUNTERSINK_SEND_TIMEOUT=100 $user timeout 60 \"\$SEND\" --to=put+http://@ADDRESS@/%n"
like "$status $(tail -n 2 err | head -n 1)" "^1 countersink: $TMP/spool/[0-9a-f.]*\.pb\.gz was sent, and cannot be removed: Permission denied; remove it, or it may be sent again\$" \
	'a spool from which nothing can be removed: that is reported'
like "$(paths) $(kept)" '^(/a.pb.gz ){1,2}1$' 'and the profile is sent once'
chmod 700 spool
fresh
serve '503:retry=3600 200' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz
	LD_PRELOAD=$SHIM SEND_SHIM=full "$SEND" --to=put+http://@ADDRESS@/%n b.pb.gz'
like "$status $(cat got/2.line) $(kept)" '^0 PUT /b.pb.gz HTTP/1.1 1$' 'a full disk: the profile is sent'
serve 503:retry=3600 'LD_PRELOAD=$SHIM SEND_SHIM=full "$SEND" --to=put+http://@ADDRESS@/ b.pb.gz'
like "$status $(cat err)" "^4 .*; it is not kept: $TMP/spool: No space left on device\$" 'a full disk: what cannot be sent is not kept, and that is reported'
is "$(find spool -name '*.todo' | wc -l) $(kept) $(find spool -name .new)" '1 1 ' 'a full disk: no part is left'

# ---- thousands for a server that never comes back ----
fresh
serve 503:retry=3600 './later 0 --to=put+http://@ADDRESS@/ a.pb.gz'
one=$(basename spool/*.todo .todo)
for i in $(seq 3000); do
	name=$(printf "%020d.%016x" "$i" "$i")
	ln "spool/$one.todo" "spool/$name.todo" && ln "spool/$one.pb.gz" "spool/$name.pb.gz"
done
serve 200 'ulimit -t 5; "$SEND" --to=put+http://@ADDRESS@/other/%n b.pb.gz'
is "$status $(paths) $(kept)" '0 /other/b.pb.gz 3001' 'what a spool has for another server takes little time: 3,001 in less than 5 s of the CPU'

# ---- a power failure ----
fresh
serve 503:retry=3600 'LD_PRELOAD=$SHIM SEND_SHIM_SYNC=syncs "$SEND" -q --to=pyroscope+http://@ADDRESS@/ a.pb.gz'
is "$status $(kept) $(sed -n 1,4p syncs | paste -sd,)" '4 1 sync new,sync todo,rename pb.gz,sync spool' \
	'a profile and what is to be done with it are on the disk before it has its name, and that is before it is sent'
is "$(sed -n 5p syncs)" 'sync todo' 'that a request is under way is on the disk, too, before it goes out'
fresh
serve 503:retry=3600 'LD_PRELOAD=$SHIM SEND_SHIM=nosync "$SEND" --to=put+http://@ADDRESS@/ a.pb.gz'
like "$status $(cat err)" "^4 .*; it is not kept: $TMP/spool: Input/output error\$" 'a disk that fails: what cannot be sent is not kept, and that is reported'
is "$(find spool -name '*.todo' | wc -l) $(kept) $(find spool -name .new)" '0 0 ' 'a disk that fails: no part is left'
serve 200 'LD_PRELOAD=$SHIM SEND_SHIM=nosync "$SEND" --to=put+http://@ADDRESS@/%n a.pb.gz'
is "$status $(paths)" '0 /a.pb.gz' 'a disk that fails: the profile is sent'
fresh
serve 503:retry=60 'XDG_STATE_HOME=$PWD/state COUNTERSINK_SPOOL= ./later 0 --to=put+http://@ADDRESS@/ a.pb.gz'
like "$(cat err)" "; it is kept in $TMP/state/countersink/spool\$" 'the default place is that of state'
serve 503:retry=60 'HOME=$PWD XDG_STATE_HOME= COUNTERSINK_SPOOL= ./later 0 --to=put+http://@ADDRESS@/ a.pb.gz'
like "$(cat err)" "; it is kept in $TMP/.local/state/countersink/spool\$" 'or below the home directory'

# ---- damage ----
damage() { # NAME COMMAND: changes $todo
	fresh
	serve '503:retry=60 200:all' "./later 0 --to=put+http://@ADDRESS@/%n a.pb.gz; todo=\$(echo spool/*.todo); $2; ./later 90 --to=put+http://@ADDRESS@/%n b.pb.gz"
	like "$status $(sed -n 2p err)" "^0 countersink: $TMP/spool/[0-9a-f.]*.pb.gz is not sent: its .todo is damaged or missing; it is in $TMP/spool/refused\$" \
		"a .todo $1 is reported"
	is "$(paths) $(kept) $(refused)" '/a.pb.gz /b.pb.gz 0 1' "a .todo $1: the profile is put aside, and the next one is sent"
}
# shellcheck disable=SC2016 # for sh -c
{
	damage 'that is cut' 'truncate -s 60 $todo'
	damage 'that is empty' ': >$todo'
	damage 'that is missing' 'rm $todo'
	damage 'with another number' 'sed -i "s/^tries 0/tries -/" $todo'
	damage 'with a time before 1970' 'sed -i "s/^next 0/next -/" $todo'
	damage 'with a NUL' 'printf "\0" >>$todo'
	damage 'with another line' 'echo more x >>$todo'
	damage 'that is large' 'truncate -s 10M $todo'
	damage 'that is a link' 'mv $todo elsewhere; ln -s ../elsewhere $todo'
	damage 'that is a FIFO' 'rm $todo; mkfifo $todo'
}
fresh
serve '503:retry=60 503 200:all' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz; sed -i "s/^tries .*/tries 4294967295/" spool/*.todo; ./later 90 --send-timeout=900 --to=put+http://@ADDRESS@/%n'
is "$status $(requests) $(kept)" '0 3 0' 'a .todo with as many tries as can be is sent'
fresh
serve '503:retry=60 200:all' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz; echo none >$(echo spool/*.pb.gz); ./later 90 --to=put+http://@ADDRESS@/%n b.pb.gz'
like "$status $(sed -n 2p err) $(kept) $(refused)" '^0 countersink: .* was not sent .*; it is in .*/refused 0 1$' 'a damaged profile is put aside'
fresh
serve '503:retry=60 200:all' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz; touch spool/other.pb.gz spool/00000000000000000001.0123456789abcdef.todo spool/.new
	./later 90 --to=put+http://@ADDRESS@/%n b.pb.gz'
is "$(find spool -type f ! -name '.*ing*')" spool/other.pb.gz 'files that are not of the spool are left alone, and those of a killed process removed'

# ---- several at once ----
fresh
serve '503:retry=1 200:then=go 200:all' './later 0 --send-timeout=0.5 --to=put+http://@ADDRESS@/%n a.pb.gz
	./later 400 --to=put+http://@ADDRESS@/%n b.pb.gz & ./later 400 --to=put+http://@ADDRESS@/%n c.pb.gz &
	until [ $(ls spool/*.pb.gz | wc -l) = 3 ] && [ -e got/2.line ]; do sleep 0.02; done
	touch go; wait'
is "$(paths | tr ' ' '\n' | sort | xargs) $(kept)" '/a.pb.gz /a.pb.gz /b.pb.gz /c.pb.gz 0' 'two at once send each profile once'
like "$(grep -c 'b.pb.gz was sent' err) $(grep -c 'c.pb.gz was sent' err)" '^1 1$' 'each reports its own'
rm -f go
fresh
serve '200:then=go 200 200:then=more' '"$SEND" --to=put+http://@ADDRESS@/%n a.pb.gz & until [ -e got/1.line ]; do sleep 0.02; done
	timeout 100 "$SEND" --send-timeout=100000 --to=put+http://@ADDRESS@/%n b.pb.gz & second=$!
	until [ $(ls spool/*.pb.gz | wc -l) = 2 ]; do sleep 0.02; done
	"$SEND" --to=put+http://@ADDRESS@/%n c.pb.gz & until [ $(ls spool/*.pb.gz | wc -l) = 3 ]; do sleep 0.02; done
	touch go; wait $second; echo $?; touch more; wait'
is "$(cat stdout) $(paths) $(grep -c 'by another countersink-send' err)" '0 /a.pb.gz /b.pb.gz /c.pb.gz 2' 'a process whose profile another one has sent waits no longer'
rm -f go
fresh
serve 200:then=go '"$SEND" --to=put+http://@ADDRESS@/%n a.pb.gz 2>first & until [ -e got/1.line ]; do sleep 0.02; done
	"$SEND" --send-timeout=0.2 --to=put+http://@ADDRESS@/%n b.pb.gz; echo $? >second; touch go; wait'
like "$(cat second) $(cat err)" "^4 countersink: b.pb.gz was not sent to .*: another countersink-send is sending from the spool; it is kept in" \
	'what another process does not leave time for is kept'
rm -f go

# ---- killed at any moment ----
# After each call that changes a file, sends or receives: the profile was sent, is in the spool, in doubt there, or not yet added.
killed() { # KIND: to a server of that kind; the N-th process sends to a path of its own
	serve 200:all "nr=0 status=137
	while [ \$status = 137 ]; do
		nr=\$((nr + 1))
		rm -rf spool; mkdir -m 700 spool
		LD_PRELOAD=\$SHIM SEND_SHIM_KILL=\$nr \"\$SEND\" -q --to=$1+http://@ADDRESS@/\$nr/ a.pb.gz 2>/dev/null
		status=\$?
		\"\$SEND\" -q --to=$1+http://@ADDRESS@/\$nr/ 2>/dev/null
		echo \$nr \$status \$(ls spool/*.pb.gz spool/*.todo 2>/dev/null | wc -l) \$(ls spool/refused/*.pb.gz 2>/dev/null | wc -l)
	done"
	# Status, requests, left in the spool, in doubt: each combination once.
	while read -r nr state left doubt; do
		echo "$state $(cat got/*.line | grep -c " /$nr/") $left $doubt"
	done <stdout >runs
	sort -u runs
}
killed put >put
is "$(tail -n 1 runs)" '0 1 0 0' 'killed: without it, a profile is sent once'
is "$(grep -c '^137 1 0 0$' put) $(grep -c '^137 2 0 0$' put)" '1 1' 'killed: put: what is in the spool is sent, and once more where the server may have it'
is "$(grep -v '^[0-9]* [012] 0 0$' put)" '' 'killed: put: no file is left'
killed pyroscope >pyroscope
is "$(grep -c '^137 1 0 0$' pyroscope) $(grep -c '^137 2 ' pyroscope)" '1 0' 'killed: Pyroscope: what is in the spool is sent, and nothing twice'
is "$(grep -v '^[0-9]* [01] 0 [01]$' pyroscope)" '' 'killed: Pyroscope: what the server may have is put aside'
fresh
serve gone 'LD_PRELOAD=$SHIM SEND_SHIM=clock "$SEND" --to=pyroscope+http://@ADDRESS@ a.pb.gz'
like "$status $(refused) $(cat err)" '^3 1 .*\(the server may have the profile all the same\); it is in .*/refused$' 'Pyroscope: so is one whose connection was lost'

# ---- run --send ----
fresh
"$SRC/tests/send/server.py" 503:retry=3600 200:all -- sh -c '"$COUNTERSINK" run -q -o run.pb.gz --send=put+http://@ADDRESS@/%n -- true
	rm run.pb.gz; sed -i "s/^next .*/next 00000000000000000000/" spool/*.todo
	"$COUNTERSINK" run -q -o run2.pb.gz --send=put+http://@ADDRESS@/%n -- true' 2>err
is "$? $(paths) $(kept)" '0 /run.pb.gz /run.pb.gz /run2.pb.gz 0' 'run --send: the next run sends what was kept'
rm -rf named
"$SRC/tests/send/server.py" 503:retry=60 -- "$COUNTERSINK" run -q -o run.pb.gz --spool=named --spool-bytes=1M --send=put+http://@ADDRESS@/ -- true 2>err
is "$(find named -name '*.pb.gz' | wc -l)" 1 'run --spool: it is kept there'
"$SRC/tests/send/server.py" 503:retry=60 -- "$COUNTERSINK" run -q -o run.pb.gz --spool=no --send=put+http://@ADDRESS@/ -- true 2>err
is "$(grep -c kept err) $(kept)" '0 0' 'run --spool=no: it is not kept'

# ---- countersink send ----
fresh
serve '503:retry=60 200:all' './later 0 --to=put+http://@ADDRESS@/%n a.pb.gz
	LD_PRELOAD=$SHIM SEND_SHIM=clock SEND_SHIM_AHEAD=90 "$COUNTERSINK" send -q --spool="$COUNTERSINK_SPOOL" --to=put+http://@ADDRESS@/%n b.pb.gz'
is "$status $(paths) $(kept) $(wc -l <err)" '0 /a.pb.gz /a.pb.gz /b.pb.gz 0 1' 'countersink send is countersink-send, with its options'
serve 422 '"$COUNTERSINK" send --to=put+http://@ADDRESS@/ -- a.pb.gz'
is "$status" 3 'countersink send: so is its status'
"$COUNTERSINK" send --to=put+http://x --spool-bytes=x a.pb.gz 2>err
like "$? $(cat err)" '^2 countersink: .*spool-bytes' 'countersink send: a wrong option is refused'

# ---- by the environment alone: the process that makes the profile at the end sends it ----
fresh
alone() { # "ANSWER..." [VARIABLE=VALUE]...: burn, by LD_PRELOAD; in the same run a second time
	answers=$1
	shift
	serve "$answers" "for nr in 1 2; do
		env LD_PRELOAD=\"$LIB\" COUNTERSINK_OUTPUT=\"\$PWD/alone\$nr.pb.gz\" COUNTERSINK_SEND=put+http://@ADDRESS@/%n $* \"$TARGETS/burn\" 30
	done"
}
alone 200:all
"$TARGETS/burn" 30 >plain
is "$status $(cat stdout) $(cat err)" "0 $(cat plain plain) " 'by the environment: the program is as without it'
is "$(paths)" '/alone1.pb.gz /alone2.pb.gz' 'by the environment: each profile is sent'
ok 'by the environment: as it is in its file' cmp got/2.body alone2.pb.gz
alone '503:retry=3600 200:all'
is "$status $(cat stdout) $(grep -c 'it is kept in' err) $(kept)" "0 $(cat plain plain) 2 2" 'by the environment: what cannot be sent is kept, and the status stays'
fresh
alone 200:all COUNTERSINK_SEND=none
like "$status $(sed -n 1p err)" '^0 countersink: nothing was sent: no kind of server that is known' 'by the environment: an address that is none is reported'
ok 'by the environment: then the profile is in its file' "$COUNTERSINK" report alone2.pb.gz

# ---- killed runs ----
cat >dies <<'END'
#!/bin/sh
# dies PLACE NAME: a program is killed once it has samples
env LD_PRELOAD="$LIB" COUNTERSINK_PLACE="$1" COUNTERSINK_OUTPUT="$PWD/$2.pb.gz" "$TARGETS/burn" 60000 >/dev/null &
until "$COUNTERSINK" report "$1"/countersink-* 2>/dev/null | grep -q burn; do
	kill -0 $! || exit 1
done
kill -KILL $!
wait
END
chmod +x dies
export LIB TARGETS
mkdir place
fresh
serve 200:all './dies "$PWD/place" dead1
	export COUNTERSINK_SEND=put+http://@ADDRESS@/%n
	"$COUNTERSINK" salvage -q place
	COUNTERSINK_SEND= ./dies "$PWD/place" dead2
	LD_PRELOAD=$LIB COUNTERSINK_PLACE=$PWD/place COUNTERSINK_OUTPUT=$PWD/next.pb.gz "$TARGETS/burn" 30 >/dev/null
	timeout 60 sh -c "until [ -e got/3.line ]; do :; done"'
is "$status $(paths | sed 's/killed-[^ ]*/killed/g' | tr ' ' '\n' | sort | xargs)" '0 /dead1.killed /dead2.killed /next.pb.gz' \
	'profiles of killed runs are sent by salvage, and by what the next program starts for it'
ok 'as they are in their files' cmp got/1.body dead1.killed-*.pb.gz

settings() { # VARIABLE=VALUE...: where the settings of a report come from
	env COUNTERSINK_DEBUGINFOD=1 COUNTERSINK_ALL=1 "$@" "$COUNTERSINK" report --print-config | grep -c environment
}
is "$(settings) $(settings COUNTERSINK_RUN_ENDED=1)" '2 0' "by the environment: the library's variables are not that process's"
done_testing
