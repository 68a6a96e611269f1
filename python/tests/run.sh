#!/usr/bin/env bash
# The tests of the Python package, on the package as it is installed: builds the wheel from dist/, installs it into
# out/python, and runs pytest. Arguments go to pytest.
#
# ZONDA_PYTHON_TESTS names an environment (its python) with requirements.txt and the package; then nothing is made.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${ZONDA_PYTHON_TESTS-}
if [ -z "$python" ]; then
    for name in python3.13 python3.12 python3.11 python3; do
        # There may be a name of it without an interpreter behind.
        if "$name" -c 'import venv' 2>/dev/null; then
            base=$name
            break
        fi
    done
    if [ ! -x out/python/bin/python ]; then
        "$base" -m venv out/python
    fi
    python=$PWD/out/python/bin/python
    if ! "$python" -m pip install --quiet --disable-pip-version-check -r python/tests/requirements.txt; then
        echo "skipped: the packages that the tests need cannot be had (python/tests/requirements.txt)"
        exit 0
    fi
    scripts/wheel.sh out/wheels "$python"
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps out/wheels/zonda-*-abi3-*.whl
fi
# What is typed is checked where it is written.
"$python" -m mypy
# From another folder: what is tested is what is installed, not what lies here.
timeout 1200 "$python" -m pytest -q -n "${ZONDA_PYTHON_JOBS:-2}" --dist loadfile "${@:-python/tests}"
