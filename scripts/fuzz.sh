#!/usr/bin/env bash
# fuzz.sh [SECONDS] [NAME ...]: builds every tests/fuzz/fuzz_NAME.c with clang and its sanitizers, and runs each for SECONDS (30).
#
# New inputs are collected in build/fuzz/corpus/NAME, those that fail in build/fuzz/failures/; what tests/fuzz/corpus/NAME has is
# never written to. To run one input again: build/fuzz/NAME FILE. Exit status 1: something was found; 77: cannot be run here.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-30}
[ $# -gt 0 ] && shift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for file in tests/fuzz/fuzz_*.c; do
        name=$(basename "$file" .c)
        names+=("${name#fuzz_}")
    done
fi

work=build/fuzz
mkdir -p $work/failures
flags=(-std=c17 -O1 -g -D_DEFAULT_SOURCE -ffp-contract=off -fno-math-errno -fno-trapping-math
       -Iinclude -Isrc -Itests -Itests/fuzz)
sanitizers=(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
libraries=(-lm -pthread)

if ! command -v clang >/dev/null; then
    echo "not fuzzed: clang is not installed"
    exit 77
fi
echo 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { (void)p, (void)n; return 0; }' >$work/probe.c
if ! clang -fsanitize=fuzzer,address,undefined $work/probe.c -o $work/probe 2>$work/probe.log; then
    echo "not fuzzed: clang has no fuzzer runtime (the package libclang-rt-dev, or compiler-rt):"
    tail -n 2 $work/probe.log
    exit 77
fi
if printf '#include <zlib.h>\nint main(void) { return !zlibVersion(); }\n' | clang -x c - -lz -o $work/probe 2>/dev/null; then
    flags+=(-DCAIRN_HAVE_ZLIB)
    libraries+=(-lz)
fi

# The library and the tests' dicts, instrumented; but not the kernels: those the tests run under sanitizers, and instrumenting them takes
# minutes. A source is compiled again if it, a header or this script is newer.
newest_header=$(find include src tests/support tests/fuzz scripts/fuzz.sh \( -name '*.h' -o -name '*.def' -o -name fuzz.sh \) -printf '%T@ %p\n' |
                sort -n | tail -n 1 | cut -d' ' -f2-)
compile() { # SOURCE
    local object=$work/objects/${1//\//_}.o
    [ "$object" -nt "$1" ] && [ "$object" -nt "$newest_header" ] && return
    local instruments=("${sanitizers[@]}" -fsanitize=fuzzer-no-link)
    case $1 in src/cpu/* | src/ops/*) instruments=() ;; esac
    clang "${flags[@]}" "${instruments[@]}" -c "$1" -o "$object"
}
export -f compile
export work newest_header
mkdir -p $work/objects
sources=$(find src -name '*.c' | sort; echo tests/support/dicts.c)
declare -p flags sanitizers >$work/flags.sh # arrays are not exported
echo "$sources" | xargs -P "$(nproc)" -I{} bash -c ". $work/flags.sh; compile {}"
objects=()
for source in $sources; do objects+=("$work/objects/${source//\//_}.o"); done

failed=0
for name in "${names[@]}"; do
    clang "${flags[@]}" "${sanitizers[@]}" -fsanitize=fuzzer "tests/fuzz/fuzz_$name.c" "${objects[@]}" "${libraries[@]}" -o "$work/$name"
    mkdir -p "$work/corpus/$name"
    seeds=()
    [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
    options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1
             -artifact_prefix="$work/failures/$name-")
    dictionary=tests/fuzz/$name.dict
    [ -f "$dictionary" ] && options+=(-dict="$dictionary")
    if ASAN_OPTIONS=allocator_may_return_null=1 "$work/$name" "${options[@]}" "$work/corpus/$name" "${seeds[@]}" >"$work/$name.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")
        echo "$name: ${runs:-?} inputs in $seconds s, nothing found"
    else
        failed=1
        echo "$name: FOUND something, see $work/$name.log"
        grep -m 1 -E 'ERROR|runtime error|does not hold' "$work/$name.log" || tail -n 5 "$work/$name.log"
        grep -m 1 'Test unit written' "$work/$name.log" || true
    fi
done
exit $failed
