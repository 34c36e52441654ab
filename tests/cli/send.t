#!/bin/sh
# countersink-send and `run --send`: requests as each kind of server takes them, failures of a server on loopback that fails on
# purpose (tests/send/server.py), secrets. The profiles that arrive are judged by the rules of wire.t.
. "$(dirname "$0")/lib.sh"

SEND=$BUILD/bin/countersink-send
[ -x "$SEND" ] || skip_all "countersink-send is not built: the headers of libcurl are not here"
RULES=$SRC/tests/send/pprof_rules.py
OTLP=$SRC/tests/send/otlp_rules.py
for variable in $(env | sed -n 's/^\(PYROSCOPE_[A-Z_]*\|OTEL_[A-Z_]*\|AWS_[A-Z_]*\|[a-zA-Z_]*_proxy\|[A-Z]*_PROXY\)=.*/\1/p'); do
	unset "$variable"
done
# On a busy machine, too, the tries that are expected to succeed have time.
COUNTERSINK_SEND_TIMEOUT=60
# Spools have tests of their own: spool.t.
COUNTERSINK_SPOOL=no
export COUNTERSINK_SEND_TIMEOUT COUNTERSINK_SPOOL

"$COUNTERSINK" -q -o burn.pb.gz -- "$TARGETS/burn" 60 >/dev/null 2>&1
accepted=$(printf '%s: accepted\n' PYROSCOPE PARCA)

# serve "ANSWER..." ARGUMENT...: countersink-send against a server with these answers; status, stdout and err, and got/.
serve() {
	answers=$1
	shift
	# shellcheck disable=SC2086 # a word each
	"$SRC/tests/send/server.py" $answers -- "$SEND" "$@" >stdout 2>err
	status=$?
}

requests() {
	find got -name '*.line' | wc -l
}

# ---- the command line ----
refused() { # NAME PATTERN ARGUMENT...
	name=$1 pattern=$2
	shift 2
	"$SEND" "$@" >stdout 2>err
	is "$? $(wc -l <err) $(cat stdout)" '2 1 ' "$name is refused in one line"
	like "$(cat err)" "$pattern" "$name: the reason is reported"
}
refused 'no server' 'no server given' burn.pb.gz
refused 'no profile' 'no profile given' --to=put+http://x
refused 'another kind' 'KIND is pyroscope, parca, otlp, put or s3' --to=ftp+http://x burn.pb.gz
refused 'a URL without a kind' 'KIND is pyroscope, parca, otlp, put or s3' --to=http://x burn.pb.gz
refused 'another scheme' 'no http:// or https://' --to=put+file:///etc/passwd burn.pb.gz
refused 'no host' 'no http:// or https:// with a host' --to=put+http:///x burn.pb.gz
for host in x:0 x:65536 x:y x:1y x,y '[::1' '[]' '[::1]x' x%y; do
	refused "$host" 'no host, or no port of 1 to 65535' --to="put+http://$host/" burn.pb.gz
done
refused 'a fragment' 'has a fragment' --to=put+http://x/y#z burn.pb.gz
OTEL_EXPORTER_OTLP_ENDPOINT=http://x:y
export OTEL_EXPORTER_OTLP_ENDPOINT
refused 'an address of a variable that has no port' '^countersink: nothing was sent: OTEL_EXPORTER_OTLP_ENDPOINT: no host, or no port' --to=otlp burn.pb.gz
unset OTEL_EXPORTER_OTLP_ENDPOINT
refused 'a blank' 'has a blank' --to='put+http://x/a b' burn.pb.gz
refused 'a password in the URL' 'has a user or password' --to=put+http://user:hunter2@x/ burn.pb.gz
unlike "$(cat err)" hunter2 'a password in the URL is not repeated'
refused 'pyroscope without an address' 'PYROSCOPE_SERVER_ADDRESS' --to=pyroscope burn.pb.gz
refused 'otlp without an address' 'OTEL_EXPORTER_OTLP_ENDPOINT' --to=otlp burn.pb.gz
refused 's3 without a key' 'AWS_ACCESS_KEY_ID' --to=s3+https://x/bucket/key burn.pb.gz
refused 'parca without an address' 'no address behind the kind' --to=parca burn.pb.gz
echo 'no header' >bad.headers
refused 'a file without headers' 'bad.headers, line 1: no header' --to=put+http://x --send-headers=bad.headers burn.pb.gz
awk 'BEGIN { while (i++ < 7000) print "X-A: bcdef" }' >bad.headers
refused 'a large file of headers' 'bad.headers: it is larger than 65536 bytes' --to=put+http://x --send-headers=bad.headers burn.pb.gz
printf 'X-A: b\001c\n' >bad.headers
refused 'a control character in a header' 'bad.headers, line 1: no header' --to=put+http://x --send-headers=bad.headers burn.pb.gz
refused 'a directory in place of headers' '^countersink: nothing was sent: /: Is a directory$' --to=put+http://x --send-headers=/ burn.pb.gz
refused 'a missing file of headers' 'none: No such file' --to=put+http://x --send-headers=none burn.pb.gz
"$SEND" --help >help
like "$(cat help)" '1.10 to' 'the help has the version of OTLP'
is "$(awk 'length > 80' help)" '' 'the help fits 80 columns'

