#!/bin/sh
# onnx.sh [MODEL.onnx...]: runs the backend node suite of the PyPI package `onnx`, or models that are given, whose
# results are compared with onnxruntime's. Cases go to build/onnx/. It uses the Python that CAIRN_ONNX_PYTHON names; else
# it installs onnx and onnxruntime below .venv/onnx.
set -eu
cd "$(dirname "$0")/.."
python=${CAIRN_ONNX_PYTHON:-.venv/onnx/bin/python}
if ! "$python" -c 'import onnx, onnxruntime' 2>/dev/null; then
    python3 -m venv .venv/onnx
    python=.venv/onnx/bin/python
    "$python" -m pip install --quiet onnx onnxruntime numpy ml_dtypes
fi
cmake --build build --target test_onnx_cases >/dev/null
if [ $# -gt 0 ]; then
    "$python" tests/onnx/make_models.py build/onnx/models "$@"
    exec build/tests/test_onnx_cases build/onnx/models ""
fi
"$python" tests/onnx/make_cases.py build/onnx/cases
exec build/tests/test_onnx_cases build/onnx/cases
