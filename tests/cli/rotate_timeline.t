#!/bin/bash
# Slices with the times of samples: once slices have them, their room in the recording is used again.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slices.sh
. "$SRC/tests/cli/slices.sh"

cat >times.py <<'E3'
# times.py FILE...: of all, CPU time, samples with a time, in how many times these are, and CPU time without one.
import gzip, sys
def fields(data):
    at = 0
    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n
    while at < len(data):
        key = number()
        if key & 7 == 2:
            size = number()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            yield key >> 3, number()
def numbers(data): # packed
    return [n for _, n in fields(b"".join(b"\x08" + v for v in varints(data)))]
def varints(data):
    start = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield data[start:i + 1]
            start = i + 1
ns = timed = untimed = 0
times = set()
for name in sys.argv[1:]:
    top = list(fields(gzip.open(name).read()))
    texts = [text for field, text in top if field == 6]
    key = texts.index(b"timestamp") if b"timestamp" in texts else -1
    for sample in (dict_of for field, dict_of in top if field == 2):
        parts = list(fields(sample))
        values = [n for field, packed in parts if field == 2 for n in (numbers(packed) if isinstance(packed, bytes) else [packed])]
        labels = [dict(fields(label)) for field, label in parts if field == 3]
        ns += values[1]
        at = [label[3] for label in labels if label[1] == key]
        times.update(at)
        if at:
            timed += values[0]
        else:
            untimed += values[1]
print(ns, timed, len(times), untimed)
E3
# 240 KB of times a second, in a recording of 1 MiB, of which a slice and the second after it need half.
countersink -q -F 14983 --timeline --max-memory=1 --rotate=1s --keep=0 -o s.pb.gz -- \
	"$TARGETS/rusage" kernel "$TARGETS/burn" 6000 >said 2>err
is "$?" 0 "a program that would fill its recording with times: its status"
countersink merge -q -o all.pb.gz s.*.pb.gz
unlike "$(facts all.pb.gz warning) $(facts all.pb.gz loss)" 'process is full|timeline' "it is never full, and no time is lost"
# shellcheck disable=SC2046
read -r ns timed times untimed < <(python3 times.py $(find . -name 's.*.pb.gz' | sort))
is "$(echo "$ns $(cat kernel)" | awk '{ print ($1 > 0.97 * $2 && $1 < 1.03 * $2) ? "same" : $0 }')" same "slices have the kernel's CPU time"
ok "there are more samples with times ($timed) than the recording has room for" test "$timed" -gt 66000
ok "hardly any CPU time is without one ($untimed of $ns ns)" test "$((untimed * 50))" -lt "$ns"
ok "none is there twice ($times times of $timed samples)" test "$((times * 1000))" -ge "$((timed * 995))"

done_testing
