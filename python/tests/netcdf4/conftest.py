# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests here import `differential.py` beside them, however pytest imports tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
