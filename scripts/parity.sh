#!/bin/sh
# parity.sh: compares every operator with PyTorch (scripts/parity/parity.py), through the C library and then through the
# Python package. It uses the Python that CAIRN_PYTHON names, or python3 if that has PyTorch; else it installs PyTorch
# below .venv/, like `make bench`. With --python it compares the package alone.
set -eu
cd "$(dirname "$0")/.."
python=${CAIRN_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    scripts/peers.sh torch
    python=.venv/torch/bin/python
fi
case " $* " in
*" --search "*) "$python" -c 'import hypothesis' 2>/dev/null || "$python" -m pip install --quiet hypothesis ;;
esac
case " $* " in
*" --python "*) ;;
*) "$python" scripts/parity/parity.py "$@" ;;
esac
PYTHON=$python python/build_inplace.sh > /dev/null
exec "$python" scripts/parity/parity.py --python "$@"
