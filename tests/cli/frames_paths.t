#!/bin/sh
# Source files that a program names by relative paths: --annotate shows them from another directory, also where the program changes its
# directory, and in a forked child. And what --annotate prints where a source file is missing.
. "$(dirname "$0")/lib.sh"

mkdir -p app/lib other
cat >app/lib/run.pl <<'END_PERL'
chdir "../other" or die;
sub main_sub { my $s = 0; for my $i (1 .. $_[0]) { $s += $i % 7 } $s } # of run.pl
sub child_sub { my $s = 0; for my $i (1 .. $_[0]) { $s += $i % 7 } $s } # of the child
main_sub(1_000_000);
require "./later.pl";
later(1_000_000);
chdir "/" or die;
fork or do { child_sub(1_000_000); exit };
wait;
eval 'sub evaluated { my $s = 0; for my $i (1 .. $_[0]) { $s += $i % 7 } $s }';
evaluated(1_000_000);
END_PERL
cat >other/later.pl <<'END_PERL'
sub later { my $s = 0; for my $i (1 .. $_[0]) { $s += $i % 7 } $s } # of later.pl
1;
END_PERL
cat >app/lib/run.rb <<'END_RUBY'
Dir.chdir("../other")
def main_sub(n) = n.times { |i| i * i % 7 } # of run.rb
def child_sub(n) = n.times { |i| i * i % 7 } # of the child
main_sub(3_000_000)
require "./later.rb"
later(3_000_000)
Dir.chdir("/")
fork { child_sub(3_000_000) }
Process.wait
END_RUBY
cat >other/later.rb <<'END_RUBY'
def later(n) = n.times { |i| i * i % 7 } # of later.rb
END_RUBY
cat >app/lib/run.php <<'END_PHP'
<?php
chdir("../other");
function main_sub($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s += $i % 7; return $s; } // of run.php
main_sub(10000000);
require "./later.php";
later(10000000);
END_PHP
cat >other/later.php <<'END_PHP'
<?php
function later($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s += $i % 7; return $s; } // of later.php
END_PHP
cat >app/lib/run.js <<'END_JS'
process.chdir("../other");
function main_sub(n) { let s = 0; for (let i = 0; i < n; i++) s = (s + i * i % 7) | 0; return s; } // of run.js
main_sub(1e8);
require(process.cwd() + "/later.js").later(1e8);
END_JS
cat >other/later.js <<'END_JS'
exports.later = function later(n) { let s = 0; for (let i = 0; i < n; i++) s = (s + i * i % 7) | 0; return s; } // of later.js
END_JS
cat >app/lib/run.py <<'END_PYTHON'
import os
os.chdir("../other")
def main_sub(n): return sum(i % 7 for i in range(n)) # of run.py
def child_sub(n): return sum(i % 7 for i in range(n)) # of the child
main_sub(2000000)
exec(compile(open("later.py").read(), "later.py", "exec"))
later(2000000)
os.chdir("/")
if not os.fork():
    child_sub(2000000)
    os._exit(0)
os.wait()
END_PYTHON
cat >other/later.py <<'END_PYTHON'
def later(n): return sum(i % 7 for i in range(n)) # of later.py
END_PYTHON

# From no directory of the program's.
shows() { # FUNCTION LINE TITLE
	like "$(cd / && countersink report --annotate "$1" "$TMP/$name.pb.gz" 2>&1)" "^( +[0-9.]+)? +[0-9.]+ +$2\$" "$name: $3"
}
language() { # NAME COMMAND ENDING [PREFIX [forks]]
	name=$1 prefix=${4-}
	if ! have "$2"; then
		skip "$name: --annotate finds files of relative names" "$2 is not installed"
		return
	fi
	(cd app && countersink -F 2000 -o "$TMP/$name.pb.gz" -- "$2" "lib/run.$3") >out 2>err
	status=$?
	if grep 'frames are not read' err >why; then
		skip "$name: --annotate finds files of relative names" "$(cat why)"
		return
	fi
	is "$status:$(cat out)" 0: "$name: a program that changes its directory has its output and status"
	shows "$prefix$main" "[234]  .*main_sub.* of run\.$3" "--annotate shows the script, which was named by a relative path"
	shows "$prefix$later" "[12]  .*later.* of later\.$3" "--annotate shows a file that was loaded by a relative path after a change of the directory"
	[ -z "${5-}" ] || shows "$prefix$child" "[34]  .*child_sub.* of the child" "--annotate shows what only a forked child ran, in another directory"
}
main=main_sub later=later child=child_sub
language PHP php php
language JavaScript node js
language Perl perl pl main:: forks
main='block in main_sub' later='block in later' child='block in child_sub'
language Ruby ruby rb '' forks
if have python3; then
	main=main_sub later=later child=child_sub
	language Python "$(python3 -c 'import sys; print(sys.executable)')" py '' forks
fi

# ---- a source file that is missing

like "$(countersink report --annotate main::evaluated Perl.pb.gz 2>&1)" 'note: this code is in no file' \
	"--annotate of evaluated code: a note says that it is in no file"
mv other/later.pl other/gone.pl
countersink report --annotate main::later Perl.pb.gz >out 2>&1
is "$?:$(grep -c "note: $TMP/other/later.pl cannot be read: No such file or directory; restore the file to see its lines" out)" 0:1 \
	"--annotate of a source file that is gone: one line names it, and what to do"
like "$(cat out)" '^( +[0-9.]+)? +[0-9.]+ +1$' "--annotate of a source file that is gone: the line has its weight"
mv other/gone.pl other/later.pl
cat >app/removes.pl <<'END_PERL'
unlink "removes.pl";
sub spin { my $s = 0; for my $i (1 .. $_[0]) { $s += $i % 7 } $s }
spin(1_000_000);
END_PERL
(cd app && countersink -q -F 2000 -o "$TMP/removed.pb.gz" -- perl removes.pl) >out 2>&1
countersink report --annotate main::spin removed.pb.gz >out 2>&1
like "$(cat out)" 'note: removes\.pl cannot be read: No such file or directory; run this in the directory that the path is relative to' \
	"--annotate of a relative path that was gone before the profile was made: one line names it, and what to do"

done_testing
