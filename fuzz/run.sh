#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS (default 600), or only those named, and reports what each
# reached. Seeds are the files of the tests and, where set, of ZONDA_CORPUS.
#
#   fuzz/run.sh [TARGET...]
#
# Needs a nightly compiler and cargo-fuzz: says so where they are missing. The exit status is 1 if
# a target found a failure; its input then lies in fuzz/artifacts/TARGET. Values are not judged here:
# fuzz/differential.py compares what Zonda and a reference library read out of changed files.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-600}
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(
    classic_header classic_file classic_calls layer_spec
    hdf5_message hdf5_structure netcdf4_file filter_decode filter_round_trip cdl trace
    dap2_dds dap2_das dap2_constraint dap2_body dap4_dmr dap4_constraint dap4_body
)

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: needs a nightly compiler: rustup toolchain install nightly" >&2
    exit 1
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: needs cargo-fuzz: cargo install cargo-fuzz" >&2
    exit 1
fi

seeds=out/fuzz/seeds
rm -rf "$seeds"
mkdir -p "$seeds/CDF" "$seeds/HDF"
number=0
add_seeds() {
    local file kind
    while IFS= read -r -d '' file; do
        kind=$(head -c 4 "$file" | tr -d '\0' | grep -aoE 'CDF|HDF' || true)
        [ -n "$kind" ] || continue
        number=$((number + 1))
        cp "$file" "$seeds/$kind/$number"
    done < <(find "$1" -type f -size -64k -print0)
}
for folder in tests/corpus crates/zonda-hdf5/tests/data crates/zonda-nc4/tests/data; do
    add_seeds "$folder"
done
[ -z "${ZONDA_CORPUS-}" ] || add_seeds "$ZONDA_CORPUS/files"
find "$seeds/HDF" -type f -exec python3 fuzz/structure_seeds.py "$seeds/structures" {} +
echo "fuzz: $number seeds, $seconds s a target"

found=0
for target in "${targets[@]}"; do
    corpus=fuzz/corpus/$target
    log=out/fuzz/$target.log
    mkdir -p "$corpus"
    start=()
    case $target in
        classic_header | classic_file) start=("$seeds/CDF") ;;
        hdf5_structure) start=("$seeds/structures") ;;
        netcdf4_file) start=("$seeds/HDF") ;;
        dap2_dds | dap2_das | dap2_body) start=(crates/zonda-dap/tests/data/dap2) ;;
        dap4_dmr | dap4_body) start=(crates/zonda-dap/tests/data/dap4) ;;
        cdl) start=(tests/cdl/cases tests/cdl/faults tests/cli/dump) ;;
    esac
    status=ok
    cargo +nightly fuzz run --fuzz-dir fuzz "$target" "$corpus" "${start[@]}" -- \
        -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 \
        -print_final_stats=1 >"$log" 2>&1 || status=FAIL
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    features=$(sed -n 's/.* ft: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-4s %-18s %10s runs  %6s edges  %6s features\n' \
        "$status" "$target" "${runs:-?}" "${edges:-?}" "${features:-?}"
    if [ "$status" = FAIL ]; then
        found=1
        grep -E "panicked|SUMMARY|Test unit written" "$log" | head -n 5
    fi
done
exit "$found"
