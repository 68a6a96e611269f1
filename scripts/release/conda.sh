#!/usr/bin/env bash
# A part of scripts/release.sh: checks the recipe for conda. It builds no package: conda's own packages cannot be had everywhere.
set -euo pipefail

if ! "$ZONDA_TOOLS" -c 'import rattler_build' 2>/dev/null; then
    echo "skipped: no py-rattler-build in $ZONDA_TOOLS to check the recipe with"
    exit 0
fi
"$ZONDA_TOOLS" - "$ZONDA_VERSION" <<'PYTHON'
import sys

from rattler_build import Stage0Recipe

recipe = Stage0Recipe.from_file("scripts/release/conda/recipe.yaml")
variants = recipe.render()
made = variants[0].recipe
got = (str(made.package.name), str(made.package.version))
if got != ("zonda", sys.argv[1]):
    sys.exit(f"conda.sh: the recipe makes {got}, not zonda {sys.argv[1]}")
print(f"the recipe renders ({len(variants)} variant of {' '.join(got)}); it is checked only, no package was built")
PYTHON
