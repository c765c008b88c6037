#!/bin/sh
# parity.sh: compares every operator with PyTorch (scripts/parity/parity.py). It uses the Python that CAIRN_PYTHON names,
# or python3 if that has PyTorch; else it installs PyTorch below .venv/, like `make bench`.
set -eu
cd "$(dirname "$0")/.."
python=${CAIRN_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    scripts/peers.sh torch
    python=.venv/torch/bin/python
fi
exec "$python" scripts/parity/parity.py "$@"
