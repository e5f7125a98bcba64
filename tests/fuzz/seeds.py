"""Writes a folder of seeds for each fuzz target, from the files of tests/data and examples.

seeds.py SOURCE OUT
"""
import pathlib
import random
import shutil
import sys

source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
data = source / "tests/data"
SIZE_MAX = 20000

ORDERS = [
    '{"format":"tarn.order","version":1,"order":[[0,0],[1,0],[2,0],[3,0],[4,0],[5,0],[0,1]]}',
    '{"format":"tarn.order","version":1,"order":[]}',
    "[0,1,2,3,4,5]",
    "[0,2,3,1]",
    "[5,9]",
]
MODEL = "kind,implementation,time_factor,workspace_factor,needs_input,needs_output,keeps_factor\n"
MEASURED = "op,implementation,ns,workspace\n"
COSTS = [
    MODEL + "aten.convolution,gemm,1.00,0.60,,,\naten.convolution_backward,b,1.5,1000,1,0,0.03125\n",
    MODEL + "aten.native_batch_norm_backward,from_output,1.05,0,0,1,0\n" + MEASURED + "convolution_0,,7,8\n",
    MEASURED + "convolution_1,fast,9007199254740991,9007199254740991\nconvolution_1,fast,1,1\n",
    MEASURED + "absent,,1,1\n",
]


def put(target, name, contents):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    if len(contents) <= SIZE_MAX:
        (folder / name).write_bytes(contents)


def graphs(pattern):
    for folder in (data / "valid", data / "invalid", source / "examples/graphs"):
        yield from sorted(folder.glob(pattern))


shutil.rmtree(out, ignore_errors=True)
for path in graphs("*.json*"):
    put("graph", path.name, path.read_bytes())
for path in graphs("*.csv*"):
    put("interval", path.name, path.read_bytes())
    put("graph", path.name, path.read_bytes())
put("graph", "hidden.json", b'{"format":"tarn.graph","version":1,"\\u001b\\u0085\xe2\x80\xae":0}')
sound = (data / "invalid_plans/graph.json").read_bytes()
for path in sorted((data / "invalid_plans").glob("*.json")):
    put("plan", path.name, path.read_bytes())
    if path.name.startswith(("sound", "wait", "certificate", "group")):
        put("pair", path.name, sound + b"\0" + path.read_bytes())
for path in sorted((data / "unsafe_plans").glob("*.graph.json")):
    plan = path.with_name(path.name.replace(".graph.", ".plan."))
    put("pair", path.name, path.read_bytes() + b"\0" + plan.read_bytes())
for i, text in enumerate(ORDERS):
    put("order", "%d.json" % i, text.encode())
for i, text in enumerate(COSTS + [(source / "examples/costs.csv").read_text()]):
    put("costs", "%d.csv" % i, text.encode())
drawn = random.Random(1)
for i in range(64):
    put("calls", "%02d" % i, drawn.randbytes(6 * (i + 1)))
