#!/usr/bin/env bash
# web.sh COMMAND: Cairn for browsers, by Emscripten: docs/web.md.
#   package      build/web/package, and build/web/cairn-VERSION.tgz as npm pack makes it
#   page         build/web/page: the page with its three rooms, a folder for any static host
#   programs     what the tests run in a browser besides: build/web/tests
#   test NAME..  runs tests of web/tests/run.mjs in a headless Chromium (default: all)
#   rooms NAME.. drives the page's rooms in a headless Chromium: web/tests/rooms.mjs (default: all)
#   bench ..     training in a headless Chromium, Cairn and its peers in turns: bench/browser/bench.mjs has the options
#   sizes        bytes of the files of package and page, compressed
set -euo pipefail
cd "$(dirname "$0")/.."
export NODE_PATH=/usr/share/nodejs # where Debian's Emscripten finds its optimizer
package=build/web/package
page=build/web/page
face=({autograd,cairn,callbacks,context,data,indexing,memory,nn,operators,optim,tensor}.js)

configure() { [ -f "$2/build.ninja" ] || cmake --preset "$1" -Wno-dev --log-level=WARNING >/dev/null; }

make_package() {
    scripts/setup.sh gcc g++ cmake ninja python3 emscripten npm
    configure release build
    cmake --build build --target operators_json >/dev/null
    configure web build/web
    cmake --build build/web --target cairn_web
    mkdir -p $package/wasm
    cp build/web/wasm/{single,async,threads}.{js,wasm} build/web/wasm/threads.worker.js $package/wasm/
    cp "${face[@]/#/web/}" web/package.json build/web/generated/web/{tables.js,cairn.d.ts} LICENSE $package/
    cp docs/web.md $package/README.md
    version=$(sed -n 's/^project(cairn VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
    sed -i "s/\"version\": \".*\"/\"version\": \"$version\"/" $package/package.json
    npm pack --silent --pack-destination build/web ./$package
}

make_page() {
    scripts/setup.sh cmake ninja python3 emscripten
    scripts/get_digits.sh || echo "web.sh: the page has no digits: its room \"see\" asks for idx files" >&2
    configure web build/web
    cmake --build build/web --target cairn_web_page
    mkdir -p $page/wasm
    cp build/web/rooms/{single,threads}.{js,wasm} build/web/rooms/threads.worker.js $page/wasm/
    for file in web/page/*.{html,css,js,svg}; do # without indentation, and comments that are lines of their own
        sed -E '/^\s*\/\*.*\*\/\s*$/d; /^\s*\/\*/,/\*\/\s*$/d; /^\s*\/\//d; s/^\s+//' "$file" >"$page/${file##*/}"
    done
    python3 web/page/make_data.py $page
}

make_programs() {
    scripts/setup.sh chromium
    cmake --build build --target web_gpt next_token cairn_cli
    cmake --build build/web --target test_ops test_gpu_ops web_gpt web_steps
    mkdir -p build/web/npm
    [ -d build/web/npm/node_modules/typescript ] ||
        npm install --silent --no-audit --no-fund --prefix build/web/npm playwright-core typescript
}

# One that cannot be installed is left out of the tables.
get_peers() {
    mkdir -p build/web/peers
    for peer in "@jax-js/jax@0.1.25" \
        "@tensorflow/tfjs@4.22.0 @tensorflow/tfjs-backend-wasm@4.22.0 @tensorflow/tfjs-backend-webgpu@4.22.0"; do
        [ -d "build/web/peers/node_modules/${peer%%@[0-9]*}" ] ||
            npm install --silent --no-audit --no-fund --prefix build/web/peers $peer ||
            echo "web.sh: npm cannot install $peer" >&2
    done
}

case ${1:-} in
    package) make_package ;;
    page) make_page ;;
    programs) make_programs ;;
    test)
        shift
        [ $# -gt 0 ] || set -- types ops gpu-ops gpt steps lost api-single api-threads api-gpu api-async
        node web/tests/run.mjs "$@"
        ;;
    rooms)
        shift
        node web/tests/rooms.mjs "$@"
        ;;
    bench)
        shift
        scripts/setup.sh chromium npm
        [ -d $package/wasm ] || make_package
        [ -d build/web/npm/node_modules/playwright-core ] ||
            npm install --silent --no-audit --no-fund --prefix build/web/npm playwright-core typescript
        [ "${1:-}" = --smoke ] || get_peers
        node bench/browser/bench.mjs "$@"
        ;;
    sizes)
        for file in $package/*.js $package/wasm/* $page/*.{html,css,js,svg} $page/wasm/*; do
            node -e 'const z = require("zlib"), bytes = require("fs").readFileSync(process.argv[1]);
                     console.log(process.argv[1].padEnd(40), bytes.length, "gzip", z.gzipSync(bytes, { level: 9 }).length,
                                 "brotli", z.brotliCompressSync(bytes).length)' "$file"
        done
        ;;
    *)
        sed -n '2,9s/^# //p' "$0" >&2
        exit 2
        ;;
esac
