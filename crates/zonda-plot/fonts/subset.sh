#!/usr/bin/env bash
# Makes DejaVuSans-subset.ttf anew: DejaVu Sans 2.37 with the letters of European languages, Greek,
# Cyrillic and what units are written with. Wants pyftsubset of fonttools.
#
#   fonts/subset.sh DejaVuSans.ttf
set -euo pipefail
source=$(realpath "$1")
cd "$(dirname "$0")"
pyftsubset "$source" --output-file=DejaVuSans-subset.ttf --no-hinting --layout-features= \
    --legacy-kern --name-IDs='*' --notdef-outline --drop-tables+=GPOS,GSUB,GDEF,MATH,FFTM \
    --unicodes="20-7E,A0-17F,391-3C9,400-45F,2010-2015,2018-201E,2022,2026,2030,2032-2033,\
2070-208E,20AC,2103,2190-2193,2202,2206-2207,2211-2212,221A,221E,2248,2260,2264-2265,FFFD"
