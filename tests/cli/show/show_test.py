"""What `tarn show` writes, without a browser. TAP on stdout.

    show_test.py SOURCE TARN"""
import csv
import itertools
import json
import os
import re
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree

import rules
from subjects import HOSTILE, Tarn, break_plan, columns_of, hostile_graph, large_graph, running_sums, unpacked

SOURCE, tarn = sys.argv[1], Tarn(os.path.abspath(sys.argv[2]))
GRAPHS = {name: os.path.join(SOURCE, "examples/graphs", name + ending) for name, ending in {
    "figure2": ".json", "figure7": ".json", "alexnet_b1_adam.ddp": ".json",
    "googlenet_b1_adam.ddp_branch4": ".json.gz", "bert_base_b1_adam.ddp": ".json.gz"}.items()}
SVG = "{http://www.w3.org/2000/svg}"


def drawn(name, kind, *words, code=0):
    """The path of a picture of a graph of GRAPHS, or of a file."""
    graph = GRAPHS.get(name, name)
    path = f"{os.path.basename(graph)}.{len(os.listdir('.'))}.{kind}"
    tarn("show", graph, *words, "-o", path, code=code)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# ---- Rules ----

def a_page_has_the_figures_of_info_and_plan():
    for name, graph in GRAPHS.items():
        tarn("plan", graph, "-o", name + ".plan")
        page, info, plan = columns_of(drawn(name, "html", name + ".plan")), tarn.json("info", graph), tarn.json("plan", graph)
        assert page["serialPeak"] == info["serial_peak_bytes"], name
        assert page["sum"] == info["sum_bytes"] == sum(page["holder"]["size"]), name
        assert page["footprint"] == plan["footprint_bytes"] and page["bound"] == plan["bound_bytes"], name
        assert len(page["holder"]["name"]) == info["storages"] and len(page["streams"]) == info["streams"], name
        assert len(page["launch"]["name"]) == info["ops"] - info["views"], name
        assert len(page["waits"]) // 2 == plan["events"]["kept"], name
        assert len(page["previousWaits"]) // 2 == plan["events"]["boundary"], name
        assert sum(page["launch"]["cost"]) == info["cost_ns"] or info["views"] > 0, name
        assert sum(size for _, _, _, size, _ in page["persistent"]) == info["persistent_bytes"], name


def offsets_and_names_in_a_page_are_those_of_the_plan():
    tarn("plan", GRAPHS["alexnet_b1_adam.ddp"], "-o", "offsets.plan")
    page, plan, graph = columns_of(drawn("alexnet_b1_adam.ddp", "html", "offsets.plan")), json.loads(read("offsets.plan")), json.loads(read(GRAPHS["alexnet_b1_adam.ddp"]))
    storages = {(graph["tensors"][root]["name"], offset, size) for root, offset, size in plan["storages"]}
    storages |= {(graph["ops"][op]["name"], offset, size) for op, offset, size in plan["workspaces"]}
    assert storages == set(zip(unpacked(page["holder"]["name"]), page["holder"]["offset"], page["holder"]["size"]))
    ops = [graph["ops"][op]["name"] for op in running_sums(page["launch"]["op"])]
    assert ops == list(unpacked(page["launch"]["name"]))


def memory_spaces_in_a_page_lie_one_behind_the_other():
    graph = os.path.join(SOURCE, "examples/graphs/offload.json")
    tarn("plan", graph, "-o", "spaces.plan")
    plan = json.loads(read("spaces.plan"))
    tarn("show", graph, "spaces.plan", "-o", "spaces.html")
    page, begin = columns_of("spaces.html"), 0
    assert [space["name"] for space in page["spaces"]] == ["device", "host"]
    for space, made in zip(page["spaces"], plan["spaces"]):
        assert (space["begin"], space["footprint"], space["bound"]) == (begin, made["footprint_bytes"], made["bound_bytes"])
        begin += made["footprint_bytes"]
    assert page["footprint"] == begin and page["spaces"][1]["capacity"] == 64 << 20
    for offset, size, space in zip(page["holder"]["offset"], page["holder"]["size"], page["holder"]["space"]):
        assert page["spaces"][space]["begin"] <= offset <= offset + size <= page["spaces"][space]["begin"] + page["spaces"][space]["footprint"]


