#!/bin/sh
# Debian 12, as a system and a kernel, with the binary tarball.
exec "$(dirname "$0")/boot" debian_12 bookworm bookworm "$(dirname "$0")/guest.sh"
