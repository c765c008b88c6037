#!/usr/bin/env bash
# Installs into a temporary place, moves it, and uses it from there: by pkg-config and by find_package.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A moved installation shows any path that was fixed at build time.
cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
"$work/prefix/bin/cairn" --version >/dev/null
cp "$here/main.c" "$here/CMakeLists.txt" "$here/../../examples/04_custom_operator.c" "$work"
cd "$work"

pc=$(find "$work/prefix" -name cairn.pc)
library_dir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH=$library_dir

echo "pkg-config, shared"
cc -std=c17 main.c -o by_pkg_config $(pkg-config --cflags --libs cairn)
./by_pkg_config
readelf -d by_pkg_config | grep -q 'NEEDED.*libcairn\.so\.0'

echo "operators of a user's own, with kernels for CPU and GPU, from installed headers alone"
sed -i 's,"cairn/cairn.h",<cairn/cairn.h>,' 04_custom_operator.c
cc -std=c17 -Wall -Wextra -Werror 04_custom_operator.c -o own_operators $(pkg-config --cflags --libs cairn) -lm
./own_operators >/dev/null

echo "pkg-config, static"
cc -std=c17 main.c -o by_pkg_config_static $(pkg-config --cflags cairn) "$library_dir/libcairn.a" \
    $(pkg-config --static --libs-only-other --libs-only-l cairn | sed 's/-lcairn//')
env -u LD_LIBRARY_PATH ./by_pkg_config_static

echo "find_package"
cmake -S . -B out -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build out
out/with_shared
env -u LD_LIBRARY_PATH out/with_static