def every_kind_of_picture_tells_memory_spaces_apart():
    graph = os.path.join(SOURCE, "examples/graphs/offload.json")
    spaces, info = tarn.json("plan", graph, "-o", "apart.plan")["spaces"], tarn.json("info", graph)
    page = columns_of(drawn(graph, "html", "apart.plan"))
    assert [(s["name"], s["footprint"], s["bound"], s["persistentBytes"]) for s in page["spaces"]] == \
        [(s["name"], s["footprint_bytes"], s["bound_bytes"], s["persistent_bytes"]) for s in spaces]
    assert page["spaces"][0]["serialPeak"] == info["serial_peak_bytes"] and page["spaces"][0]["bound"] == info["bound_bytes"]
    text = read(drawn(graph, "txt", "apart.plan"))
    assert "device: footprint 40.00 MiB, bound 40.00 MiB\n" in text and re.search(r"^ +host ├─", text, re.M) and re.search(r"^ +device └─", text, re.M)
    svg = xml.etree.ElementTree.parse(drawn(graph, "svg", "apart.plan")).getroot()
    labels = [element.text for element in svg.iter(SVG + "text")]
    assert "device" in labels and labels.count("host") == 2 and labels.count("16 MiB") == 2, labels
    events = json.loads(read(drawn(graph, "json", "apart.plan", "--axis", "order")))["traceEvents"]
    for space, drawn_one in zip(spaces, page["spaces"]):
        levels = [e["args"]["alive"] for e in events if e["ph"] == "C" and e["name"] == "bytes of " + space["name"]]
        assert max(levels) == drawn_one["serialPeak"] and levels[-1] == 0


def text_is_80_columns_wide():
    for name in list(GRAPHS) + [hostile_graph("text.json")]:
        text = read(drawn(name, "txt"))
        wide = [line for line in text.splitlines() if sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) > 80]
        assert not wide, wide
        assert all(c == "\n" or unicodedata.category(c)[0] != "C" for c in text), name


def text_is_what_standard_output_gets():
    assert tarn("show", GRAPHS["figure7"]) == tarn("show", GRAPHS["figure7"], "-o", "-", "--of", "txt") == read(drawn("figure7", "txt"))
    assert "2.00 KiB" in tarn("show", GRAPHS["figure7"]) and "optimal" in tarn("show", GRAPHS["figure7"])


