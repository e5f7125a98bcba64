"""What the ranks of a step say to each other beside its collectives: which of them runs what, that one
has failed, where one waits. Over a process group of the host's of its own, so that nothing of this is
mistaken for a part of the step. And the step that all of them run, or none (AgreeingStep)."""
from __future__ import annotations

import datetime
import hashlib
import pickle
import time
from collections import Counter
from contextlib import contextmanager
from typing import Any, Optional, Sequence
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import AllgatherOptions, _get_default_store

import tarn

from .collectives import Wire
from .stepping import Step
from .tracing import NotRun

SLICE = 1.0  # seconds that a rank waits before it looks whether another one has failed
GRACE = 3.0  # seconds that ranks have to say where they wait, once one has waited too long
EAGER = -2  # a rank's vote to run eagerly
_made: Counter[tuple[int, ...]] = Counter()  # councils of these ranks; equal on all of them


class Alone(Wire):
    """Of one rank, or of a fake process group: all others say the same."""

    def __init__(self, members: Sequence[int]) -> None:
        self.members = list(members)
        self.ranks = len(self.members)

    def told(self, mine: Any, what: str = "") -> Any:
        return [mine] * self.ranks

    def votes(self, mine: int, what: str = "") -> Any:
        return [mine] * self.ranks


class Council(Alone):
    """Of several ranks."""

    def __init__(self, members: Sequence[int], timeout: float) -> None:
        super().__init__(members)
        self._timeout = timeout
        self._rank = dist.get_rank()
        text = ",".join(map(str, self.members))
        _made[tuple(self.members)] += 1
        name = f"tarn/{hashlib.sha256(text.encode()).hexdigest()}/{_made[tuple(self.members)]}"
        self._store = dist.PrefixStore(name, _get_default_store())
        # none of dist.new_group: it counts groups, and other ranks would count fewer
        self._group = dist.ProcessGroupGloo(
            dist.PrefixStore("group", self._store), self.members.index(self._rank), self.ranks,
            datetime.timedelta(seconds=timeout + GRACE))

    def told(self, mine: Any, what: str = "an agreement") -> Any:
        """What each rank says."""
        everybodys: list[Any] = [None] * self.ranks
        data = torch.frombuffer(bytearray(pickle.dumps(mine)), dtype=torch.uint8)
        sizes = self.votes(data.numel(), what)
        sent = torch.zeros(max(sizes), dtype=torch.uint8)
        sent[:data.numel()] = data
        for place, part in enumerate(self._gathered(sent, what)):
            everybodys[place] = pickle.loads(bytes(part[:sizes[place]].tolist()))
        return everybodys

    def votes(self, mine: int, what: str = "the start of a step") -> Any:
        """The number that each rank gives."""
        return self._gathered(torch.tensor([mine], dtype=torch.int64), what).flatten().tolist()

    def _gathered(self, tensor: Any, what: str) -> Any:
        out = torch.empty(self.ranks * tensor.numel(), dtype=tensor.dtype)
        self.wait(self._group._allgather_base(out, tensor, AllgatherOptions()), what)
        return out.view(self.ranks, -1)

    # ---- Waiting ----

    def wait(self, work: Any, op: str) -> None:
        begin = time.monotonic()
        while True:
            try:
                work.wait(datetime.timedelta(seconds=SLICE))
                return
            except RuntimeError:
                ended = work.is_completed()
            if ended:
                try:
                    work.wait()
                    return  # it has ended after the time was over
                except RuntimeError as error:  # a rank is gone, or gives other sizes
                    self._end(op, str(error).splitlines()[0], begin)
            told = self._failure()
            if told:
                raise tarn.Rejected(f"rank {self._rank} ends the step in {op}: {told}")
            self._say_where(op)
            if time.monotonic() - begin > self._timeout:
                self._end(op, "", begin)

    def _failure(self) -> str:
        try:
            return self._store.get("failed").decode() if self._store.check(["failed"]) else ""
        except RuntimeError:  # the store is gone with the rank that had it
            return "the rank that has the store is gone"

    def _say_where(self, op: str) -> None:
        """This rank waits, if another one asks."""
        try:
            if self._store.check(["ends"]):
                self._store.set(f"waits/{self._rank}", op)
        except RuntimeError:
            pass

    def failed(self, error: BaseException) -> None:
        text = (str(error) or type(error).__name__).splitlines()[0]
        try:
            if not self._failure():
                self._store.set("failed", f"rank {self._rank} has failed: "
                                          f"{type(error).__name__}: {text}")
        except RuntimeError:
            pass

    def _end(self, op: str, why: str, begin: float) -> None:
        """Raises what says which ranks wait where, and which ones have not come."""
        places: dict[int, Optional[str]] = {}
        try:
            self._store.set("ends", op)
            self._store.set(f"waits/{self._rank}", op)
            until = time.monotonic() + GRACE
            while len(places) < self.ranks and time.monotonic() < until:
                for rank in self.members:
                    if rank not in places and self._store.check([f"waits/{rank}"]):
                        places[rank] = self._store.get(f"waits/{rank}").decode()
                time.sleep(0.05)
        except RuntimeError:
            pass
        told = self._failure()
        missing = [rank for rank in self.members if rank not in places]
        others = {rank: place for rank, place in places.items() if place != op}
        text = why or f"no end after {time.monotonic() - begin:.0f} s"
        if missing and len(missing) < self.ranks:
            text += f"; ranks {missing} have not come to it"
        if others:
            text += "; " + ", ".join(f"rank {r} waits in {p}" for r, p in others.items())
        text = told or text
        self.failed(RuntimeError(f"in {op}: {text}"))
        raise tarn.Rejected(f"rank {self._rank} ends the step in {op}: {text}")


def council(group: Any, timeout: float, members: Optional[Sequence[int]] = None) -> Alone:
    """For the ranks of a process group, or for these; all of them call it together."""
    if members is None:
        members = dist.get_process_group_ranks(group)
    if len(members) == 1 or dist.get_backend(group) == "fake":
        return Alone(members)
    return Council(members, timeout)


class AgreeingStep(Step):
    """A step of several ranks, which run it as planned or eagerly, all of them. Subclasses set `wire`
    before Step's __init__."""

    wire: Alone

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._warned: set[str] = set()  # of what: each is told once
        super().__init__(*arguments, **options)

    def _eager_ranks(self, votes: Any) -> str:
        """Says which ranks run eagerly, or is empty."""
        eager = [rank for rank, vote in zip(self.wire.members, votes) if vote == EAGER]
        return f"ranks {eager} run eagerly" if eager else ""

    def _not_run(self, why: str) -> None:
        """Raises NotRun, with a warning the first time."""
        if why not in self._warned:
            self._warned.add(why)
            self._warning = f"it runs eagerly: {why}"
        raise NotRun(why)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What this rank raises inside, in the middle of a step, the others are told."""
        try:
            yield
        except NotRun:
            raise
        except BaseException as error:
            self.wire.failed(error)
            raise

    def _run(self, variant: Any) -> None:
        with self._telling():
            super()._run(variant)

    def _rehearse(self, variant: Any) -> None:
        with self._telling():  # of what is kept beside the run, too
            super()._rehearse(variant)

    def _differs(self, loss: Any, batch: Any) -> str:
        told = self.wire.told(super()._differs(loss, batch), "the comparison with eager execution")
        return next(filter(None, told), "")
