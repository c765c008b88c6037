#!/usr/bin/env bash
# setup.sh: installs the tools that building and testing need, or those that are named. Does nothing if they are there.
#   scripts/setup.sh [gcc g++ make cmake ninja clang clang-rt clang-format clang-tidy pkg-config python3
#                     python3-dev python3-venv zlib png jpeg lapack aarch64-gcc qemu-aarch64 musl-gcc]
# Only when they are named: emscripten chromium npm, for scripts/web.sh; mingw-gcc wine, for Windows.
set -euo pipefail

[ $# -gt 0 ] || set -- gcc g++ make cmake ninja clang clang-rt clang-format clang-tidy pkg-config python3 \
    python3-dev python3-venv zlib png jpeg lapack aarch64-gcc qemu-aarch64 musl-gcc

header() { echo "#include <stdio.h>
#include <$1>" | cc -E - >/dev/null 2>&1; }

present() {
    case $1 in
        clang-rt) [ -d "$(clang --print-runtime-dir 2>/dev/null)" ] ;;
        python3-dev) python3 -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' 2>/dev/null ;;
        python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
        zlib) header zlib.h ;;
        png) header png.h ;;
        jpeg) header jpeglib.h ;;
        lapack) [ -n "$(ls /usr/lib/*/liblapack.so.3 /usr/lib*/liblapack.so.3 2>/dev/null)" ] ;; # no header is needed
        emscripten) command -v emcc >/dev/null ;;
        aarch64-gcc) command -v aarch64-linux-gnu-gcc >/dev/null && [ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] ;;
        mingw-gcc) command -v x86_64-w64-mingw32-gcc-posix >/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

package() {
    case $1 in
        gcc | g++ | make) echo build-essential ;;
        ninja) echo ninja-build ;;
        clang-rt) # the version of clang; the default version of the system if clang is not installed yet
            if command -v clang >/dev/null; then echo "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"; else echo libclang-rt-dev; fi ;;
        zlib) echo zlib1g-dev ;;
        png) echo libpng-dev ;;
        jpeg) echo libjpeg-dev ;;
        lapack) echo liblapack3 ;;
        aarch64-gcc) printf '%s\n' gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
        qemu-aarch64) echo qemu-user ;;
        musl-gcc) echo musl-tools ;;
        mingw-gcc) echo gcc-mingw-w64-x86-64-posix ;;
        wine) printf '%s\n' wine wine64 ;;
        *) echo "$1" ;;
    esac
}

packages=()
for tool in "$@"; do
    present "$tool" || mapfile -t -O ${#packages[@]} packages < <(package "$tool")
done
[ ${#packages[@]} -gt 0 ] || exit 0
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)

give_up() {
    echo "setup: $1; please install: ${packages[*]}" >&2
    exit 1
}

command -v apt-get >/dev/null || give_up "no apt-get on this system"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || give_up "not root and no sudo"
    as_root=(sudo)
fi

echo "setup: installing ${packages[*]}"
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}"
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The package lists may be missing or old: they are updated only if the first attempt fails.
install >"$log" 2>&1 || { "${as_root[@]}" apt-get update -qq >>"$log" 2>&1 && install >>"$log" 2>&1; } || {
    tail -n 5 "$log" >&2
    give_up "apt-get failed"
}
