#!/bin/bash
# Builds python/cairn/_C*.so and _micrograd*.so in place, for the Python that $PYTHON names (default: python3).
set -e
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e build/build.ninja ] || cmake --preset release > /dev/null
ninja -C build cairn_static operators_json > build/python.log || { tail -30 build/python.log; exit 1; }
mkdir -p build/python
python3 python/src/generate.py build/operators.json build/python/functions.c
flags="-O2 -g0 -std=gnu17 -fPIC -fvisibility=hidden -Wall -Wextra -Wno-missing-field-initializers -Iinclude -Ipython/src -I$include"
build() { # object, source: if the source or a header is newer
    if [ ! -e "$1" ] || [ "$2" -nt "$1" ] || [ -n "$(find python/src include -name '*.h' -newer "$1" -print -quit)" ]; then
        ${CC:-ccache gcc} $flags ${3:-} -c "$2" -o "$1"
    fi
}
objects=""
for source in python/src/*.c; do
    object=build/python/$(basename "$source" .c)$suffix.o
    build "$object" "$source" &
    objects="$objects $object"
done
build build/python/functions$suffix.o build/python/functions.c -Os &
wait
gcc -shared -o "python/cairn/_C$suffix" $objects build/python/functions$suffix.o build/libcairn.a -Wl,--exclude-libs,ALL -lm -lpthread -ldl
echo "python/cairn/_C$suffix"
