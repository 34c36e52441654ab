#!/bin/bash
# Packages for rpm: built, judged by rpmlint, installed in a bare system, used, erased.
. "$(dirname "$0")/../cli/lib.sh"
. "$SRC/tests/package/system.sh"

made rpm
FULL=$VERSION-1
is "$(cd "$PACKAGES" && find . -name '*.rpm' | sort | xargs)" \
	"./countersink-$FULL.src.rpm ./countersink-$FULL.$(uname -m).rpm ./libcountersink-api-devel-$FULL.$(uname -m).rpm ./libcountersink-api0-$FULL.$(uname -m).rpm" \
	"three packages are made, and the sources"
rpmlint -c "$SRC/scripts/packaging/rpmlint.toml" "$PACKAGES"/*.rpm >lint.out 2>&1
is "$?:$(grep -cE ': [EW]: ' lint.out)" 0:0 "rpmlint reports nothing but what rpmlint.toml lists" || diag "$(cat lint.out)"
provides() {
	rpm -qp --provides "$PACKAGES/$1-$FULL.$(uname -m).rpm" 2>/dev/null
}
like "$(provides libcountersink-api-devel)" "pkgconfig\\(countersink-api\\) = $VERSION" "the development package provides pkgconfig(countersink-api)"
like "$(provides libcountersink-api0)" 'libcountersink-api.so.0\(COUNTERSINK_0.1\)' "the library's package provides the versions of its functions"
unlike "$(provides countersink)" 'libcountersink.*\.so' "what is injected is provided to no other package"
for package in $("$SRC/scripts/install-deps" build --list --for dnf | awk '{ print $2 }'); do
	like "$(rpm -qp --requires "$PACKAGES/countersink-$FULL.src.rpm" 2>/dev/null)" "^$package\$" "the source package needs $package"
done

suite=bookworm # There are no systems of rpm's world here: the files are tried in one that has the libraries.
root=$TMP/$suite
ok "a bare $suite" system "$suite" "$root"
inside "$root" sh -c 'apt-get -qq update && apt-get -qq install --no-install-recommends -y perl libcurl4 libdw1 libelf1 libunwind8 zlib1g' >apt.out 2>&1 ||
	diag "$(tail -n 5 apt.out)"
# Directories that each of rpm's systems has; and its database's place, which Debian's rpm has elsewhere.
mkdir -p "$root/var/lib/rpm" "$root/usr/share/licenses" "$root/usr/lib64/pkgconfig"
in_root() {
	rpm --root "$root" --dbpath /var/lib/rpm "$@"
}
files "$root" >before
ok "the packages are installed" in_root --nodeps -i "$PACKAGES"/*."$(uname -m).rpm"
is "$(in_root -q countersink)" "countersink-$FULL.$(uname -m)" "and known to be"
is "$(inside "$root" countersink --version | awk '{ print $2; exit }')" "$VERSION" "the launcher starts"
inside "$root" countersink -o /tmp/p.pb.gz -- perl -e "$BUSY" >run.out 2>run.err
is "$?:$(cat run.out)" "0:done" "a command is profiled, and its output is its own" || diag "$(cat run.err)"
like "$(cat run.err)" 'main::busy' "its functions are named"
ok "events are looked up by the library for programs, without launcher" inside "$root" sh -c \
	"LD_PRELOAD='/usr/lib64/countersink/\$PLATFORM/libcountersink.so' COUNTERSINK_EVENTS=page-faults:u,minor-faults:u COUNTERSINK_OUTPUT=/tmp/alone.pb.gz \
		perl -e 'print 1' && test -s /tmp/alone.pb.gz"
ok "the packages are erased" in_root --nodeps -e countersink libcountersink-api0 libcountersink-api-devel
files "$root" >after
is "$(diff before after)" "" "no file is left"
done_testing