# ---- the kinds ----
serve 200 --to=pyroscope+http://@ADDRESS@ burn.pb.gz
is "$status $(cat stdout)" '0 ' 'Pyroscope: a profile is sent'
like "$(cat err)" '^countersink: burn.pb.gz was sent to Pyroscope at http://127.0.0.1:[0-9]+: [0-9]+ bytes$' 'Pyroscope: that is reported'
like "$(cat got/1.line)" '^POST /ingest\?name=burn%7B%7D&from=[0-9]{10}&until=[0-9]{10}&format=pprof&spyName=countersink HTTP/1.1$' \
	'Pyroscope: name, times and format are in the address'
is "$(python3 "$RULES" got/1.body)" "$accepted" 'Pyroscope: the profile is in its wire form'
unlike "$(cat got/1.headers)" '^Expect' 'no confirmation is waited for'
PYROSCOPE_APPLICATION_NAME='my-app/v1.0' PYROSCOPE_LABELS=zone=a,x=1 PYROSCOPE_TENANT_ID=me PYROSCOPE_SERVER_ADDRESS=http://@ADDRESS@/base/ \
	PYROSCOPE_HTTP_HEADERS='{"X-One": "1"}' serve 200 --to=pyroscope -q burn.pb.gz
is "$status $(cat err)" '0 ' 'Pyroscope: the variables are enough; -q prints nothing'
like "$(cat got/1.line)" '^POST /base/ingest\?name=my-app%2Fv1.0%7Bzone%3Da%2Cx%3D1%7D&' 'Pyroscope: the variables have path, name and labels'
is "$(grep -E '^X-' got/1.headers | sort | xargs)" 'X-One: 1 X-Scope-OrgID: me' 'Pyroscope: the variables have tenant and headers'
serve 200 --to=pyroscope+http://@ADDRESS@ --service="$(printf 'my {app}: caf\303\251')" burn.pb.gz
like "$(cat got/1.line)" '^POST /ingest\?name=my__app___caf__%7B%7D&' 'Pyroscope: what it refuses in a name is replaced'
refused 'a service whose name is not UTF-8' '^countersink: nothing was sent: --service: the name is not UTF-8$' \
	--to=put+http://x --service="$(printf 'caf\351')" burn.pb.gz
OTEL_SERVICE_NAME=$(printf 'caf\351')
export OTEL_SERVICE_NAME
refused 'a variable of a name that is not UTF-8' 'OTEL_SERVICE_NAME: the name is not UTF-8' --to=otlp+http://x burn.pb.gz
unset OTEL_SERVICE_NAME
PYROSCOPE_APPLICATION_NAME=other OTEL_EXPORTER_OTLP_HEADERS=X-Otel=1 serve 200 --to=put+http://@ADDRESS@/x burn.pb.gz
unlike "$(cat got/1.line got/1.headers)" 'other|X-Otel' 'variables of another kind of server count for nothing'

serve 200 --to=pyroscope+http://@ADDRESS@/base/?zone=a burn.pb.gz
like "$(cat got/1.line)" '^POST /base/ingest\?zone=a&name=burn%7B%7D&from=' 'Pyroscope: a query in the address is kept'
serve 200 --to=parca+http://@ADDRESS@ burn.pb.gz
is "$status $(sed 's/ HTTP.*//' got/1.line)" '0 POST /api/profiles/writeraw' 'Parca: a profile is sent'
python3 - <<'END' >series
import base64, json
series, = json.load(open('got/1.body'))['series']
print({label['name']: label['value'] for label in series['labels']['labels']})
open('raw.pb.gz', 'wb').write(base64.b64decode(series['samples'][0]['rawProfile'], validate=True))
END
is "$(cat series)" "{'__name__': 'process_cpu', 'service_name': 'burn'}" 'Parca: the series has a name and the service'
is "$(python3 "$RULES" raw.pb.gz)" "$accepted" 'Parca: the profile is in its wire form'

serve 200 --to=otlp+http://@ADDRESS@ burn.pb.gz
is "$status $(sed 's/ HTTP.*//' got/1.line)" '0 POST /v1development/profiles' 'OTLP: a profile is sent'
like "$(cat got/1.headers)" '^Content-Type: application/x-protobuf$' 'OTLP: the type of the body is given'
is "$(python3 "$OTLP" got/1.body)" accepted 'OTLP: the strict reader accepts the request'
serve 200 --to=otlp+http://@ADDRESS@/v1development/profiles?zone=a burn.pb.gz
is "$status $(sed 's/ HTTP.*//' got/1.line)" '0 POST /v1development/profiles?zone=a' 'OTLP: a query in the address is kept, behind the path'
OTEL_EXPORTER_OTLP_ENDPOINT=http://@ADDRESS@/col OTEL_EXPORTER_OTLP_HEADERS='x-a=1%202,x-b=c' OTEL_EXPORTER_OTLP_COMPRESSION=gzip \
	OTEL_SERVICE_NAME=shop OTEL_RESOURCE_ATTRIBUTES='service.name=no,zone=a%2Cb' serve 200 --to=otlp burn.pb.gz
