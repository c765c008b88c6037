#!/bin/sh
# onnx.sh [MODEL.onnx...]: runs the backend node suite of the PyPI package `onnx`, or models that are given, whose
# results are compared with onnxruntime's. Everything goes below build/onnx, once.
#   onnx.sh make     only makes what the stage `onnx` of the tests needs: the environment, the cases, gradients, models
#   onnx.sh env      only makes the environment; prints its Python
# It uses the Python that CAIRN_ONNX_PYTHON names; else it installs onnx and onnxruntime below .venv/onnx.
set -eu
cd "$(dirname "$0")/.."
python=${CAIRN_ONNX_PYTHON:-.venv/onnx/bin/python}
if ! "$python" -c 'import ml_dtypes, numpy, onnx, onnxruntime' 2>/dev/null; then
    python=.venv/onnx/bin/python
    [ -x "$python" ] || python3 -m venv .venv/onnx
    "$python" -m pip install --quiet --disable-pip-version-check onnx onnxruntime numpy ml_dtypes
fi
case ${1:-} in
env)
    echo "$python"
    exit
    ;;
make)
    "$python" tests/onnx/make_cases.py build/onnx/cases
    "$python" tests/onnx/make_gradients.py build/onnx/gradients
    "$python" tests/onnx/make_drawn.py build/onnx/drawn
    exec "$python" tests/onnx/get_models.py build/onnx/models
    ;;
esac
cmake --build build --target test_onnx_cases >/dev/null
if [ $# -gt 0 ]; then
    "$python" tests/onnx/make_models.py build/onnx/given "$@"
    exec build/tests/test_onnx_cases build/onnx/given ""
fi
"$python" tests/onnx/make_cases.py build/onnx/cases
exec build/tests/test_onnx_cases build/onnx/cases --expected tests/onnx/expected.txt
