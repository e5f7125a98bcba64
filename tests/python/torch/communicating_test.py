"""tarn.torch.step of models that communicate by themselves, on 2 and 4 ranks of gloo against eager execution, bit by bit
(communicating_ranks.py is one rank); what a unit is. TAP on stdout.

    tests/with_torch.sh tests/python/torch/communicating_test.py [NAMES...]"""
from pathlib import Path

import ranks
import torch
from cases import run

from tarn.torch.sharding.coalescing import unit_of
from tarn.torch.sharding.joint import JointStep

RANKS = Path(__file__).with_name("communicating_ranks.py")


def a_unit_is_an_entry_of_the_outermost_list_or_a_module():
    for name, unit in (("blocks.0.up.weight", "blocks.0"), ("layers.3.mlp.2.bias", "layers.3"), ("norm.weight", "norm"),
                       ("scale", ""), ("blocks.1.up.parametrizations.weight.original", "blocks.1"),
                       ("norm.parametrizations.weight.original", "norm"), ("_orig_mod.out.weight", "out"),
                       ("blocks.0._checkpoint_wrapped_module.up.weight", "blocks.0")):
        assert unit_of(name) == unit, (name, unit_of(name))


def a_loss_without_its_mesh_keeps_its_parts():
    """As Dynamo traces an autograd.Function, or a checkpoint: calls that take modules of the trace."""
    graph = torch.fx.Graph()
    mesh, x = graph.placeholder("mesh"), graph.placeholder("x")
    body = graph.get_attr("body_0")
    graph.output((graph.call_function(lambda part, x, mesh: part(x) * mesh.size, (body, x, mesh)),))
    loss = torch.fx.GraphModule({"body_0": torch.fx.symbolic_trace(torch.nn.ReLU())}, graph)
    mesh, x = type("Mesh", (), {"size": 6})(), torch.randn(4)
    made, tensors = JointStep.of_tensors(type("Step", (), {"_bound": {}})(), loss, [mesh, x])
    assert tensors[0] is x and torch.equal(made(x)[0], 6 * x.relu())


def many(name, count, *cases):
    return ranks.named(name, RANKS, count, *cases)


# The short version has one case of each kind; the long one all of them, on four ranks, too.
SHORT = [a_unit_is_an_entry_of_the_outermost_list_or_a_module, a_loss_without_its_mesh_keeps_its_parts,
         many("two_ranks_have_the_bits_of_eager_execution", 2, "sequence_parallel", "gathered_again", "functional_collectives", "watched_collectives", "read_collectives", "turned", "exchanged",
              "hooks_that_communicate", "hooks_that_keep", "optimizers"),
         many("a_world_that_is_not_here_is_planned", 1, "worlds_that_are_not_here"),
         many("steps_of_some_ranks_leave_the_groups_of_all_alone", 3, "groups_of_the_program"),
         many("ranks_that_differ_run_eagerly", 2, "differing", "captured_too_often", "too_large", "given_up")]
LONG = [many("more_models_on_two_ranks_have_the_bits_of_eager_execution", 2, "tensor_parallel", "documented", "clipped", "gathered", "averaged", "uneven",
             "gathered_in_sixteen_bits", "spread", "parallel_loss", "hooks", "checkpoints"),
        many("what_is_not_planned_runs_eagerly", 2, "refused"),
        many("a_rank_that_fails_takes_the_others_along", 2, "failing"),
        many("four_ranks_have_the_bits_of_eager_execution", 4, "two_dimensions", "under_fully_shard", "uneven", "sequence_parallel", "hooks_that_keep")]

if __name__ == "__main__":
    run(SHORT + LONG if ranks.IS_LONG else SHORT)