is "$status $(sed 's/ HTTP.*//' got/1.line)" '0 POST /col/v1development/profiles' 'OTLP: the path stands behind the general endpoint'
is "$(grep -E '^(x-|Content-Enc)' got/1.headers | sort | xargs)" 'Content-Encoding: gzip x-a: 1 2 x-b: c' 'OTLP: the variables have headers'
gzip -dc <got/1.body >body
is "$(python3 "$OTLP" body) $(python3 "$OTLP" --show body | grep -E '^(service.name|zone)' | xargs)" 'accepted zone a,b service.name shop' \
	'OTLP: the variables have service and resource'
OTEL_RESOURCE_ATTRIBUTES="zone=first, zone = b%20c ,%3D%ff=x,=y,word,deployment%2Ename=p=q%2C,$(printf '\377')=z,service.name=,service%2Ename=a" \
	serve 200 --to=otlp+http://@ADDRESS@ burn.pb.gz
is "$(python3 "$OTLP" got/1.body) $(python3 "$OTLP" --show got/1.body | sed '/^cpu/,$d')" "accepted $(
	printf '%s\n' 'zone b c' '=\xff x' 'deployment.name p=q,' '\xff z' 'service.name a')" \
	'OTLP: attributes of the resource are decoded, without blanks, and the last of a key counts'
OTEL_RESOURCE_ATTRIBUTES=service.name=a,service.name=,x=y serve 200 --to=otlp+http://@ADDRESS@ burn.pb.gz
is "$(python3 "$OTLP" --show got/1.body | sed '/^cpu/,$d' | xargs)" 'x y service.name burn' 'OTLP: an empty name of the service is none'
OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://@ADDRESS@/own OTEL_EXPORTER_OTLP_ENDPOINT=http://x serve 200 --to=otlp --otlp=1.9 burn.pb.gz
is "$status $(sed 's/ HTTP.*//' got/1.line)" '0 POST /own' 'OTLP: the endpoint of profiles is taken as it is'
is "$(python3 "$OTLP" --1.9 got/1.body)" accepted 'OTLP: --otlp=1.9 sends by the older numbers'
# ExportProfilesServiceResponse: {partial_success: {rejected_profiles: 1, error_message: "why"}}
serve 200:bytes=0a0708011203776879 --to=otlp+http://@ADDRESS@ burn.pb.gz
like "$status $(cat err)" '^3 .*1 profiles were rejected: why$' 'OTLP: a partial success is a refusal with its reason'
# Likewise, with a message of 9,000 bytes, and then with one of a secret on whose place a message is cut.
partial() { # MESSAGE: in hexadecimal digits
	python3 -c '
import sys
def field(nr, data):
    size = len(data)
    return bytes([nr << 3 | 2]) + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + data
print(field(1, b"\x08\x02" + field(2, sys.argv[1].encode())).hex())' "$1"
}
long=$(printf 'why%08997d' 0)
serve "200:bytes=$(partial "$long")" --to=otlp+http://@ADDRESS@ burn.pb.gz
like "$status $(cat err)" '^3 .*2 profiles were rejected: why0+$' 'OTLP: so it is in a long answer'

serve 200 --to=put+http://@ADDRESS@/dir/%h/%t-%n burn.pb.gz
like "$(cat got/1.line)" "^PUT /dir/$(uname -n)/[0-9]{8}T[0-9]{6}Z-burn.pb.gz HTTP" 'put: host, time and name are in the address'
ok 'put: the file is sent as it is' cmp got/1.body burn.pb.gz
serve 200 --to=put+http://@ADDRESS@/dir/ burn.pb.gz
like "$(cat got/1.line)" '^PUT /dir/burn.pb.gz HTTP' 'put: an address that ends in / gets the name'
serve 200 --to='put+http://@ADDRESS@/dir/?key=/' burn.pb.gz
like "$(cat got/1.line)" '^PUT /dir/burn.pb.gz\?key=/ HTTP' 'put: so does a path before a query'

# ---- failures ----
serve '503:retry=1:say=busy 429 200' --to=pyroscope+http://@ADDRESS@ burn.pb.gz
is "$status $(requests)" '0 3' '503 with Retry-After and 429 are tried again'
serve '503:date=1 200' --to=pyroscope+http://@ADDRESS@ burn.pb.gz
is "$status $(requests)" '0 2' 'a Retry-After may be a date'
serve '503:retry=3600:say=busy' --to=pyroscope+http://@ADDRESS@ burn.pb.gz
like "$status $(requests) $(cat err)" '^4 1 .*503 Service Unavailable: busy \(1 try; --send-timeout\)$' 'a Retry-After beyond the time ends the tries'
serve '422:say=profile+is+too+old' --to=pyroscope+http://@ADDRESS@ burn.pb.gz
like "$status $(requests) $(cat err)" '^3 1 countersink: burn.pb.gz was not sent to .*: 422 Unprocessable Entity: profile\+is\+too\+old$' \
	"a refusal is not tried again, and has the server's words"
