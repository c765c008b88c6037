#!/usr/bin/env bash
# python.sh COMMAND: builds the Python package with the Python that CAIRN_PYTHON names (default: python3).
#   wheel    the package as build/wheel/cairn-*.whl
#   env      an environment below build/python with that wheel and what the tests need; prints its path
# Nothing is done twice: objects, the environment and its packages are kept and used again.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${CAIRN_PYTHON:-python3}
abi=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
env=build/python/env-$abi
test_packages=(pytest numpy mypy hypothesis)

pip() { "$env/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }

# An environment with the named packages.
make_env() {
    [ -f "$env/ready" ] && [ "$(cat "$env/ready")" = "$*" ] && return
    rm -rf "$env"
    "$python" -m venv "$env"
    pip install "$@" >&2
    pip install onnx onnxruntime >&2 || echo "without onnxruntime: it is not there for this Python" >&2
    echo "$*" >"$env/ready"
}

make_wheel() {
    make_env "setuptools>=77" "${test_packages[@]}"
    mkdir -p build/wheel
    rm -f build/wheel/cairn-*.whl
    local log
    log=$(mktemp)
    # SOURCE_DATE_EPOCH: the same files give the same wheel, byte for byte
    SOURCE_DATE_EPOCH=315532800 pip wheel --no-deps --no-build-isolation -w build/wheel ./python >"$log" 2>&1 ||
        { cat "$log" >&2; rm "$log"; return 1; }
    rm "$log"
}

case ${1:-} in
    wheel)
        make_wheel
        ls build/wheel/cairn-*.whl
        ;;
    env)
        make_wheel
        wheel=$(echo build/wheel/cairn-*.whl)
        if ! cmp -s "$wheel" "$env/installed.whl"; then
            pip install --no-deps --no-index --force-reinstall "$wheel" >&2
            cp "$wheel" "$env/installed.whl"
        fi
        echo "$env"
        ;;
    *)
        sed -n '2,5s/^# //p' "$0" >&2
        exit 2
        ;;
esac
