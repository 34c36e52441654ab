"""What sweep.py runs beside every program's --version and --help: (name, what must be installed, text for bash). $DATA
has lines (200,000 numbered lines of words), big (1,000,000 lines), tree (a directory of sources), pic.ppm."""
import os
import random


def prepare(directory):
    """Make $DATA: the same on every machine."""
    words = random.Random(7)
    stems = ['sink', 'counter', 'drill', 'bore', 'cone', 'flush', 'screw', 'depth', 'angle', 'chamfer']
    with open(os.path.join(directory, 'lines'), 'w') as f:
        for n in range(200000):
            f.write('%d %s %d\n' % (n, ' '.join(words.choices(stems, k=4)), words.randrange(10 ** 6)))
    with open(os.path.join(directory, 'big'), 'w') as f:
        f.writelines('%d %s\n' % (words.randrange(10 ** 7), words.choice(stems)) for _ in range(1000000))
    for n in range(200):
        where = os.path.join(directory, 'tree', 'd%d' % (n % 10))
        os.makedirs(where, exist_ok=True)
        with open(os.path.join(where, 'f%d.c' % n), 'w') as f:
            f.write('int f%d(int n) { int s = 0; for (int i = 0; i < n; i++) s += i ^ %d; return s; }\n' % (n, n) * 1)
    with open(os.path.join(directory, 'pic.ppm'), 'wb') as f:
        f.write(b'P6\n320 240\n255\n' + bytes((x * y ^ x + y) & 255 for y in range(240) for x in range(960)))
    with open(os.path.join(directory, 'templates.cc'), 'w') as f:
        f.write(TEMPLATES)
    with open(os.path.join(directory, 'Work.java'), 'w') as f:
        f.write(JAVA)


TEMPLATES = r'''
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<1> { static constexpr long value = 1; };
template <> struct Fib<0> { static constexpr long value = 0; };
static long thrown(int n)
{
	if (!n)
		throw std::runtime_error("bottom");
	return thrown(n - 1) + 1;
}
int main()
{
	std::map<std::string, int> words;
	std::regex re("([a-z]+)([0-9]+)");
	long caught = 0;
	for (int i = 0; i < 2000; i++) {
		std::string s = "word" + std::to_string(i * 7919 % 101);
		std::smatch m;
		if (std::regex_match(s, m, re))
			words[m[2]]++;
		try {
			thrown(i % 30);
		} catch (const std::runtime_error &e) {
			caught += e.what()[0];
		}
	}
	std::vector<std::thread> threads;
	std::vector<long> sums(4);
	for (int t = 0; t < 4; t++)
		threads.emplace_back([&sums, t] { for (long i = 0; i < 5000000; i++) sums[t] += i ^ t; });
	for (auto &t : threads)
		t.join();
	for (long s : sums)
		std::cout << s << "\n";
	std::cout << words.size() << " " << caught << " " << Fib<40>::value << "\n";
}
'''

JAVA = r'''
import java.util.*;
import java.util.concurrent.*;
public class Work {
	public static void main(String[] args) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(4);
		List<Future<Long>> sums = new ArrayList<>();
		for (int t = 0; t < 8; t++) {
			final int who = t;
			sums.add(pool.submit(() -> { long s = 0; for (int i = 0; i < 3000000; i++) s += (s ^ i) % 7 * who; return s; }));
		}
		for (Future<Long> s : sums)
			System.out.println(s.get());
		pool.shutdown();
		Map<String, Integer> map = new TreeMap<>();
		for (int i = 0; i < 100000; i++)
			map.merge("k" + i % 97, i, Integer::sum);
		System.out.println(map.hashCode());
		try { throw new IllegalStateException("thrown"); } catch (IllegalStateException e) { System.out.println(e); }
		System.exit(5);
	}
}
'''