def a_table_has_the_rectangles_of_the_map():
    for name in [*GRAPHS, hostile_graph("table.json")]:
        graph = GRAPHS.get(name, name)
        tarn("plan", graph, "-o", "table.plan")
        with open(drawn(name, "csv", "table.plan"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["name", "kind", "stream", "space", "size", "offset", "first", "last", "free"]
        spaces = {row["space"] for row in rows}
        for space in spaces:
            own = [(int(r["offset"]), int(r["offset"]) + int(r["size"]), float(r["first"]), float(r["free"])) for r in rows if r["space"] == space]
            assert all(first < free for _, _, first, free in own)
            own.sort()
            for i, a in enumerate(own):  # no two have a byte at one time
                for b in own[i + 1:]:
                    if b[0] >= a[1]:
                        break
                    assert a[3] <= b[2] or b[3] <= a[2], (name, a, b)
        made = tarn.json("plan", graph)
        if len(spaces) == 1:
            end = max(int(row["offset"]) + int(row["size"]) for row in rows)
            assert made["footprint_bytes"] - 512 < end <= made["footprint_bytes"], (name, end)
        assert {row["kind"] for row in rows} <= {"intermediate", "gradient", "output", "workspace"}
        assert all(float(row["first"]) < float(row["last"]) <= float(row["free"]) for row in rows)


def an_svg_has_numbers_at_its_lines_and_axes():
    for words, room in (((), 960), (("--width", "480"), 480)):
        root = xml.etree.ElementTree.parse(drawn("googlenet_b1_adam.ddp_branch4", "svg", *words)).getroot()
        texts = ["".join(element.itertext()) for element in root.iter(SVG + "text")]
        made = tarn.json("plan", GRAPHS["googlenet_b1_adam.ddp_branch4"])
        assert root.get("width") == str(room) and float(root.get("viewBox").split()[2]) == 2 * room
        for line in ("footprint", "serial peak"):
            amount = texts[texts.index(line) + 1]
            bytes_told = float(amount.split()[0]) * 1024 ** ["B", "KiB", "MiB", "GiB"].index(amount.split()[1])
            assert abs(bytes_told / made[{"footprint": "footprint_bytes", "serial peak": "serial_peak_bytes"}[line]] - 1) < 0.01, (line, amount)
        assert "0" in texts and any("certificate's cut" in text for text in texts) and "pale: not in the certificate" in texts, texts
    for words in (("-o", "wide.html"), ("-o", "wide.svg")):
        done = subprocess.run([tarn.program, "show", GRAPHS["googlenet_b1_adam.ddp_branch4"], *words, "--width", "479" if "svg" in words[1] else "960"], capture_output=True, text=True)
        assert done.returncode == 2 and "--width" in done.stderr, done


def an_svg_is_well_formed_and_small():
    for name in [*GRAPHS, hostile_graph("svg.json"), large_graph("svg_large.json", 20000, 3)]:
        path = drawn(name, "svg")
        root = xml.etree.ElementTree.parse(path).getroot()
        assert root.tag == SVG + "svg" and os.path.getsize(path) <= 300000, (name, os.path.getsize(path))
        assert {element.tag for element in root.iter()} <= {SVG + tag for tag in ("svg", "style", "rect", "text", "path", "g", "pattern")}
        numbers = [float(n) for element in root.iter(SVG + "rect") for n in (element.get("x", 0), element.get("width"))]
        assert min(numbers) >= 0 and max(numbers) <= 1920, name


def an_svg_names_streams_that_do_not_touch_each_other():
    for streams in (1, 7, 60, 200):
        root = xml.etree.ElementTree.parse(drawn(large_graph(f"streams{streams}.json", 400, streams), "svg")).getroot()
        names = [(float(e.get("y")), e.text) for e in root.iter(SVG + "text") if re.fullmatch(r"stream \d+", e.text or "")]
        assert names and names[0][1] == "stream 0" and len(names) >= min(streams, 5), (streams, names)
        assert all(below - above >= 20 for (above, _), (below, _) in itertools.pairwise(names)), names


def a_trace_has_a_track_for_each_stream_and_counts_bytes():
    for name in GRAPHS:
        events = json.loads(read(drawn(name, "json")))["traceEvents"]
        info = tarn.json("info", GRAPHS[name])
        page = columns_of(drawn(name, "html"))
        tracks = [e["tid"] for e in events if e["name"] == "thread_name"]
        launches = [e for e in events if e["ph"] == "X"]
        assert tracks == list(range(info["streams"])), name
        assert sorted(e["args"]["op"] for e in launches) == sorted(running_sums(page["launch"]["op"]))
        assert max(e["args"]["alive"] + e["args"]["held and padding"] for e in events if e["ph"] == "C") <= page["footprint"]
        assert len([e for e in events if e["ph"] == "s"]) == len(page["waits"]) // 2
        order = json.loads(read(drawn(name, "json", "--axis", "order")))["traceEvents"]
        assert max(e["args"]["alive"] for e in order if e["ph"] == "C") == info["serial_peak_bytes"], name


def a_trace_of_a_run_gives_an_axis():
    graph = GRAPHS["figure2"]
    tarn("plan", graph, "-o", "real.plan")
    tarn("run", graph, "real.plan", "--check", "--iterations", "3", "--trace", "real.json")
    page = columns_of(drawn("figure2", "html", "real.plan", "--trace", "real.json"))
    assert [axis["key"] for axis in page["axes"]] == ["order", "time", "cut", "real"] and page["axis"] == "real"
    assert "as the trace has it" in tarn("show", graph, "real.plan", "--trace", "real.json")
    tarn("show", GRAPHS["alexnet_b1_adam.ddp"], "--trace", "real.json", code=2)
    tarn("show", graph, "--axis", "real", code=2)


def a_refused_plan_is_drawn_with_what_is_wrong():
    for name in ("alexnet_b1_adam.ddp", "googlenet_b1_adam.ddp_branch4"):
        tarn("plan", GRAPHS[name], "-o", "whole.plan")
        break_plan("whole.plan", "broken.plan")
        said = json.loads(tarn("verify", GRAPHS[name], "broken.plan", "--json", code=6))["violations"]
        page = columns_of(drawn(name, "html", "broken.plan", code=6))
        assert [v["text"] for v in page["violations"]] == [v["text"] for v in said]
        assert any("holder" in v and "launch" in v for v in page["violations"])
        assert "REFUSED" in read(drawn(name, "txt", "broken.plan", code=6))
        assert "REFUSED" in read(drawn(name, "svg", "broken.plan", code=6))
        assert page["axis"] == "wrong" and "wrong" not in [axis["key"] for axis in page["axes"]]
        for kind in ("txt", "svg"):
            assert "in an order that corrupts" in read(drawn(name, kind, "broken.plan", code=6)), kind
            assert "in list order" in read(drawn(name, kind, "broken.plan", "--axis", "order", code=6)), kind
        launches = [e for e in json.loads(read(drawn(name, "json", "broken.plan", "--axis", "wrong", code=6)))["traceEvents"] if e["ph"] == "X"]
        steps = [op for op, iteration in said[0]["witness"] if iteration == 0]
        assert [e["args"]["op"] for e in sorted(launches, key=lambda e: e["ts"])][:len(steps)] == steps
    tarn("show", GRAPHS["figure7"], "--axis", "wrong", code=2)


def names_do_not_get_out_of_where_they_stand():
    graph = hostile_graph("hostile.json")
    page = drawn(graph, "html")
    text = read(page)
    body = re.sub(r"<title>[^<>]*</title>", "", text)
    assert body != text and body.count("</script>") == 2 and "hacked" not in body and "\x1b" not in text
    shown = list(unpacked(columns_of(page)["holder"]["name"]))
    assert "</script><script>window.hacked ?= 1</script>".replace("?", "") in shown and "?gnp.exe" in shown and max(map(len, shown)) <= 202
    for name in HOSTILE[:3]:
        assert name not in read(drawn(graph, "svg"))
    json.loads(read(drawn(graph, "json")))


def work_that_is_done_again_is_said():
    graph = os.path.join(SOURCE, "examples/graphs/resnet50_b1_adam.ddp.json.gz")
    budget = tarn.json("plan", graph)["footprint_bytes"] * 98 // 100
    made = tarn.json("plan", graph, "--budget", budget, "-o", "again.plan")
    page = columns_of(drawn(graph, "html", "again.plan"))
    assert len(page["again"]) == 2 * made["budget_ops"]["recomputed"] > 0
    assert all(first < again for again, first in zip(page["again"][::2], page["again"][1::2]))
    assert len(page["launch"]["name"]) == made["budget_ops"]["launched"]


def a_picture_is_the_same_every_time():
    for kind in ("html", "svg", "txt", "json"):
        assert read(drawn("figure2", kind)) == read(drawn("figure2", kind)), kind


def wrong_command_lines_are_refused():
    graph = GRAPHS["figure7"]
    tarn("show", graph, "-o", "picture.png", code=2)
    tarn("show", graph, "-o", "picture", code=2)
    tarn("show", graph, "--of", "png", code=2)
    tarn("show", graph, "--axis", "tsc", code=2)
    tarn("show", "-", "-", code=2)
    tarn("show", "no_such.json", code=8)
    tarn("show", graph, "no_such.plan", code=8)
    tarn("show", graph, "-o", "picture.bin", "--of", "svg")
    assert read("picture.bin").startswith("<svg")
    tarn("show", graph, "-o", "picture.svg.gz")
    with open("picture.svg.gz", "rb") as file:
        assert file.read(2) == b"\x1f\x8b"


def a_plan_on_standard_input_is_drawn():
    graph = GRAPHS["figure7"]
    tarn("plan", graph, "-o", "piped.plan")
    assert os.popen(f"'{tarn.program}' show '{graph}' - <piped.plan").read() == tarn("show", graph, "piped.plan")


# ---- Colours ----

# Brettel, Viénot and Mollon's and Machado's model: what is left of a colour (Machado and others, 2009).
VISIONS = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def lab(colour, vision):
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    seen = [max(0, min(1, sum(a * b for a, b in zip(row, linear)))) for row in vision]
    x, y, z = (sum(a * b for a, b in zip(row, seen)) / white for row, white in (
        ((0.4124, 0.3576, 0.1805), 0.9505), ((0.2126, 0.7152, 0.0722), 1), ((0.0193, 0.1192, 0.9505), 1.089)))
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def colours_stay_apart_in_every_colour_vision():
    lists = re.findall(r"\[((?:\"#[0-9a-f]{6}\",? ?)+)\]", read(os.path.join(SOURCE, "cli/show/page/colours.js")))
    assert len(lists) == 4
    for palette in (re.findall("#[0-9a-f]{6}", text) for text in lists):
        for vision, matrix in VISIONS.items():
            for a, b in itertools.combinations(palette, 2):
                apart = sum((x - y) ** 2 for x, y in zip(lab(a, matrix), lab(b, matrix))) ** 0.5
                assert apart >= 10, (vision, a, b, apart)


def no_script_reads_text_as_html():
    folder = os.path.join(SOURCE, "cli/show/page")
    for name in os.listdir(folder):
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function", "http:", "https:"):
            assert word not in read(os.path.join(folder, name)), (name, word)


rules.run(globals(), SOURCE)
