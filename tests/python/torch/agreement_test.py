"""The council of tarn.torch's steps (agreement.py) alone, on 2 to 4 processes of gloo: ranks that fail alike, unlike or twice,
that go on or do not, that are slow, at random places of random steps. No sum may have summands of two collectives, a rank that
has left a wait may not communicate again, and ranks that fail alike go on. TAP on stdout.

    tests/with_torch.sh tests/python/torch/agreement_test.py [SEED]"""
import datetime
import gc
import os
import random
import sys
import time
from unittest import mock

import ranks
import torch
import torch.distributed as dist
from cases import CAMPAIGN, run

import tarn
from tarn.torch import agreement

SLICE, GRACE, TIMEOUT = 0.1, 0.3, 20.0
SCENARIOS, CALLS, COLLECTIVES = 25, 4, 3


class Failing(Exception):
    pass


class World:
    """This rank's councils and its group of collectives in one scenario; a scenario has stores of its own."""

    def __init__(self, name, rank, ranks, store):
        self.rank, self.ranks = rank, ranks
        self.store = dist.PrefixStore(name, store)
        self.councils = [self.council() for _ in range(2)]
        self.group = dist.ProcessGroupGloo(dist.PrefixStore("step", self.store), rank, ranks, datetime.timedelta(seconds=TIMEOUT))
        self.barriers = 0

    def council(self):
        with mock.patch.object(agreement, "_get_default_store", lambda: self.store), \
                mock.patch.object(dist, "get_rank", lambda: self.rank):
            return agreement.Council(range(self.ranks), TIMEOUT)

    def barrier(self):
        """Of the test alone: all ranks are here."""
        self.barriers += 1
        key = f"barrier{self.barriers}"
        end = time.monotonic() + 3 * TIMEOUT
        self.store.add(key, 1)
        while self.store.add(key, 0) < self.ranks:
            assert time.monotonic() < end, "another rank has ended"
            time.sleep(0.005)

    def sum(self, council, call, place):
        """A collective of a step: summands say of which call and place they are."""
        number = 1 + call * COLLECTIVES + place
        given = torch.tensor([number * 1000 ** self.rank], dtype=torch.int64)
        council.wait(self.group.allreduce([given]), f"sum{place}")
        expected = sum(number * 1000 ** r for r in range(self.ranks))
        assert given.item() == expected, f"rank {self.rank} has summed up collectives of two calls: {given.item()}, not {expected}"


def step(world, council, call, plan, rng):
    """A call of a step, as AgreeingStep's: it goes on, meets, and communicates. plan: (after how many collectives this rank fails,
    with which text, whether it waits until all are there), or None."""
    council.goes_on()
    votes = council.votes(call)
    assert votes == [call] * world.ranks, votes
    try:
        for place in range(COLLECTIVES + 1):
            if rng.random() < 0.2:
                time.sleep(rng.choice((0.01, 3 * SLICE)))
            if plan and plan[0] == place:
                if plan[2]:
                    world.barrier()
                raise Failing(plan[1])
            if place < COLLECTIVES:
                world.sum(council, call, place)
    except BaseException as error:
        council.failed(error)
        raise


def plans_of(rng, ranks):
    """For each call: for each rank its plan. All ranks fail alike in some calls, and, if the kind says so, not alike in the next."""
    kind = rng.choice(("alike", "unlike", "apart", "one", "two"))
    last = CALLS if kind == "alike" else rng.randrange(CALLS - 1)
    plans = [[None] * ranks for _ in range(CALLS)]
    for call in range(min(last, CALLS - 1)):
        if rng.random() < 0.5:
            plans[call] = [(rng.randint(0, COLLECTIVES), "no more", True)] * ranks
    if kind == "unlike":  # by other errors
        plans[last] = [(COLLECTIVES, f"no {r}", False) for r in range(ranks)]
    elif kind == "apart":  # at other places
        plans[last] = [(rng.randint(0, COLLECTIVES), "no more", False) for _ in range(ranks)]
    elif kind != "alike":  # one rank, or all but one
        place = rng.randint(0, COLLECTIVES)
        chosen = rng.sample(range(ranks), 1 if kind == "one" else ranks - 1)
        plans[last] = [(place, "no more", False) if r in chosen else None for r in range(ranks)]
    return kind, plans