PYTHON = r'''
import threading, subprocess, hashlib, signal, os, concurrent.futures, re
def work(n): return hashlib.sha256(b"".join(b"%d" % (i * n) for i in range(20000))).hexdigest()
out = {}
ts = [threading.Thread(target=lambda n=n: out.__setitem__(n, work(n))) for n in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print([out[n][:8] for n in range(8)])
print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True))
print(sum(subprocess.call(["true"]) for _ in range(20)))
with concurrent.futures.ProcessPoolExecutor(3) as pool: print(list(x[:8] for x in pool.map(work, range(6))))
got = []
signal.signal(signal.SIGALRM, lambda *a: got.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
while len(got) < 5: re.findall("a+b", "a" * 300)
signal.setitimer(signal.ITIMER_REAL, 0); print("alarms")
pid = os.fork()
if not pid: os._exit(9)
print(os.waitpid(pid, 0)[1], os.open("/dev/null", 0), os.path.exists("/proc/self/fd/4"))
os.kill(os.getpid(), signal.SIGTERM)
'''

NODE = r'''
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const { execFileSync, spawn } = require("child_process");
const crypto = require("crypto");
if (isMainThread) {
  const left = [0, 1, 2, 3].map(n => new Promise(done => new Worker(__filename, { workerData: n }).on("message", done)));
  Promise.all(left).then(all => {
    console.log(all);
    console.log(execFileSync("echo", ["child"]).toString());
    crypto.pbkdf2("a", "b", 50000, 32, "sha256", (e, key) => {
      console.log(key.toString("hex"));
      spawn("sh", ["-c", "exit 4"]).on("close", code => { console.log(code); process.exit(6); });
    });
  });
} else {
  let s = 0;
  for (let i = 0; i < 3e6; i++) s = (s * 31 + i * workerData) | 0;
  parentPort.postMessage(s);
}
'''


def here(name, text):
    return "cat > %s <<'END_OF_FILE'\n%s\nEND_OF_FILE\n" % (name, text)


