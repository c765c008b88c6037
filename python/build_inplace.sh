#!/bin/sh
# build_inplace.sh: builds the extension modules into python/cairn, for the Python that PYTHON names (default: python3). Then
# PYTHONPATH=python is enough to work on the package. build_modules.py does it, as it does for wheels.
exec "${PYTHON:-python3}" "$(dirname "$0")/build_modules.py" "$@"
