"""tarn.read on what PyTorch and ExecuTorch write: programs of torch.export, joint graphs, functional
collectives, offloads, traces of the profiler, programs of ExecuTorch. TAP on stdout."""
import os
import tempfile
import warnings

import torch
from cases import raises, run, test
from torch import nn
from torch._functorch.aot_autograd import aot_export_module
from torch.fx.experimental.proxy_tensor import make_fx

import tarn
import tarn.read
from tarn import command

warnings.filterwarnings("ignore")
COMMAND = os.environ.get("TARN_COMMAND")
FOLDER = tempfile.TemporaryDirectory()


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Unflatten(1, (4, 64)), nn.Conv1d(4, 8, 3, padding=1),
                         nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))


def judged(reading, **options):
    """Planned, verified, run over one arena with every byte compared."""
    plan = tarn.plan(reading.graph, in_place=True, **options)
    plan.verify()
    assert not COMMAND or command.run("run", reading.graph, plan, ["--check"])
    return plan


@test
def exported_programs_are_read_from_file_and_object_with_their_dimensions():
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(model().eval(), (torch.randn(4, 64),), dynamic_shapes={"input": {0: batch}})
    symbol = str(next(iter(program.range_constraints)))
    path = os.path.join(FOLDER.name, "m.pt2")
    torch.export.save(program, path)
    assert tarn.read.detect(path) == "exported"
    error = raises(tarn.BadInput, tarn.read.exported, path)
    assert symbol in str(error) and "'input'" in str(error), error
    reading = tarn.read.exported(path, dims={symbol: 8})
    again = tarn.read.exported(program, dims={symbol: 8})
    assert [t.size for t in reading.graph.tensors] == [t.size for t in again.graph.tensors]
    kinds = {t.name: t.kind for t in reading.graph.tensors}
    assert kinds["p_0_weight"] == "parameter" and kinds["input"] == "input"
    sizes = {t.name: t.size for t in reading.graph.tensors}
    assert sizes["linear"] == 8 * 256 * 4
    assert any(op.view for op in reading.graph.ops)
    assert judged(reading).footprint >= 2 * 8 * 256 * 4
    assert "no_such" in str(raises(tarn.UsageError, tarn.read.exported, program, dims={symbol: 8, "no_such": 1}))


@test
def joint_graphs_are_read():
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model()

        def forward(self, x):
            return (self.inner(x).logsumexp(1).sum(),)

    graph, _ = aot_export_module(Loss(), (torch.randn(4, 64),), trace_joint=True, output_loss_index=0)
    reading = tarn.read.exported(graph)
    assert len(reading.graph.ops) > 20
    assert judged(reading).optimal


@test
def writes_in_place_and_views_of_parts_share_their_storage():
    def function(x):
        y = x * 2
        y[1:].add_(1)
        a, b = y.split(2)
        return a + b, y

    graph = make_fx(function, tracing_mode="fake")(torch.randn(4, 8))
    reading = tarn.read.exported(graph)
    roots = {t.name: t.root for t in reading.graph.tensors}
    first = next(op for op in reading.graph.ops if op.kind.startswith("aten.mul"))
    added = next(op for op in reading.graph.ops if op.kind.startswith("aten.add_"))
    assert roots[reading.graph.tensors[added.outputs[0]].name] == first.outputs[0]
    assert reading.graph.tensors[first.outputs[0]].kind == "output"
    judged(reading)


@test
def control_flow_is_refused_by_name():
    class Branch(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    program = torch.export.export(Branch(), (torch.randn(4),))
    assert "cond" in str(raises(tarn.BadInput, tarn.read.exported, program))


@test
def functional_collectives_and_offloads_run_beside():
    try:
        import torch._functorch._activation_offloading.offload_ops  # noqa: F401
    except ImportError:  # the oldest PyTorch has no such ops
        return
    import torch.distributed as dist
    import torch.distributed._functional_collectives as collectives
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        def step(x):
            y = x * 2
            away = torch.ops.ao.offload(y)
            total = collectives.all_reduce(y.exp(), "sum", dist.group.WORLD)
            z = x.sin() @ x.cos()
            torch.ops.ao.wait_tensor(away, y)
            back = torch.ops.ao.wait_tensor(torch.ops.ao.reload(away, torch.device("cpu")))
            return total + z + back

        graph = make_fx(step, tracing_mode="fake")(torch.randn(64, 64))
    finally:
        dist.destroy_process_group()
    reading = tarn.read.exported(graph)
    made = reading.graph
    assert set(made.streams) == {"compute", "communication", "copy"}, made.streams
    assert [s.kind for s in made.spaces] == ["device", "pinned"]
    by_kind = {op.kind: op for op in made.ops}
    assert made.streams[by_kind["_c10d_functional.all_reduce.default"].stream] == "communication"
    assert made.streams[by_kind["ao.offload.default"].stream] == "copy"
    assert made.tensors[by_kind["ao.offload.default"].outputs[0]].space == 1
    assert by_kind["_c10d_functional.all_reduce.default"].op_class == "collective"
    plan = judged(reading)
    assert plan.spaces[1].footprint == 64 * 64 * 4


@test
def times_of_the_profiler_become_costs():
    from torch.profiler import ProfilerActivity, profile
    network, example = model().eval(), torch.randn(4, 64)
    program = torch.export.export(network, (example,))
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(3):
            program.module()(example)
    path = os.path.join(FOLDER.name, "trace.json")
    profiler.export_chrome_trace(path)
    assert tarn.read.detect(path) == "trace"
    reading = tarn.read.costs(path, tarn.read.exported(program).graph)
    launched = [op for op in reading.graph.ops if not op.view]
    assert sum(op.cost > 0 for op in launched) >= len(launched) - 1, [(op.name, op.cost) for op in launched]


@test
def programs_of_executorch_are_read_with_their_placement():
    try:
        from executorch.exir import to_edge
    except ImportError:  # the oldest PyTorch has no ExecuTorch beside it
        return
    network = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.Softmax(-1)).eval()
    program = to_edge(torch.export.export(network, (torch.randn(8, 64),))).to_executorch()
    path = os.path.join(FOLDER.name, "m.pte")
    with open(path, "wb") as file:
        file.write(program.buffer)
    reading = tarn.read.executorch(path)
    assert reading.refused is None, reading.refused
    sizes = program.executorch_program.execution_plan[0].non_const_buffer_sizes
    assert reading.plan.footprint == sum(sizes), (reading.plan, sizes)
    assert tarn.plan(reading.graph, alignment=16).footprint <= reading.plan.footprint


if __name__ == "__main__":
    run()