# Archives that keep times get a fixed one; what writes its own pid or time keeps to stdout, or takes it away.
WORKLOADS = [
    ('tar and gzip', ['tar', 'gzip'], 'tar -C $DATA --mtime=@0 --sort=name --owner=0 --group=0 -cf - tree | gzip -n9 > t.gz; '
     'gzip -dc t.gz | tar -tf - | sort | md5sum'),
    ('tar -z, which runs gzip', ['tar'], 'tar -C $DATA -cz tree > t; mkdir x; tar -C x -xzf t; find x -type f | sort | xargs md5sum; '
     'rm -r x t'),
    ('xz with threads', ['xz'], 'xz -T2 -1 -c $DATA/lines | tee l.xz | xz -dc | cmp - $DATA/lines; echo ${PIPESTATUS[*]}'),
    ('zstd with threads', ['zstd'], 'zstd -q -T2 -5 -c $DATA/lines > l.zst; zstd -dc l.zst | md5sum; zstd -t l.zst'),
    ('bzip2, lz4, brotli', ['bzip2', 'lz4', 'brotli'], 'bzip2 -c $DATA/lines > l.bz2; lz4 -q $DATA/lines l.lz4; '
     'brotli -q 3 -c $DATA/lines > l.br; bzip2 -t l.bz2 && brotli -t l.br && lz4 -tq l.lz4; echo $?'),
    ('zip, unzip', ['zip', 'unzip'], 'cd $DATA && zip -qrX - tree > $OLDPWD/t.zip; cd - > /dev/null; unzip -qt t.zip; unzip -l t.zip | '
     'tail -1; rm t.zip'),
    ('git: commit, log, gc', ['git'], 'export GIT_AUTHOR_DATE=@0+0000 GIT_COMMITTER_DATE=@0+0000; git init -q -b main .; '
     'git config user.name n; git config user.email e@x; git config gc.writeCommitGraph false; cp -r $DATA/tree .; git add .; '
     'git commit -qm one; for i in 1 2 3; do echo $i >> tree/d1/f1.c; git commit -qam "c $i"; done; git log -p --stat; '
     'git gc -q; git fsck; git grep -c int | md5sum; git blame tree/d1/f1.c; rm -rf .git tree'),
    ('perl: regex, fork, alarm, threads of text', ['perl'], 'perl -e \'$SIG{ALRM} = sub { $n++ }; use Time::HiRes qw(ualarm); ualarm(5000, 5000); '
     '1 while $n < 5; ualarm(0); for (1..20) { my $p = fork; exit $_ unless $p; waitpid $p, 0; print $? >> 8, " " } '
     '%h = (); while (<>) { $h{$1}++ while /(\\w+)/g } print scalar(keys %h), "\\n"; die "at the end\\n"\' $DATA/lines'),
    ('ruby: threads, fork, subprocess', ['ruby'], 'ruby -e \'t = 4.times.map { |n| Thread.new { (1..200000).inject { |a, b| (a * 31 + b * n) % 1000003 } } }; '
     'p t.map(&:value); p `echo child`; p Process.wait2(fork { exit 3 })[1].exitstatus; '
     'p File.readlines(ENV["DATA"] + "/lines").map { |l| l.split.size }.sum; trap("USR1") { puts "usr1" }; '
     'Process.kill("USR1", $$); sleep 0.1; abort "ended"\''),
    ('php', ['php'], 'php -r \'$a = []; for ($i = 0; $i < 500000; $i++) $a[$i % 1000] = md5($i . ($a[$i % 1000] ?? "")); echo md5(join($a)), "\\n"; '
     'echo shell_exec("echo child"); echo proc_close(proc_open("exit 3", [], $p)), "\\n"; exit(7);\''),
    ('lua', ['lua5.4'], 'lua5.4 -e \'local t = {} for i = 1, 500000 do t[i % 1000] = (t[i % 1000] or "") .. (i % 10) end '
     'local co = coroutine.wrap(function() for i = 1, 100000 do coroutine.yield(i) end end) local s = 0 for i = 1, 100000 do s = s + co() end '
     'print(s, #t[7], os.execute("exit 3")) print(pcall(error, "x")) os.exit(4)\''),
    ('guile', ['guile'], 'guile --no-auto-compile -c \'(use-modules (ice-9 threads)) (define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) '
     '(display (par-map f (list 20 21 22 23))) (newline) (display (system* "sh" "-c" "exit 3")) (exit 5)\''),
    ('tcl', ['tclsh'], 'echo \'proc f n { expr {$n < 2 ? $n : [f [expr {$n-1}]] + [f [expr {$n-2}]]} }; puts [f 20]; puts [exec echo child]; '
     'after 20 {set x 1}; vwait x; catch {exec sh -c "exit 3"} m o; puts $m; exit 6\' > t.tcl; tclsh t.tcl'),
    ('erlang', ['erl'], 'erl -noshell -eval \'P = self(), [spawn(fun() -> P ! lists:sum([X * N rem 7 || X <- lists:seq(1, 100000)]) end) || N <- lists:seq(1, 20)], '
     'io:format("~p~n", [lists:sort([receive R -> R end || _ <- lists:seq(1, 20)])]), io:format("~s", [os:cmd("echo child")]), halt(3).\''),
    ('ocaml', ['ocaml'], 'echo \'let rec f n = if n < 2 then n else f (n-1) + f (n-2);; exception E of int;; let () = print_int (f 22); '
     '(try raise (E 3) with E n -> print_int n); exit (Sys.command "exit 4");;\' > t.ml; ocaml t.ml'),
    ('R', ['Rscript'], 'Rscript -e \'set.seed(1); x <- matrix(rnorm(40000), 200); print(sum(round(solve(x) %*% x, 6))); print(system("exit 3")); '
     'print(tryCatch(stop("s"), error = function(e) conditionMessage(e))); print(unlist(parallel::mclapply(1:4, function(i) i * i))); '
     'quit(status = 4)\''),
    ('octave', ['octave-cli'], 'octave-cli --norc --eval \'x = reshape(mod(1:40000, 97), 200, 200); printf("%d\\n", rank(x)); try, error("e"); catch e, disp(e.message), end; '
     '[s, o] = system("echo child; exit 3"); disp(s), disp(o), exit(4)\''),
    ('awk, every kind there is', ['awk'], 'for a in awk mawk gawk original-awk; do command -v $a > /dev/null || continue; '
     '$a \'{ n[$2] += $6 } END { for (k in n) print k, n[k] | "sort"; close("sort"); "echo child" | getline x; print x; exit 3 }\' $DATA/lines; echo $?; done'),
    ('sed', ['sed'], 'sed -n -E "s/([0-9]+) (\\w+) (\\w+).*/\\3 \\2 \\1/p" $DATA/lines | md5sum; sed -n "/sink/{w sinks\n}" $DATA/lines'),
    ('sort of 1,000,000 lines, with threads and files', ['sort'], 'sort --parallel=4 -S 4M -T . $DATA/big | md5sum; sort -n -u -k1 $DATA/big | tail -2; '
     'sort -R --random-source=$DATA/lines $DATA/lines | md5sum'),
    ('find, grep -r, xargs -P', ['find', 'grep', 'xargs'], 'find $DATA/tree -name "*.c" -exec grep -l "^ 7" {} + | sort; grep -rc int $DATA/tree | sort | md5sum; '
     'find $DATA/tree -type f -print0 | sort -z | xargs -0 -n 7 -P 4 cat | wc; grep -P "(\\w+) \\1 \\1" $DATA/lines | md5sum; '
     'cat $DATA/lines | grep -m1 sink; seq 5 | xargs -I{} sh -c "exit {}"; echo $?'),
    ('coreutils: cut, tr, uniq, join, split, dd, md5sum', ['join'], 'cut -d" " -f2 $DATA/lines | sort | uniq -c; split -n 7 $DATA/lines; cat x?? | cmp - $DATA/lines; '
     'dd if=$DATA/lines bs=1000 count=99 status=none | tr a-z A-Z | sha256sum; yes | head -100000 | wc -l; timeout 0.2 sleep 9; echo $?; '
     'nohup sh -c "echo in nohup" < /dev/null; stdbuf -oL echo x; env -i /usr/bin/printf here; nice -n 3 nice; factor 12345678901234567'),
    ('gcc -c, -O2 and -g', ['gcc'], 'gcc -O2 -c $DATA/tree/d1/f1.c -o a.o; gcc -g -O0 -S $DATA/tree/d2/f2.c -o b.s; gcc -c -Wall nothing.c; echo $?; '
     'echo "int f( {" > e.c; gcc -c e.c; echo $?; objdump -d a.o | md5sum; nm a.o'),
    ('g++ with templates, and what it made', ['g++'], 'g++ -O1 -pthread $DATA/templates.cc -o t && ./t'),
    ('g++ -flto -j2', ['g++'], 'g++ -O2 -flto=2 -frandom-seed=1 -pthread $DATA/templates.cc -o t && ./t; rm -f t'),
    ('clang', ['clang'], 'clang -O2 -c $DATA/tree/d1/f1.c -o a.o; clang++ -O1 -pthread $DATA/templates.cc -o t && ./t; clang -c nothing.c; echo $?'),
    ('ar, ld, make -j4', ['make', 'ar'], 'cp -r $DATA/tree/d1 .; printf "o := \\$(patsubst %%.c,%%.o,\\$(wildcard d1/*.c))\\nlib.a: \\$(o)\\n\\tar rcsD \\$@ \\$^\\n%%.o: %%.c\\n'
     '\\tgcc -O1 -c -o \\$@ \\$<\\nfail:\\n\\texit 3\\n" > Makefile; make -j4 -Oline | sort; make fail; echo $?; ld -r -o all.o d1/*.o; nm all.o | wc -l'),
    ('cmake', ['cmake', 'make'], 'printf "cmake_minimum_required(VERSION 3.13)\\nproject(p C)\\nadd_library(l d1/f1.c d1/f11.c)\\n" > CMakeLists.txt; cp -r $DATA/tree/d1 .; '
     'cmake -S . -B b > log; tail -1 log | cut -c1-20; make -C b -j3 --no-print-directory | sort | tail -3; find b -name "*.a" | xargs nm | md5sum; rm -rf b log'),
    ('rustc', ['rustc'], 'echo \'use std::thread; fn main() { let h: Vec<_> = (0..4u64).map(|n| thread::spawn(move || (0..1000000u64).fold(n, |a, b| a.wrapping_mul(31) ^ b))).collect(); '
     'for t in h { println!("{}", t.join().unwrap()); } let r = std::panic::catch_unwind(|| { panic!("p") }); println!("{}", r.is_err()); '
     'let s = std::process::Command::new("sh").args(["-c", "exit 3"]).status().unwrap(); println!("{}", s); std::process::exit(4) }\' > r.rs; rustc -O r.rs && ./r; echo $?'),
    ('go build', ['go'], 'export GOCACHE=$HOME/cache; printf \'package main\\nimport ("fmt"; "os/exec")\\nfunc main() { c := make(chan int); for i := 0; i < 8; i++ { go func(n int) { s := 0; for j := 0; '
     'j < 1000000; j++ { s += j %% (n + 1) }; c <- s }(i) }; t := 0; for i := 0; i < 8; i++ { t += <-c }; o, e := exec.Command("sh", "-c", "echo x; exit 3").Output(); '
     'fmt.Println(t, string(o), e) }\\n\' > m.go; go build -trimpath -o m m.go && ./m; go vet m.go; rm -f m'),
    ('python3: threads, processes, alarms, a signal', ['python3'], here('w.py', PYTHON) + '/usr/bin/python3 w.py; echo $?'),
    ('node: worker threads, children, pool', ['node'], here('w.js', NODE) + 'node w.js; echo $?'),
    ('java: threads, exit', ['java', 'javac'], 'cp $DATA/Work.java .; javac Work.java && java -Xmx128m Work; echo $?; rm -f *.class; java -XX:-UsePerfData -version'),
    ('sqlite3', ['sqlite3'], 'sqlite3 base "PRAGMA journal_mode=WAL; CREATE TABLE t(a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100000) '
     'INSERT INTO t SELECT i, i * 7919 % 10007 FROM n; CREATE INDEX x ON t(b); SELECT b, count(*) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 5; SELECT nothing;"; echo $?'),
    ('psql --version, and no server', ['psql'], 'psql --version; psql -h $PWD -c "select 1"; echo $?; pg_dump --version'),
    ('openssl: digests, keys, certificates', ['openssl'], 'openssl dgst -sha512 $DATA/lines | cut -d" " -f2; openssl genrsa -out k.pem 2048 2> /dev/null; openssl req -x509 -new -key k.pem -subj /CN=x -days 1 -out c.pem; '
     'openssl verify -CAfile c.pem c.pem; openssl enc -aes-256-cbc -K 00 -iv 00 -in $DATA/lines 2>&1 | md5sum; rm *.pem; openssl speed -seconds 1 -multi 2 sha256 2>&1 | grep -c sha256'),
    ('gpg: keys, an agent', ['gpg', 'gpg-agent'], 'gpg --batch -q --list-keys 2>&1 | sed "s/created//"; gpg --batch -q --pinentry-mode loopback --passphrase "" --quick-gen-key a@b ed25519 sign 0 2> /dev/null; echo $?; '
     'gpg --batch -q --clearsign < $DATA/tree/d1/f1.c | head -5 | tail -2; gpgconf --kill all; echo $?'),
    ('ssh-keygen, ssh without a server', ['ssh-keygen', 'ssh'], 'ssh-keygen -q -t ed25519 -N "" -f key -C c; wc -l < key.pub; ssh-keygen -y -f key | cmp - key.pub; rm key*; ssh -o BatchMode=yes -F none -p 9 127.0.0.1 true; echo $?'),
    ('curl, file and no server', ['curl'], 'curl -s file://$DATA/lines | md5sum; curl -sS http://127.0.0.1:9/; echo $?'),
    ('rsync', ['rsync'], 'rsync -a --out-format=%n --delete $DATA/tree/ copy/ | sort | md5sum; rsync -ac --stats $DATA/tree/ copy/ | grep "Number of regular"; diff -r $DATA/tree copy && echo same; rm -r copy'),
    ('tmux: a server, a session', ['tmux'], 'tmux -f /dev/null -S $PWD/s new -d -x 80 -y 24 "cat"; tmux -S $PWD/s send-keys hello Enter; for i in $(seq 100); do tmux -S $PWD/s capture-pane -p | '
     'grep -c hello > n; [ "$(cat n)" = 2 ] && break; sleep 0.1; done; cat n; tmux -S $PWD/s list-sessions -F "#{session_windows}"; tmux -S $PWD/s kill-server; echo $?; rm -f s'),
    ('screen', ['screen'], 'export SCREENDIR=$TMPDIR/s; mkdir -m 700 $SCREENDIR; screen -c /dev/null -dmS one sh -c "echo in > out; sleep 0.3"; for i in $(seq 100); do [ -s out ] && break; sleep 0.1; done; '
     'cat out; screen -wipe | tail -n +9'),
    ('bash: pipelines, traps, jobs, coprocesses', ['bash'], 'set -o pipefail; seq 100000 | grep 7 | sort -r | (head -3; cat > /dev/null); false | true; echo $?; trap "echo exit" EXIT; (trap "echo int; exit 3" INT; kill -INT $BASHPID; '
     'sleep 5); echo $?; coproc cat; echo x >&${COPROC[1]}; read y <&${COPROC[0]}; echo $y; eval "exec ${COPROC[1]}>&-"; wait; p=; for i in 1 2 3 4; do (exit $i) & p="$p $!"; done; for p in $p; do wait $p; echo -n "$? "; done; '
     'x=$(exec 3>&1; echo to3 >&3); echo $x; diff <(seq 5) <(seq 6); echo here <<< x; exec 9< $DATA/lines; read -u 9 l; echo $l; ulimit -n 40; (ulimit -n); kill -TERM $$'),
    ('dash, zsh, ksh, fish, busybox', ['dash'], 'for s in dash zsh ksh fish "busybox sh"; do command -v ${s%% *} > /dev/null || continue; $s -c \'echo a | cat | tr a b; (exit 3); echo end; sleep 0.01 & wait; kill -TERM $$ ; '
     'sleep 1\' 2>&1; echo $?; done'),
    ('script: a pseudo-terminal', ['script'], 'script -qec "tty > /dev/null && stty -a | grep -c isig; echo in; exit 3" log < /dev/null; echo $?; rm -f log'),
    ('expect', ['expect'], 'expect -c \'spawn -noecho sh; send "echo \\$((6*7))\\r"; expect 42; send "exit 3\\r"; expect eof; lassign [wait] a b c d; exit $d\' > /dev/null; echo $?'),
    ('qemu-img', ['qemu-img'], 'qemu-img create -q -f qcow2 i.qcow2 10M; qemu-img convert -f raw -O qcow2 $DATA/lines c.qcow2; qemu-img check c.qcow2; qemu-img info c.qcow2 | grep virtual; qemu-img compare -f raw $DATA/lines -F qcow2 c.qcow2; qemu-io -c "write 0 64k" -f qcow2 i.qcow2 | head -1; rm *.qcow2'),
    ('ffmpeg with threads', ['ffmpeg'], 'ffmpeg -nostdin -hide_banner -loglevel error -f lavfi -i testsrc=size=320x240:rate=25:duration=2 -threads 4 -c:v mpeg4 -bitexact -flags +bitexact -f avi - | md5sum; '
     'ffmpeg -nostdin -loglevel error -f lavfi -i sine=d=3 -c:a flac -bitexact -f md5 -; ffmpeg -nostdin -loglevel error -i nothing.avi x.avi; echo $?'),
    ('ImageMagick', ['convert'], 'convert $DATA/pic.ppm -resize 150% -blur 0x3 -depth 8 rgb:- | md5sum; convert $DATA/pic.ppm -define png:exclude-chunks=date,time -strip p.png; identify p.png | cut -d" " -f2-6; convert nothing.png x.png; echo $?'),
    ('graphviz', ['dot'], '(echo "digraph g {"; for i in $(seq 150); do echo "n$((i / 3)) -> n$i; n$i -> n$((i * 7 % 53));"; done; echo "}") > g.dot; dot -Tsvg g.dot | md5sum; neato -Tplain g.dot | wc -l'),
    ('valgrind, gdb, strace of a program', ['valgrind', 'gdb', 'strace'], 'valgrind -q --error-exitcode=9 true; echo $?; gdb -q -batch -nx -ex run -ex "info inferiors" --args true 2>&1 | grep -c exited; strace -f -e trace=none -o log sh -c "exit 3"; echo $?; rm -f log'),
    ('emacs', ['emacs'], 'emacs -Q --batch --eval \'(progn (princ (cl-loop for i below 100000 sum (% (* i i) 7))) (terpri) (princ (shell-command-to-string "echo child")) (call-process "sh" nil nil nil "-c" "exit 3") (kill-emacs 4))\''),
    ('vim', ['vim'], 'printf "one\\ntwo\\n" > v; printf "%%s/o/0/g\\ng/t/m0\\nwq\\n" | vim -u NONE -i NONE -es v; echo $?; cat v'),
    ('bc, dc, jq, xmllint', ['bc', 'jq', 'xmllint'], 'echo "scale=500; 4*a(1)" | bc -l | md5sum; echo "[.[] | . * 2] | add" > f.jq; seq 1 50000 | jq -s -f f.jq; echo "<a><b>1</b></a>" | xmllint --xpath "//b/text()" -'),
    ('mercurial, subversion', ['hg', 'svn'], 'hg init r; cd r; cp $DATA/tree/d1/f1.c .; hg --config ui.username=n commit -qAm one -d "0 0"; hg log -T "{node}\\n"; hg verify -q; cd ..; svnadmin create s; svn co -q file://$PWD/s w; cp $DATA/tree/d1/f1.c w; svn add -q w/f1.c; svn ci -qm one w; svn log -q w | wc -l; rm -rf r s w'),
    ('memcached, a server', ['memcached'], 'memcached -s $PWD/m -t 2 & for i in $(seq 100); do [ -S m ] && break; sleep 0.1; done; perl -MIO::Socket::UNIX -e \'$s = IO::Socket::UNIX->new("m"); for (1..2000) { print $s "set k$_ 0 0 3\\r\\nabc\\r\\n"; $s->flush; <$s> } '
     'print $s "get k7\\r\\nstats\\r\\n"; while (<$s>) { print if /^VALUE|curr_items|^abc/; last if /^STAT lru_bumps/ || /^END/ && $n++ }\'; kill -TERM $!; wait $!; echo $?; rm -f m'),
    ('mariadbd: a bootstrap', ['mariadbd'], 'mkdir d; echo "create database x; use x; create table t(a int) engine=aria; insert into t values (1),(2);" | mariadbd --no-defaults --bootstrap --datadir=$PWD/d --lc-messages-dir=/usr/share/mysql --innodb-buffer-pool-size=8M --silent-startup 2> /dev/null; echo $?; ls d/x; rm -rf d'),
    ('apache2, lighttpd, haproxy: configurations', ['apache2', 'lighttpd', 'haproxy'], 'apache2 -v; echo "server.document-root = \\"$PWD\\"" > l.conf; lighttpd -tt -f l.conf; echo $?; printf "defaults\\n timeout client 1s\\n timeout server 1s\\n timeout connect 1s\\n mode http\\nfrontend f\\n bind 127.0.0.1:0\\n" > h.cfg; haproxy -c -f h.cfg; echo $?'),
    ('ghostscript, pdftotext', ['gs', 'pdftotext'], 'echo "%!PS\n/Helvetica findfont 20 scalefont setfont 50 50 moveto (words) show showpage" > p.ps; gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile=p.pdf p.ps; pdftotext p.pdf - | head -1; gs -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -sOutputFile=- p.ps | md5sum; rm p.pdf'),
    ('signals that end a shell, and a core', ['bash'], 'ulimit -c 0; for s in INT QUIT ABRT SEGV USR1 PROF TRAP ALRM KILL; do bash -c "kill -$s \\$\\$" ; echo $s $?; done 2>&1 | sed "s/ [0-9]* / /"; '
     'trap "" PIPE; seq 100000 | head -1; exec 3<> /dev/null; kill -PROF $$'),
]
