#!/bin/sh
# check_documents.sh: checks that the programs and the commands in README.md and docs/onnx.md run as written, that every
# file and make target in the documents exists, and every function that docs/torch-names.md names.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

line=$(sed -n "s,^cc program.c \(.*\) -o program && .*,\1,p" README.md) # tests/test_linking.py tries it on all examples
run_program() { # document, the beginning of the last line
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$1" > "$dir/program.c"
    cc -std=c17 -Wall -Wextra "$dir/program.c" $line -o "$dir/program"
    (cd "$dir" && ./program) > "$dir/out"
    tail -n 1 "$dir/out" | grep -q "^$2" ||
        { echo "$1: the program must end with '$2', got:"; cat "$dir/out"; exit 1; }
}
run_program README.md 'step 1000  loss 0\.00'
run_program docs/onnx.md 'step 500  loss 0\.0'

# The commands of the documents as written, with fewer steps and workloads, in a folder that has their files. On a software
# GPU if scripts/gpu.sh has installed one; those that need a GPU are left out otherwise.
root=$PWD
ln -s "$root/build" "$root/docs" "$root/README.md" "$dir"
run_commands() { # document, least number of commands
    grep -E '^build/cairn ' "$1" | sed 's/ *#.*//; s/--steps [0-9]*/--steps 3/
        s/\(bench .*\)$/\1 --only mlp-tiny,batch-sizes --seconds 0.01/' > "$dir/commands"
    [ "$(wc -l < "$dir/commands")" -ge "$2" ] ||
        { echo "$1: expected at least $2 lines that begin with build/cairn"; exit 1; }
    if [ -f build/gpu/env.sh ]; then
        . build/gpu/env.sh
    else
        gpu_wgpu_lavapipe() { "$@"; }
        sed -i '/gpu/d' "$dir/commands"
    fi
    (cd "$dir" && gpu_wgpu_lavapipe sh -e ./commands) > "$dir/out" 2>&1 ||
        { echo "$1: a command failed:"; cat "$dir/out"; exit 1; }
}
run_commands README.md 3
run_commands docs/cpu-or-gpu.md 4
run_commands docs/onnx.md 5

bad=0
for name in $(grep -ohE '\]\(([a-zA-Z_./-]+)\)' README.md CONTRIBUTING.md docs/*.md | tr -d '()]'); do
    [ -e "$name" ] || [ -e "docs/$name" ] || { echo "a document links to $name, which does not exist"; bad=1; }
done
created=$(grep -ohE '^Create `[a-zA-Z0-9_./-]+`' docs/*.md | sed 's/^Create //' | tr -d '`') # by a walk-through
folders='src|tests|examples|docs|tools|bench|scripts|include'
for name in $(grep -ohE '`('$folders')/[a-zA-Z0-9_./-]+`' README.md CONTRIBUTING.md docs/*.md | tr -d '`'); do
    case $name in *FAMILY*|*NAME*) continue ;; esac
    echo "$created" | grep -qxF "$name" && continue
    [ -e "$name" ] || { echo "a document names $name, which does not exist"; bad=1; }
done
targets=$(grep -ohE '(^|`)make [a-z][a-z-]*' README.md CONTRIBUTING.md docs/*.md | sed 's/.*make //' | sort -u)
for target in $targets; do
    grep -qE "^([a-z -]+ )?$target( [a-z -]+)?:" Makefile ||
        { echo "a document says make $target, which the Makefile does not have"; bad=1; }
done
cat include/cairn/*.h include/cairn/ops/*.h > "$dir/headers"
for name in $(grep -ohE '`(cn|CN)_[a-zA-Z0-9_]+' docs/torch-names.md | tr -d '`' | sort -u); do
    grep -qw "$name" "$dir/headers" || { echo "docs/torch-names.md names $name, which no header has"; bad=1; }
done
exit $bad
