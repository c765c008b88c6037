#!/usr/bin/env bash
# Runs every test. The last line is "N passed, M failed"; see scripts/run_tests.py for the options.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! scripts/setup.sh; then
    echo "0 passed, 1 failed"
    exit 1
fi
exec python3 scripts/run_tests.py "$@"
