# What tests/package/*.t that use packages begin with, after tests/cli/lib.sh: bare systems to install them in. Root only.

[ "$(id -u)" = 0 ] || { echo 'Bail out! root is needed, for systems of their own'; exit 1; }

PACKAGE_SUITES=${PACKAGE_SUITES:-bookworm} # Debian releases to install packages in
KEPT_SYSTEMS=$BUILT/package-systems        # only `make clean` empties it
VERSION=$(make -s -C "$SRC" show-version)

# made KIND OPTION...: the packages of the commit, in $PACKAGES.
made() {
	PACKAGES=$BUILT/packages/$1
	mkdir -p "$PACKAGES"
	rm -f "$PACKAGES"/*
	ok "scripts/package $*" "$SRC/scripts/package" "$@" --output "$PACKAGES"
}

# system SUITE DIRECTORY: a minimal Debian in a directory.
system() {
	mkdir -p "$KEPT_SYSTEMS" "$2"
	[ -e "$KEPT_SYSTEMS/$1.tar" ] || {
		mmdebstrap --quiet --format=tar --variant=minbase "$1" "$KEPT_SYSTEMS/$1.tar.new" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" &&
			mv "$KEPT_SYSTEMS/$1.tar.new" "$KEPT_SYSTEMS/$1.tar"
	} || { echo "Bail out! no system of Debian's $1 could be made"; exit 1; }
	tar -C "$2" --numeric-owner -xf "$KEPT_SYSTEMS/$1.tar"
	cp -L /etc/resolv.conf "$2/etc/resolv.conf"
}

# inside DIRECTORY COMMAND...: runs it in that system, with /proc, /sys and /dev, in mount and PID namespaces of its own.
inside() {
	# shellcheck disable=SC2016 # the inner shell expands these
	unshare --mount --pid --fork --propagation private sh -eu -c '
		mount -t proc proc "$1/proc"
		mount --rbind /sys "$1/sys"
		mount --rbind /dev "$1/dev"
		mount -t tmpfs tmpfs "$1/dev/shm"
		root=$1
		shift
		exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	' sh "$@" </dev/null
}

# files DIRECTORY: its files and directories, but for the package managers' own and temporary ones.
files() {
	(cd "$1" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./tmp -o \
		-path ./proc -o -path ./sys -o -path ./dev \) -prune -o -print | sort)
}

# What a profile of this must name.
BUSY='sub busy { my $s = 0; $s += $_ * $_ for 1 .. 100000; $s } busy() for 1 .. 60; print "done\n"'

# tarball FILE TREE MACHINE READELF: the points of a binary tarball of any machine, unpacked in TREE.
tarball() {
	is "$(tar -tf "$1" | cut -d/ -f1 | sort -u)" "${2##*/}" "all is in one directory"
	is "$(tar --numeric-owner -tvf "$1" | awk '{ print $2 }' | sort -u)" 0/0 "which belongs to root, whatever user made it"
	is "$("$4" -d "$2/bin/countersink" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libm|libc|libdl|libpthread|librt|ld-linux.*)\.so\.[0-9]$')" "" \
		"the launcher needs libraries of glibc alone"
	like "$("$4" -d "$2/bin/countersink")" 'libc\.so\.6' "and that one, so that it can load others"
	for file in bin/countersink lib/countersink/libcountersink.so lib/libcountersink-api.so; do
		unlike "$("$4" -SW "$2/$file")" '\.debug_info' "$file is stripped"
	done
	like "$(head -n 1 "$2/README")" "^countersink $VERSION for Linux on $3\$" "README has the machine"
	# The README names the glibc that is needed; it is compared with what the loader checks.
	glibc=$(sed -n 's/^Needs: glibc \([0-9.]*\) or later.*/\1/p' "$2/README")
	is "$(find "$2" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec "$4" -V {} + 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)" \
		"$glibc" "README has the glibc that it needs ($glibc)"
	third=$2/share/doc/countersink/THIRD-PARTY
	like "$(head -n 1 "$third")" 'Debian GNU/Linux 11' "THIRD-PARTY has the release whose libraries they are"
	for project in bzip2 elfutils libiberty libunwind xz-utils zlib; do
		like "$(cat "$third")" "^  $project [0-9:]" "THIRD-PARTY has the version of $project"
	done
	for licence in GPL-2 LGPL-3; do
		like "$(grep -A8 "^======== $licence =" "$third")" 'GNU (LESSER )?GENERAL PUBLIC LICENSE' "and the text of $licence"
	done
	ok "the licence is there" cmp "$SRC/LICENSE" "$2/share/doc/countersink/LICENSE"
}