serve '302:to=http%3A//127.0.0.1/' --to=put+http://@ADDRESS@/x burn.pb.gz
like "$status $(requests) $(cat err)" '^3 1 .*302 .*redirections are not followed' 'a redirection is not followed'
serve silent --to=put+http://@ADDRESS@/x --send-timeout=1 burn.pb.gz
like "$status $(cat err)" '^4 .*timed out.*\(1 try;' 'a server that never answers ends with the time'
serve 'gone 200' --to=put+http://@ADDRESS@/x burn.pb.gz
is "$status $(requests)" '0 2' 'put: a connection without an answer is tried again'
serve 'half 200' --to=otlp+http://@ADDRESS@ burn.pb.gz
is "$status $(requests)" '0 2' 'OTLP: a connection that ends in the body is tried again'
serve 'gone 200' --to=pyroscope+http://@ADDRESS@ burn.pb.gz
like "$status $(requests) $(cat err)" '^3 1 .*may have the profile all the same' 'Pyroscope, which adds up what comes twice: it is not'
cp burn.pb.gz first.pb.gz
serve '200:keep gone 200' --to=pyroscope+http://@ADDRESS@ first.pb.gz burn.pb.gz
like "$status $(requests) $(tail -n 1 err)" '^3 2 .*burn.pb.gz was not sent .*may have the profile all the same' \
	'Pyroscope: nor is one on a connection that was used before, by libcurl'
serve '200:keep gone 200' --to=put+http://@ADDRESS@/ first.pb.gz burn.pb.gz
is "$status $(requests)" '0 3' 'put: a connection that was used before and ends is tried again'
LD_PRELOAD=$TARGETS/send_shim.so SEND_SHIM=memory serve '200:keep 200' --to=put+http://@ADDRESS@/ first.pb.gz burn.pb.gz
like "$status $(requests) $(tail -n 1 err)" '^3 1 countersink: burn.pb.gz was not sent .*: Out of memory$' \
	'a request that libcurl does not begin has not the status of the one before'
serve 200:cut --to=pyroscope+http://@ADDRESS@ burn.pb.gz
is "$status $(requests)" '0 1' 'an answer that is cut off behind its status is an answer'
serve 503:cut:retry=3600 --to=put+http://@ADDRESS@/x burn.pb.gz
like "$status $(cat err)" '^4 .*503 Service Unavailable: x' 'a refusal that is cut off is one'
serve --closed --to=put+http://@ADDRESS@/x --send-timeout=0.3 burn.pb.gz
like "$status $(cat err)" '^4 countersink: burn.pb.gz was not sent to the server at http://127.0.0.1:[0-9]+: .*(tr(y|ies); --send-timeout)' \
	'a server that is not there is tried until the time is over'
LD_PRELOAD=$TARGETS/send_shim.so SEND_SHIM=names timeout 60 "$SEND" --to=put+http://server.invalid/x --send-timeout=0.3 burn.pb.gz 2>err
like "$? $(cat err)" '^4 .*was not sent .*timed out' 'a look-up of a name that never ends is left with the time'
serve 200 --to=put+http://@ADDRESS@/ none.pb.gz burn.pb.gz
like "$status $(requests) $(cat err)" '^1 1 countersink: none.pb.gz: No such file.*it was not sent' 'a file that cannot be read stops no other'
head -c 40 burn.pb.gz >cut.pb.gz
serve 200 --to=put+http://@ADDRESS@/ cut.pb.gz
like "$status $(requests) $(cat err)" '^1 0 .*cut.pb.gz: .*it was not sent' 'a file that is no profile is not sent'
mkfifo fifo
timeout 60 "$SEND" --to=put+http://127.0.0.1/x fifo 2>err
is "$? $(cat err)" '1 countersink: fifo: not a regular file; it was not sent' 'a FIFO is refused'
serve "422:say=$(printf 'a\033[31mb')" --to=put+http://@ADDRESS@/ burn.pb.gz
like "$(cat err)" 'a\\x1b\[31mb' "a server's words are escaped for the terminal"
head -c 5000000 /dev/zero | tr '\0' w >long
serve 422:file=long --to=pyroscope+http://@ADDRESS@/ burn.pb.gz
like "$status $(requests) $(cat err)" '^3 1 .*: 422 Unprocessable Entity: w*\.\.\.$' 'of an answer of 5 MB the beginning is shown'
serve 200:file=long --to=pyroscope+http://@ADDRESS@/ burn.pb.gz
is "$status $(requests)" '0 1' 'an answer of 5 MB with a good status is one'

# ---- too large for one request ----
# In the order of PIDs the first of four has an eighth of the time: it is in the first half, also where the shell is slow.
"$COUNTERSINK" -q -o jobs.pb.gz -- sh -c '"$1" 30 & "$1" 60; "$1" 60; "$1" 60; wait' sh "$TARGETS/burn" >/dev/null 2>&1
serve '413:say=large 200 200' --to=pyroscope+http://@ADDRESS@ --labels=pid,process jobs.pb.gz
like "$status $(requests) $(cat err)" '^0 3 countersink: jobs.pb.gz was sent to Pyroscope at [^ ]*: [0-9]+ bytes in 2 parts, since it is too large for one request there$' \
	'413: the halves are sent, and that is reported'
