#!/usr/bin/env python3
"""Whether a recording of known.c says what that program did, in each form that `zonda trace` gives it.

    recording.py ZONDA TRACE classic|deflate|async
"""

import html.parser
import json
import re
import subprocess
import sys

zonda, trace, kind = sys.argv[1:]


def run(*options):
    done = subprocess.run([zonda, "trace", *options, trace], capture_output=True, text=True, check=True)
    return done.stdout


everything = json.loads(run("--json", "--chrome", "out.json", "--html", "out.html"))
(process,) = everything["processes"]
calls = process["calls"]
assert everything["lost"] == 0 and everything["torn"] is None, everything
counts = {name: call["count"] for name, call in calls.items()}
expected = {"nc_create": 1, "nc_open": 1, "nc_close": 2, "nc_enddef": 1, "nc_def_dim": 2, "nc_def_var": 2,
            "nc_put_vara": 8, "nc_put_var": 1, "nc_get_var": 1, "nc_get_var1": 3}
assert {name: counts.get(name) for name in expected} == expected, counts
assert calls["nc_put_vara"]["errors"] == 1 and calls["nc_put_var"]["errors"] == 0, calls
assert process["get_bytes"] == 7 * 1000 * 8 + 3 * 8, process["get_bytes"]
# The refused put is of one element; the others have 1000.
assert process["put_bytes"] == 8 * 1000 * 8 + 8, process["put_bytes"]
variables = {variable["name"]: variable for variable in process["variables"]}
assert variables["temp"]["put"]["count"] == 8 and variables["temp"]["get"]["bytes"] == 56024, variables
assert variables["wind"]["put"]["bytes"] == 8000 and variables["wind"]["get"]["count"] == 0, variables
# In calls, and in what they are made of: no more than there was.
assert 0 < process["called_ns"] <= process["ns"], process
assert sum(process["caller_ns"].values()) <= process["called_ns"] * 1.05 + 1e5, process

(file,) = process["files"]
assert file["path"].endswith(".nc"), file
layers = sorted(file["layers"].values(), key=lambda layer: layer["depth"])
assert [layer["token"] for layer in layers] == ["cache", "file"], layers
assert all(layer["openings"] == 2 for layer in layers), layers
size = int(subprocess.run(["stat", "-c", "%s", file["path"]], capture_output=True, text=True).stdout)
assert layers[1]["write"]["end"] == size and layers[1]["write"]["errors"] == 0, (layers, size)
if kind == "classic":
    # As floats, and as doubles; more than that is header. The cache writes no more than it got.
    assert layers[0]["write"]["bytes"] >= 7 * 4000 + 8000, layers
    assert layers[1]["write"]["bytes"] <= layers[0]["write"]["bytes"] + layers[0]["fill"]["bytes"], layers
else:
    filters = process["filters"]
    assert filters["deflate"]["count"] >= 1 and filters["shuffle"]["bytes"] >= 28000, filters
    assert filters["undo deflate"]["count"] >= 1, filters
    hits = process["stages"]["chunk in cache"]
    assert hits["count"] >= 2 and hits["bytes"] >= 2 * 4000, hits
if kind == "async":
    queue = process["queue"]
    assert queue["accepted"]["count"] == queue["executed"]["count"] == 8, queue
    assert queue["most_bytes"] > 0, queue

# The form of Chrome and Perfetto.
events = json.load(open("out.json"))["traceEvents"]
complete = [event for event in events if event["ph"] == "X"]
for event in events:
    assert {"ph", "name", "pid", "tid"} <= event.keys() and event["pid"] == process["pid"], event
    assert event["ph"] in "XiCM", event
    assert event["ph"] == "M" or event["ts"] >= 0, event
    assert event["ph"] != "X" or event["dur"] >= 0, event
assert sum(event["name"] == "nc_put_vara" for event in complete) == 8
assert any(event.get("args", {}).get("variable") == "temp" for event in complete)


class Page(html.parser.HTMLParser):
    open_tags = []
    kinds = set()
    void = {"meta", "br", "img", "link", "input"}

    def handle_starttag(self, tag, attrs):
        self.kinds.add(tag)
        for name, value in attrs:
            # Nothing from elsewhere: pictures within SVG are data, and a namespace is no address.
            assert name == "xmlns" or not re.match(r"\s*(https?:|//)", value or ""), (tag, name, value)
        if tag not in self.void:
            self.open_tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.kinds.add(tag)

    def handle_endtag(self, tag):
        assert self.open_tags and self.open_tags.pop() == tag, (tag, self.open_tags[-5:])


text = open("out.html").read()
page = Page()
page.feed(text)
assert not page.open_tags and "script" not in page.kinds and {"svg", "table"} <= page.kinds, page.kinds
for title in ["Time per stage", "Rest of calls: ", "Where in the file, over time", "Throughput", "Sizes that the format"]:
    assert title in text, title
assert ("Write-behind: bytes accepted" in text) == (kind == "async")

lines = run()
assert re.search(r"^ +nc_put_vara +8 +1 +56_008 ", lines, re.M), lines
print(f"{process['events']} events")
