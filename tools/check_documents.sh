#!/bin/sh
# check_documents.sh: the program in README.md compiles and runs as written; every file and target the documents name is there.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md > "$dir/program.c"
cc -std=c17 -Wall -Wextra "$dir/program.c" -Iinclude build/libcairn.a -lm -lpthread -o "$dir/program"
"$dir/program" > "$dir/out"
tail -n 1 "$dir/out" | grep -q '^step 1000  loss 0\.00' || { echo "README.md: the program learned something else:"; cat "$dir/out"; exit 1; }

# The commands of the README, as written but for their length, in a folder that has what they name.
root=$PWD
ln -s "$root/build" "$root/docs" "$root/README.md" "$dir"
grep -E '^build/cairn ' README.md | sed 's/ *#.*//; s/--steps [0-9]*/--steps 3/' > "$dir/commands"
[ "$(wc -l < "$dir/commands")" -ge 3 ] || { echo "README.md: no commands found"; exit 1; }
(cd "$dir" && sh -e ./commands) > "$dir/out" 2>&1 || { echo "README.md: a command failed:"; cat "$dir/out"; exit 1; }

bad=0
for name in $(grep -ohE '\]\(([a-zA-Z_./-]+)\)' README.md CONTRIBUTING.md docs/*.md | tr -d '()]'); do
    [ -e "$name" ] || [ -e "docs/$name" ] || { echo "a document links to $name, which is not there"; bad=1; }
done
for name in $(grep -ohE '`(src|tests|examples|docs|tools|bench|scripts|include)/[a-zA-Z0-9_./-]+`' README.md CONTRIBUTING.md docs/*.md | tr -d '`'); do
    case $name in *FAMILY*|*NAME*|src/gpu*|src/dist*) continue ;; esac
    [ -e "$name" ] || { echo "a document names $name, which is not there"; bad=1; }
done
for target in $(grep -ohE '(^|`)make [a-z][a-z-]*' README.md CONTRIBUTING.md docs/*.md | sed 's/.*make //' | sort -u); do
    grep -qE "^([a-z -]+ )?$target( [a-z -]+)?:" Makefile || { echo "a document says make $target, which the Makefile does not have"; bad=1; }
done
exit $bad
