"""tarn.torch.fsdp on 2 and 4 ranks of gloo against FSDP2, bit by bit (sharding_ranks.py is one rank); ranks that fail,
differ or hang; larger worlds by a fake process group; collectives in ordinary steps. TAP on stdout.

    tests/with_torch.sh tests/python/torch/sharding_test.py [NAMES...]"""
import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import run

RANKS = Path(__file__).with_name("sharding_ranks.py")


def ranks(count, *cases, seconds=240):
    with tempfile.TemporaryDirectory() as folder:
        processes = [subprocess.Popen([sys.executable, str(RANKS), str(rank), str(count), f"{folder}/store", *cases],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for rank in range(count)]
        try:
            errors = [process.communicate(timeout=seconds)[1] for process in processes]
        finally:
            for process in processes:
                process.kill()
    assert not any(process.returncode for process in processes), "\n".join(errors)


def named(name, count, *cases):
    function = functools.partial(ranks, count, *cases)
    function.__name__ = name
    return function


if __name__ == "__main__":
    run([named("two_ranks_have_the_bits_of_fsdp2", 2, "plain", "mixed_precision_and_clipping"),
         named("two_ranks_keep_to_a_budget_by_second_gathers", 2, "within_a_budget"),
         named("four_ranks_have_the_bits_of_fsdp2", 4, "odd_sizes", "later_dimensions", "replicas"),
         named("models_are_wrapped_here", 2, "wrapped_here"),
         named("ranks_run_eagerly_together", 2, "eager_ranks", "other_shapes", "refused"),
         named("a_rank_that_fails_takes_the_others_along", 2, "failing"),
         named("a_rank_that_hangs_is_named", 2, "hanging"),
         named("a_rank_that_is_gone_is_named", 2, "dying"),
         named("collectives_of_ordinary_steps_have_streams", 2, "traced"),
         named("a_world_that_is_not_here_is_planned", 1, "large_worlds")])
