#!/usr/bin/env bash
# fuzz.sh [SECONDS] [NAME ...]: builds the fuzzers tests/fuzz/fuzz_NAME.c with clang and its sanitizers, and runs each
# for SECONDS (default: 30).
#
# New inputs go to build/fuzz/corpus/NAME, inputs that fail to build/fuzz/failures/. tests/fuzz/corpus/NAME is read
# only.
# To run one input again: build/fuzz/cmake/fuzz_NAME FILE.
# Exit status 1: a fuzzer found something; 77: fuzzers cannot run here.
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
cmake --preset fuzz -Wno-dev --log-level=WARNING >$work/configure.log
cmake --build $work/cmake --target "${names[@]/#/fuzz_}" >$work/build.log || { tail -n 30 $work/build.log; exit 1; }

failed=0
for name in "${names[@]}"; do
    mkdir -p "$work/corpus/$name"
    seeds=()
    [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
    options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1
             -artifact_prefix="$work/failures/$name-")
    dictionary=tests/fuzz/$name.dict
    [ -f "$dictionary" ] && options+=(-dict="$dictionary")
    if ASAN_OPTIONS=allocator_may_return_null=1 "$work/cmake/fuzz_$name" "${options[@]}" "$work/corpus/$name" \
        "${seeds[@]}" >"$work/$name.log" 2>&1; then
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
