"""Whether what `zonda tune --json` told fits together, and is of known.c: told.py FILE PUTS [SPEC-TRIED ...]"""

import json
import statistics
import sys

told = json.load(open(sys.argv[1]))
tried = told["tried"]
done = [one for one in tried if one["median"] is not None]
assert len(told["files"]) == 1 and told["files"][0].endswith("known.nc"), told["files"]
# Seven records of floats, an array of doubles, and all of the floats once more.
assert told["bytes"] > 7 * 4000 + 8000 + 7 * 4000 and told["accesses"] > int(sys.argv[2]), told
assert told["ranked"] == len(done) >= 5 and 1 <= told["default_rank"] <= told["ranked"], told
assert [one["median"] for one in done] == sorted(one["median"] for one in done), done
assert done[0]["spec"] == told["best"] and tried[told["default_rank"] - 1]["spec"] == told["default"], told
assert all(one["median"] == statistics.median(one["seconds"]) for one in done), done
default = tried[told["default_rank"] - 1]
assert abs(told["gain"] - default["median"] / done[0]["median"]) < 1e-9 and told["gain"] >= 1, told
if told["environment"] is None:
    assert told["gain"] < 1.03, told
else:
    assert told["environment"].startswith("ZONDA_IO=") and "throttle" not in told["environment"], told
# Some devices have no O_DIRECT; but no stack makes other bytes of a file.
assert not any("other bytes" in (one["failed"] or "") for one in tried), tried
specs = [one["spec"] for one in tried]
assert len(set(specs)) == len(specs) and set(sys.argv[3:]) <= set(specs), specs
