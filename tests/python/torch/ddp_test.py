"""tarn.torch.ddp on 2 and 4 ranks of gloo: bits, ranks that differ, that fail, that hang, that are
gone (ddp_ranks.py is one rank). TAP on stdout.

    tests/with_torch.sh tests/python/torch/ddp_test.py [NAMES...]"""
from pathlib import Path

import ranks
from cases import run

RANKS = Path(__file__).with_name("ddp_ranks.py")


def many(name, count, *cases):
    return ranks.named(name, RANKS, count, *cases)


AGREEMENT = ("bits", "losses_that_raise", "too_large", "other_options", "refused", "other_gradients")

# The short version has each kind of case on two ranks; the long one all of them, on four ranks, too.
SHORT = [many("ranks_agree_before_each_step", 2, *AGREEMENT),
         many("a_rank_that_fails_takes_the_others_along", 2, "failing"),
         many("a_rank_that_is_gone_is_named", 2, "dying")]
LONG = [many("four_ranks_agree_before_each_step", 4, *AGREEMENT),
        many("a_rank_of_four_that_fails_takes_the_others_along", 4, "failing"),
        many("a_rank_that_hangs_is_named", 2, "hanging"),
        many("a_rank_of_four_that_hangs_is_named", 4, "hanging"),
        many("a_rank_of_four_that_is_gone_is_named", 4, "dying"),
        many("a_rank_that_is_gone_between_steps_is_named", 4, "between_steps")]

if __name__ == "__main__":
    run(SHORT + LONG if ranks.IS_LONG else SHORT)