def scenario(world, seed):
    """Each rank runs its calls, and goes on whatever they raise; the last ones by another council over the same collectives."""
    shared, own = random.Random(seed), random.Random(f"{seed} {world.rank}")
    kind, plans = plans_of(shared, world.ranks)
    other = shared.random() < 0.3  # the calls use the councils in turn
    rejected = False
    said = []
    for call, plan in enumerate(plans):
        if own.random() < 0.2:
            time.sleep(own.choice((0.01, 3 * SLICE)))
        council = world.councils[call % 2 if other else 0]
        try:
            step(world, council, call, plan[world.rank], own)
            assert not rejected, "a rank that cannot go on has run a step"
            said.append("ran")
        except Failing:
            assert not rejected and plan[world.rank]
            said.append("failed")
        except tarn.Rejected as error:
            rejected = True
            said.append(str(error))
    if kind == "alike":
        assert not rejected, said
    if not other and any(len(set(plan)) > 1 for plan in plans):
        assert rejected, said


# ---- One thing each ----

def rejected(call, *words):
    try:
        call()
    except tarn.Rejected as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError("it goes on")


def interrupted(world):
    """An interrupt may come between the start of a collective and its wait."""
    council = world.councils[0]
    if world.rank == 0:
        council.failed(KeyboardInterrupt())
        rejected(council.goes_on, "KeyboardInterrupt")
    rejected(lambda: council.votes(0), "KeyboardInterrupt")


def broken_and_forgotten(world):
    """No new council is made once a rank is broken, not even if the old ones are gone."""
    if world.rank == 0:
        world.councils[0].failed(KeyboardInterrupt())
    world.barrier()
    world.councils.clear()
    gc.collect()
    rejected(world.council, "KeyboardInterrupt")


def unwatched(world):
    """What the host does not wait for may go on after a failure."""
    council = world.councils[0]
    council.unwatched()
    if world.rank == 0:
        council.failed(Failing("no more"))
        rejected(council.goes_on, "no more")
    rejected(lambda: council.votes(0), "no more")
    council = world.councils[1]
    rejected(lambda: council.votes(0), "no more")


def watched(world):
    """The same failure of all ranks is over once they have met."""
    council = world.councils[0]
    council.failed(Failing("no more"))
    council.goes_on()
    assert council.votes(3) == [3] * world.ranks


def unlike_meetings(world):
    council = world.councils[0]
    rejected(lambda: council.votes(0, *(["a report"] if world.rank == 0 else [])), "has come to")
    rejected(lambda: council.votes(0), "cannot go on")


def sizes_and_votes(world):
    """A meeting with things of any size is no vote."""
    council = world.councils[0]
    rejected(lambda: council.told("a" * 9, "a capture") if world.rank == 0 else council.votes(9), "has come to")


def in_pairs(world):
    """Collectives of pairs of ranks are known to their pairs alone. Ranks that fail alike after the same ones go on; if a pair has
    communicated and the other one has not, no rank goes on, though none waits, and the errors are equal."""
    council, pair = world.councils[0], world.rank // 2
    group = dist.ProcessGroupGloo(dist.PrefixStore(f"pair{pair}", world.store), world.rank % 2, 2, datetime.timedelta(seconds=TIMEOUT))

    def step(sums):
        council.goes_on()
        council.votes(0)
        for place in range(sums):
            given = torch.ones(1)
            council.wait(group.allreduce([given]), f"sum{place}")
            assert given.item() == 2
        council.failed(Failing("no more"))

    for sums in (1, 0, 2):
        step(sums)
    step(pair)
    rejected(lambda: step(0), "ranks [0, 1, 2, 3] have failed, each in its way")


SINGLE = {f.__name__: f for f in (interrupted, broken_and_forgotten, unwatched, watched, unlike_meetings, sizes_and_votes)}
KNOWN = {**SINGLE, "in_pairs": in_pairs}


def rank_of(rank, ranks, path, names):
    agreement.SLICE, agreement.GRACE = SLICE, GRACE
    store = dist.FileStore(path, ranks)
    for seed in names:
        world = World(seed, rank, ranks, store)
        try:
            if seed in KNOWN:
                KNOWN[seed](world)
            else:
                scenario(world, int(seed))
        except BaseException:
            print(f"scenario {seed}", file=sys.stderr, flush=True)
            raise
        world.barrier()  # a group that ends breaks the waits of the others


FIRST = int(sys.argv[1]) if len(sys.argv) == 2 else 0


def together(name, count, names):
    return ranks.named(name, __file__, count, *map(str, names))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        rank_of(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
        sys.stdout.flush()
        os._exit(0)
    DRAWS = SCENARIOS * (10 if CAMPAIGN else 1)
    run([together("one_thing_each", 2, SINGLE),
         together("four_ranks_in_pairs", 4, ["in_pairs"]),
         together("two_ranks_at_random", 2, range(FIRST, FIRST + DRAWS)),
         together("three_ranks_at_random", 3, range(FIRST + 10000, FIRST + 10000 + DRAWS))])