for half in 1 2 3; do
	cp got/$half.body half$half.pb.gz
done
"$COUNTERSINK" merge -o halves.pb.gz half2.pb.gz half3.pb.gz 2>/dev/null
is "$("$COUNTERSINK" export -f folded halves.pb.gz | sort)" "$("$COUNTERSINK" export -f folded half1.pb.gz | sort)" '413: the halves are the whole'
processes() {
	"$COUNTERSINK" report --by process --json "$1" | sed -n 's/.*"name": "burn \([0-9]*\)".*/\1/p' | sort
}
processes half1.pb.gz >whole
processes half2.pb.gz >first
processes half3.pb.gz >second
ok '413: each half has some of the processes' test -s first -a -s second
is "$(sort first second)" "$(cat whole)" '413: no process is in both halves'
serve '413 200 413 200 200' --to=otlp+http://@ADDRESS@ burn.pb.gz
like "$status $(requests) $(cat err)" '^0 5 .* in 3 parts, ' '413: a half of one process is halved again, by samples'
is "$(for nr in 2 4 5; do python3 "$OTLP" got/$nr.body; done | xargs)" 'accepted accepted accepted' '413: each part is a request of its own'
serve '413 413 413 413 413 413 413 413 413 200' --to=parca+http://@ADDRESS@ jobs.pb.gz
like "$status $(requests) $(cat err)" '^3 [3-9] countersink: jobs.pb.gz was not sent .*: 413 Other \((its 256th parts are too large, too|that part is one sample)\)$' \
	'413: there is an end to it'
serve '413 200 422:say=no' --to=pyroscope+http://@ADDRESS@ burn.pb.gz
like "$status $(requests) $(cat err)" '^3 3 .*was not sent to [^ ]* at [^ ]* but for 1 parts?: 422 Unprocessable Entity: no$' \
	'413: of a half that is refused, it is reported that the other one was sent'
serve '413 200 503:retry=3600' --to=pyroscope+http://@ADDRESS@ burn.pb.gz
like "$status $(cat err)" '^4 .* but for 1 part: 503 ' '413: so it is of one that is not taken in time'
serve 413 --to=put+http://@ADDRESS@/ burn.pb.gz
like "$status $(requests) $(cat err)" '^3 1 .*: 413 Other \(a file is put as a whole, or not at all\)$' 'put: 413 is a refusal'

# ---- as it may be started ----
# Standard streams that are closed: what is printed after the first file must not land in the connection that is kept for the second.
serve '200:keep 200:keep' --to=put+http://@ADDRESS@/ first.pb.gz burn.pb.gz
is "$(cat got/1.line got/2.line)" "$(printf 'PUT /%s HTTP/1.1\n' first.pb.gz burn.pb.gz)" 'put: two files'
"$SRC/tests/send/server.py" 200:keep 200:keep -- sh -c 'exec "$@" <&- >&- 2>&-' sh "$SEND" --to=put+http://@ADDRESS@/ first.pb.gz burn.pb.gz
is "$? $(cat got/1.line got/2.line)" "0 $(printf 'PUT /%s HTTP/1.1\n' first.pb.gz burn.pb.gz)" \
	'with closed standard streams no message is in a request'
# A limit on the size of files, by which the form for the server is no file.
limit() { # ULIMIT-OPTIONS: the status is printed, too
	"$SRC/tests/send/server.py" 200 -- sh -c 'options=$1; shift; (ulimit $options 0; "$@"; echo "status $?") 2>&1 | cat >&2' sh "$1" \
		"$SEND" --to=pyroscope+http://@ADDRESS@ burn.pb.gz 2>err
}
limit '-S -f'
like "$(xargs <err) $(requests)" 'burn.pb.gz was sent to .* status 0 1$' 'a soft limit on the size of files changes nothing'
limit -f
like "$(xargs <err) $(requests)" '^countersink: burn.pb.gz: files are limited to 0 bytes \(RLIMIT_FSIZE, .*; it was not sent status 1 0$' \
	'a hard limit on the size of files is an error'

