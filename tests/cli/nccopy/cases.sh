# Cases of `nccopy`, read by ../run.sh: how it is called wrongly. What it does is compared with the reference by
# tests/tools/nccopy.py.

test_nccopy() {
    local nccopy=$prefix/bin/nccopy label line
    cp "$here/damage/field.cdl" text.nc
    while IFS='|' read -r label line; do
        # shellcheck disable=SC2086
        golden "nccopy $label" "$here/nccopy/$label.txt" "$nccopy" $line
    done <<'CASES'
none|
unknown|-5 a.nc b.nc
argument|a.nc b.nc -k
kind|-k hdf4 a.nc b.nc
same|a.nc a.nc
one-file|a.nc
missing|a.nc b.nc
no-netcdf|text.nc b.nc
level|-d 12 a.nc b.nc
logging|-L 1 a.nc b.nc
CASES
}
