#!/usr/bin/env bash
# check_symbols.sh [LIBRARY]: checks that the shared library (default: build/libcairn.so) exports only what the public
# headers declare.
set -euo pipefail
cd "$(dirname "$0")/.."

library=${1:-build/libcairn.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '{ print $NF }' | sort -u >"$work/exported"

# Preprocessed, so that declarations by macros count.
for header in include/cairn/*.h; do
    echo "#include \"${header#include/}\""
done | cc -std=c17 -Iinclude -E -P - | grep -oE '\bcn_[A-Za-z0-9]\w*' | sort -u >"$work/declared"

if [ ! -s "$work/exported" ]; then
    echo "$library exports nothing"
    exit 1
fi
offenders=$(comm -23 "$work/exported" "$work/declared")
if [ -n "$offenders" ]; then
    echo "exported by $library but not declared in include/cairn:"
    echo "$offenders"
    exit 1
fi
echo "$(wc -l <"$work/exported") exported symbols, all declared"