# ---- TLS, a proxy ----
make_tls() { # an authority of its own, and a certificate for 127.0.0.1
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=own-ca -keyout ca.key -out ca.pem &&
		openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr &&
		echo subjectAltName=IP:127.0.0.1 >san &&
		openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.pem
}
ok 'an authority and a certificate are made' make_tls
serve '--tls server.pem server.key 200' --to=put+https://@ADDRESS@/x --send-ca=ca.pem burn.pb.gz
is "$status $(requests)" '0 1' 'https with an authority of its own'
serve '--tls server.pem server.key 200' --to=put+https://@ADDRESS@/x burn.pb.gz
like "$status $(requests) $(cat err)" '^3 0 .*certificate' 'an authority that is not known is refused'
OTEL_EXPORTER_OTLP_CERTIFICATE=ca.pem serve '--tls server.pem server.key 200' --to=otlp+https://@ADDRESS@ burn.pb.gz
is "$status $(requests)" '0 1' 'OTLP: the authority may be in its variable'
signed() { # ARGUMENT...: sent to a store, with a key
	AWS_ACCESS_KEY_ID=AKEY AWS_SECRET_ACCESS_KEY=sEcReT0123 AWS_REGION=eu-west-3 AWS_SESSION_TOKEN=token0123 \
		serve "--tls server.pem server.key $1" --send-ca=ca.pem "$2" burn.pb.gz
}
signed 200 --to=s3+https://@ADDRESS@/bucket/%n
is "$status $(sed 's/ HTTP.*//' got/1.line)" '0 PUT /bucket/burn.pb.gz' 's3: the file is put'
ok 's3: the file is sent as it is' cmp got/1.body burn.pb.gz
is "$(python3 "$SRC/tests/send/sigv4.py" got/1 sEcReT0123 eu-west-3)" valid 's3: the request is signed by version 4'
is "$(python3 "$SRC/tests/send/sigv4.py" got/1 sEcReT0124 eu-west-3)" 'another signature' 's3: another key signs otherwise'
unlike "$(cat got/1.headers)" sEcReT0123 's3: the key is not sent'
like "$(cat got/1.headers)" '^X-Amz-Security-Token: token0123$' 's3: the token of a session is sent'
signed 403:say=sEcReT0123-token0123 --to=s3+https://@ADDRESS@/bucket/x
like "$status $(cat err)" '^3 .*403 .*: \*+-\*+$' 's3: neither is in a message'
LD_PRELOAD=$TARGETS/send_shim.so SEND_SHIM=options signed 200 --to=s3+https://@ADDRESS@/bucket/x
like "$status $(requests) $(cat err)" '^1 0 countersink: nothing was sent: libcurl [0-9.]+ does not take CURLOPT_AWS_SIGV4, which signs requests to s3: ' \
	's3: a libcurl that cannot sign is reported, and sends nothing'
signed 200 --to=s3+http://@ADDRESS@/bucket/x
like "$status $(cat err)" '^2 .*give s3\+https://' 's3 without TLS is refused'
http_proxy=http://@ADDRESS@ serve 200 --to=put+http://server.invalid/x burn.pb.gz
is "$status $(sed 's/ HTTP.*//' got/1.line)" '0 PUT http://server.invalid/x' 'a proxy is used as its variable says'
https_proxy=http://@ADDRESS@ serve '503 gone 403' --to=pyroscope+https://server.invalid burn.pb.gz
like "$status $(requests) $(cat err)" '^3 3 .*: [^(]*403[^(]*$' \
	'Pyroscope: what a proxy does not let through was not delivered: it is tried again, until the proxy refuses it'
serve '--tls server.pem server.key shut 200' --to=pyroscope+https://@ADDRESS@ --send-ca=ca.pem burn.pb.gz
is "$status $(requests)" '0 1' 'Pyroscope: a connection that ends in the handshake of TLS is tried again'

# ---- secrets ----
echo 'hunter2 topsecret' >secrets
serve 200 --to=put+http://@ADDRESS@/hunter2 burn.pb.gz
like "$(cat got/1.leaks)" 'countersink-send.*hunter2' 'a secret in a command line would be found'
echo 'Authorization: Bearer topsecret' >headers
PYROSCOPE_BASIC_AUTH_USER=me PYROSCOPE_BASIC_AUTH_PASSWORD=hunter2 serve 401:say=not+hunter2 --to=pyroscope+http://@ADDRESS@ burn.pb.gz
like "$(cat got/1.headers)" "^Authorization: Basic $(printf me:hunter2 | base64)\$" 'user and password come from variables'
like "$status $(cat err)" '^3 .*401 Unauthorized: not\+\*\*\*\*\*\*\*$' 'a password that the server repeats is hidden'
PYROSCOPE_BASIC_AUTH_USER=me PYROSCOPE_BASIC_AUTH_PASSWORD=hunter2 PYROSCOPE_HTTP_HEADERS=X-A=o PYROSCOPE_TENANT_ID=team-7 \
	serve 401:echo --to=pyroscope+http://@ADDRESS@ burn.pb.gz
like "$status $(cat err)" '^3 .*Authorization: Basic \*+ .*application/octet-stream X-Scope-OrgID: team-7 X-A: \*' \
	'a password that the server repeats as it was sent is hidden, and no part of a word for a short secret'
