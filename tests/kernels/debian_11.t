#!/bin/sh
# Debian 11, as a system and a kernel, with the binary tarball.
exec "$(dirname "$0")/boot" debian_11 bullseye bullseye "$(dirname "$0")/guest.sh"
