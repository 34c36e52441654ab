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