# No part of a secret is left where its place is that of the cut.
serve "401:phrase=$(printf '%0122d' 0)topsecret:say=$(printf '%0292d' 0)topsecret" --to=parca+http://@ADDRESS@ --send-headers=headers burn.pb.gz
like "$status $(cat err)" '^3 .*401 0+\*+: 0+\*\*\*\*\.\.\.$' 'a token in the status line is hidden, also where it is cut'
serve 401:cut:say=token-topsecretzzzzz --to=put+http://@ADDRESS@/ --send-headers=headers burn.pb.gz
like "$status $(cat err)" ': token-\*\*\*\*$' 'the beginning of a token is hidden where the answer ends within it'
serve "200:bytes=$(partial "$(printf '%0295d' 0)topsecret")" --to=otlp+http://@ADDRESS@ --send-headers=headers burn.pb.gz
like "$status $(cat err)" '^3 .*rejected: 0+\*+$' "OTLP: so it is in a receiver's words"
serve 401:echo --to=parca+http://@ADDRESS@ --send-headers=headers burn.pb.gz
like "$(cat got/1.headers)" '^Authorization: Bearer topsecret$' 'headers come from a file'
like "$status $(cat err)" '^3 .*Bearer \*\*\*\*\*\*\*\*\*' 'a token that the server repeats is hidden'
unlike "$(cat err)" topsecret 'no message has the token'
printf '%s\n' 'Cookie: id=alpha-one; other="beta-two"' 'X-Key: Bearer gamma-three' 'Proxy-Authorization: Basic delta-four' >many
serve 401:echo --to=put+http://@ADDRESS@/x --send-headers=many burn.pb.gz
unlike "$(cat err)" 'alpha|one|beta|two|gamma|three|delta|four' 'each word of each header is hidden'
like "$(cat err)" ' Cookie: \*+ X-Key: \*+ Proxy-Authorization: Basic \*+ Content-Length: [0-9]+$' 'but for the scheme, where a header has one'
serve 401:say=beta-two+alpha-one+Bearer --to=put+http://@ADDRESS@/x --send-headers=many burn.pb.gz
like "$(cat err)" ': \*+\+\*+\+\*+$' 'words of a header are hidden where they stand alone'
http_proxy=http://me:hunter%32@@ADDRESS@ serve 401:echo --to=put+http://server.invalid/x burn.pb.gz
like "$(cat got/1.headers)" "^Proxy-Authorization: Basic $(printf me:hunter2 | base64)\$" "a proxy's password may be in its variable"
like "$status $(cat err)" '^3 .*Proxy-Authorization: Basic \*+ ' "a proxy's password that it repeats is hidden"
for token in TopKey01 'ab%2FTopKey01%2Bcd'; do
	http_proxy=http://$token@@ADDRESS@ serve 401:echo --to=put+http://server.invalid/x burn.pb.gz
	like "$status $(cat err)" '^3 .*Proxy-Authorization: Basic \*+ ' "a proxy's token that it repeats is hidden: $token"
done
http_proxy=http://TopKey01%2Fcd@@ADDRESS@ serve 401:say=no+TopKey01/cd,TopKey01%2Fcd,TopKey01 --to=put+http://server.invalid/x burn.pb.gz
like "$status $(cat err)" ': no\+\*+,\*+,\*+$' "so it is without the name of its header"
http_proxy=http://TopKey01@h:99999 "$SEND" --to=put+http://server.invalid/x --send-timeout=0.3 burn.pb.gz 2>err
is "$? $(grep -c TopKey01 err)" '4 0' "a proxy's token is not in the reason of a failure"
# Parts of a key, as it may be cut where it has '/' or '+', and the whole as it is in a URL.
echo 'X-Key: first/second+third/zz' >slashed
serve '401:say=first,second,third,first%2Fsecond%2Bthird%2Fzz,first%2fsecond%2bthird%2fzz,zz' --to=put+http://@ADDRESS@/x --send-headers=slashed burn.pb.gz
like "$status $(cat err)" '^3 .*: \*{5},\*{6},\*{5},\*{27},\*{27},zz$' 'parts of a secret, and its form in a URL, are hidden'
AWS_ACCESS_KEY_ID=AKEY AWS_SECRET_ACCESS_KEY=sEcReT01/part2345+part6789 serve "--tls server.pem server.key 403:say=part2345-part6789" \
	--send-ca=ca.pem --to=s3+https://@ADDRESS@/bucket/x burn.pb.gz
like "$status $(cat err)" '^3 .*403 .*: \*+-\*+$' 's3: so are those of its key'
COUNTERSINK_SEND='put+http://@ADDRESS@/x?zone=a&sig=Sig%2FnAtUre01' serve 403:say=a,sig,Sig/nAtUre01,Sig%2FnAtUre01 burn.pb.gz
like "$status $(cat err)" '^3 .*: a,sig,\*{12},\*{14}$' 'the values of the query of an address in the variable are hidden'
for proxy in http://me:hunter2@h:99999 ftp://me:hunter2@h me:hunter2@h:x 'http://me:hunter2@[h' http://me:hunter2/@h http://me:hunter2@h.invalid; do
	http_proxy=$proxy "$SEND" --to=put+http://server.invalid/x --send-timeout=0.3 burn.pb.gz 2>err
	is "$? $(grep -c hunter2 err)" '4 0' "a proxy's password is not in the reason of a failure: $(echo "$proxy" | sed s/hunter2/.../)"
done
is "$(cat got/*.leaks)" '' 'no command line has a secret'

# ---- run --send ----
serve_run() { # "ANSWER..." ARGUMENT...: countersink, likewise
	answers=$1
	shift
	rm -f run.pb.gz
	# shellcheck disable=SC2086 # a word each
	"$SRC/tests/send/server.py" $answers -- "$COUNTERSINK" run -o run.pb.gz "$@" >stdout 2>err
	status=$?
}
serve_run 200 -q --send=pyroscope+http://@ADDRESS@ -- sh -c 'echo out; exit 7'
is "$status $(cat stdout) $(cat err)" '7 out ' 'run --send: the command is as without it, and -q prints nothing'
is "$(python3 "$RULES" got/1.body)" "$accepted" 'run --send: the profile arrives'
ok 'run --send: the profile is in its file, too' "$COUNTERSINK" report run.pb.gz
serve_run 422:say=no --no-report --send=pyroscope+http://@ADDRESS@ -- sh -c 'exit 7'
like "$status $(tail -n 1 err)" '^7 countersink: run.pb.gz was not sent to Pyroscope at .*: 422 Unprocessable Entity: no$' \
	"run --send: a refusal is reported, and the status is the command's"
