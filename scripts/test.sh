#!/usr/bin/env bash
# test.sh [OPTIONS]: runs all tests. The last line is "N passed, M failed"; scripts/run_tests.py has the options.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! scripts/setup.sh; then
    echo "0 passed, 1 failed"
    exit 1
fi
exec python3 scripts/run_tests.py "$@"
