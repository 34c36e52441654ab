#!/bin/sh
# Debian 13, as a system and a kernel, with the binary tarball.
exec "$(dirname "$0")/boot" debian_13 trixie trixie "$(dirname "$0")/guest.sh"