ok 'run --send: after a refusal the profile is in its file' "$COUNTERSINK" report run.pb.gz
serve_run --closed -q --send=put+http://@ADDRESS@/x --send-timeout=0.2 -- true
like "$status $(cat err)" '^0 countersink: run.pb.gz was not sent' "run --send: a server that is not there changes no status"
COUNTERSINK_SEND='put+http://@ADDRESS@/x?sig=hunter2' COUNTERSINK_SEND_HEADERS=headers serve_run 200 -q -- true
is "$status $(grep -c topsecret got/1.headers)" '0 1' 'run: the variables COUNTERSINK_SEND and COUNTERSINK_SEND_HEADERS'
is "$(cat got/1.line | cut -d ' ' -f 2) $(cat got/1.leaks)" '/x?sig=hunter2 ' 'run: no command line has the secret, nor that of an address in the variable'
not_started() { # NAME PATTERN URL
	"$COUNTERSINK" run --send="$3" -- touch started 2>err
	like "$? $(cat err)" "^125 countersink: option --send: $2" "run: $1 is refused"
	ok "run: $1: the command is not started" test ! -e started
	rm -f started
}
not_started 'an address that is none' '.*KIND is pyroscope' ftp://x
not_started 'pyroscope without an address' 'no address: give one, or PYROSCOPE_SERVER_ADDRESS' pyroscope
not_started 'a port that is none' 'no host, or no port' otlp+https://x:y
not_started 's3 without TLS' '.*give s3\+https://' s3+http://x/y
not_started 's3 without a key' 'no key: give AWS_ACCESS_KEY_ID' s3+https://x/y
long=$(printf '%09000d' 0)
serve_run 200 -q "--send=put+http://@ADDRESS@/$long" -- true
is "$status $(sed 's/ HTTP.*//' got/1.line)" "0 PUT /$long" 'run: a long address is not cut'
cat fifo >read.pb.gz &
timeout 60 "$COUNTERSINK" run -q -o fifo --send=put+http://127.0.0.1/ -- sh -c 'exit 7' 2>err
is "$? $(cat err)" '7 countersink: fifo was not sent: it is not a regular file' 'run: a profile that went into a FIFO is not sent, and that is reported'
wait $!
ok 'run: then it came out of the FIFO' "$COUNTERSINK" report read.pb.gz
# TERM while it is sent: the launcher ends, and the profile is in its file.
rm -rf got
"$SRC/tests/send/server.py" silent -- sh -c 'echo $$ >pid; exec "$@"' sh "$COUNTERSINK" run -q -o run.pb.gz \
	--send=pyroscope+http://@ADDRESS@ -- true 2>err &
until [ -e got/1.body ] || ! kill -0 $!; do
	sleep 0.05
done
kill -TERM "$(cat pid)"
wait $!
is $? 241 'run: TERM while it sends ends it by that signal' # the server exits with -15
ok 'run: then the profile is in its file' "$COUNTERSINK" report run.pb.gz
# ---- attach --send ----
"$SRC/tests/send/server.py" 200 422:say=no -- sh -c '"$1" attach -q -o one.pb.gz --send=put+http://@ADDRESS@/%n -- "$2" 100 >/dev/null
	"$1" attach -q -o two.pb.gz --send=put+http://@ADDRESS@/%n -- sh -c "exit 7"' sh "$COUNTERSINK" "$TARGETS/burn" 2>err
is "$? $(cut -d ' ' -f 2 got/1.line)" '7 /one.pb.gz' "attach --send: the profile is sent, and the status is the command's"
ok 'attach --send: as it is in its file' cmp got/1.body one.pb.gz
like "$(cat err)" '^countersink: two.pb.gz was not sent to .*: 422 Unprocessable Entity: no$' 'attach --send: a refusal is reported'
"$COUNTERSINK" attach --send=ftp://x -- touch started 2>err
like "$? $(cat err)" '^125 countersink: option --send: .*KIND is pyroscope' 'attach --send: an address that is none is refused'
ok 'attach --send: then nothing is started' test ! -e started
mkdir -p alone/bin && cp "$COUNTERSINK" alone/bin/ && ln -s "$BUILD/lib" alone/lib
alone/bin/countersink run -q -o run.pb.gz --send=put+http://127.0.0.1/ -- sh -c 'exit 7' 2>err
like "$? $(cat err)" '^7 countersink: run.pb.gz was not sent: /.*/countersink-send: No such file' 'run: where countersink-send is absent, that is reported'
is "$(ldd "$COUNTERSINK" | grep -c curl)" 0 'the launcher does not link libcurl'
done_testing
