"""What the ranks of a step say to each other beside its collectives: which of them runs what, that one
has failed, where one waits. And the step that all of them run, or none (AgreeingStep).

The protocol. The ranks of a council *meet*: each gives something, and gets what all have given, by a
collective of a process group that only the council has. No rank comes out of a meeting that another
one has not come to. Between two meetings a rank runs a part of a step, whose collectives it waits for
by `wait`. Each call of a step begins with a meeting; so does what follows a comparison.

* A rank that fails outside of waits sets the key "failed/N" in the store; N: meetings before that.
  A rank that waits longer than SLICE for a collective, or for meeting N + 1 without having failed
  itself, looks for that key, and raises. (A rank that has failed in N, too, is right to wait in the
  meeting. The key of N + 1 means nothing to it: that rank has met all others already.)
* A rank that has failed and goes on meets the others before it communicates. With what it gives to a
  meeting each rank says whether it has failed since the last one, with which error, and after which
  collectives. If all say the same, the failure is over: no rank has begun a collective that another
  one has not begun. Otherwise all raise.
* A rank that leaves a wait by an exception may leave a collective behind that goes on, and would be
  paired with another rank's next one. So it is *broken* for good: all councils of this process raise
  whatever they are asked, and the key "broken" ends the waits of the other ranks. They cannot pair
  the collective with a wrong one: what they begin before their next meeting is in the order of the
  plan, and no meeting ends without the broken rank, except the one that it has left; there it had
  no other collective behind it.
* Collectives that the host does not wait for (on a GPU) may be left behind by any failure, and an
  interrupt (KeyboardInterrupt) may come between the start of a collective and its wait. Both break
  the rank at once.
* Each meeting has a name, and ranks that have come to different ones raise.
* A council is made by all its ranks; one that is broken tells the others there, too.

What is not watched: collectives of eager steps, which end by the time limit of their own process
group, and what the caller communicates itself. Steps with sends and receives are eager ones. Buffers
that ddp sends before its first meeting are the same collectives on all ranks."""
from __future__ import annotations

import datetime
import hashlib
import pickle
import time
import weakref
from collections import Counter
from contextlib import contextmanager
from typing import Any, Optional, Sequence
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import AllgatherOptions, _get_default_store

import tarn

from .collectives import Wire
from .report import Report
from .stepping import Step
from .tracing import NotRun

SLICE = 1.0  # seconds that a rank waits before it looks whether another one has failed
GRACE = 3.0  # seconds that ranks have to say where they wait, once one has waited too long
EAGER = -2  # a rank's vote to run eagerly
_made: Counter[tuple[int, ...]] = Counter()  # councils of these ranks; equal on all of them
_councils: weakref.WeakSet[Council] = weakref.WeakSet()
_broken: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()  # by default store: why


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
        self._met = 0
        self._failed = ""  # by what, since the last meeting
        self._done: list[str] = []  # collectives since then
        self._is_unwatched = False  # has one of them begun that the host does not wait for?
        self._rank = dist.get_rank()
        self._default = _get_default_store()
        text = ",".join(map(str, self.members))
        _made[tuple(self.members)] += 1
        name = f"tarn/{hashlib.sha256(text.encode()).hexdigest()}/{_made[tuple(self.members)]}"
        self._store = dist.PrefixStore(name, self._default)
        if self._why_broken():
            self._say_first("broken", self._why_broken())
        self._check()
        self._arrive()
        # none of dist.new_group: it counts groups, and other ranks would count fewer
        self._group = dist.ProcessGroupGloo(
            dist.PrefixStore("group", self._store), self.members.index(self._rank), self.ranks,
            datetime.timedelta(seconds=timeout + GRACE))
        _councils.add(self)

    def _arrive(self) -> None:
        """All ranks have come to make the group, which asks nobody whether a rank is broken."""
        self._store.set(f"here/{self._rank}", "")
        here, begin = False, time.monotonic()
        while True:
            try:
                self._store.wait([f"here/{rank}" for rank in self.members],
                                 datetime.timedelta(seconds=SLICE))
                here = True
            except RuntimeError:
                pass
            told = self._read("broken")
            if not told and not here and time.monotonic() - begin > self._timeout:
                missing = [r for r in self.members if not self._store.check([f"here/{r}"])]
                told = f"ranks {missing} have not come within {self._timeout:g} s"
                self._say_first("broken", told)
            if told:
                raise tarn.Rejected(f"rank {self._rank} makes no step: {told}")
            if here:
                return

    # ---- Meetings ----

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
        given = self._gathered(torch.tensor([mine, self._state(), number_of(what)]), what)
        votes, states, kinds = given.T.tolist()
        self._compare(states, what)
        others = [rank for rank, kind in zip(self.members, kinds) if kind != number_of(what)]
        if others:
            why = f"rank {self._rank} has come to {what}, and ranks {others} to something else"
            self._break(why)
            raise tarn.Rejected(why)
        return votes

    def goes_on(self) -> None:
        """Before this rank does something new: it meets the others if it has failed."""
        self._check()
        if self._failed:
            self.votes(0, "a step after one that has failed")

    def _gathered(self, tensor: Any, what: str) -> Any:
        self._check()
        out = torch.empty(self.ranks * tensor.numel(), dtype=tensor.dtype)
        self._wait(lambda: self._group._allgather_base(out, tensor, AllgatherOptions()), what,
                   looks=not self._failed)
        self._met += 1
        return out.view(self.ranks, -1)

    def _state(self) -> int:
        """0, or what this rank has failed by, and after which collectives, as a number."""
        if not self._failed:
            return 0
        return 1 + number_of(repr((self._failed, sorted(self._done))))

    def _compare(self, states: Any, what: str) -> None:
        if len(set(states)) > 1:
            failed = [rank for rank, state in zip(self.members, states) if state]
            one = self._read(f"failed/{self._met - 1}")
            why = (f"ranks {failed} have failed, each in its way" if len(failed) == self.ranks else
                   f"ranks {failed} have failed, and the others have not") + f" ({one})"
            self._break(why)
            raise tarn.Rejected(f"rank {self._rank} ends the step in {what}: {why}")
        self._failed, self._is_unwatched = "", False
        self._done.clear()

    # ---- Waiting ----

    def wait(self, work: Any, op: str) -> None:
        self._check()
        self._wait(lambda: work, op, looks=True)
        self._done.append(op)

    def unwatched(self) -> None:
        self._is_unwatched = True

    def _wait(self, start: Callable[[], Any], op: str, looks: bool) -> None:
        """For the work that `start` begins. looks: does a rank that has failed since the last meeting
        end it?"""
        try:
            self._slices(start(), op, f"failed/{self._met}" if looks else "")
        except BaseException as error:
            self._break(f"rank {self._rank} has failed in {op}: {_line(error)}")
            raise

    def _slices(self, work: Any, op: str, key: str) -> None:
        begin, told = time.monotonic(), ""
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
                    self._end(op, str(error).splitlines()[0], begin, key)
            if told:  # and it has not ended since
                self._break(told)
                raise tarn.Rejected(f"rank {self._rank} ends the step in {op}: {told}")
            told = self._told(key)
            self._say_where(op)
            if not told and time.monotonic() - begin > self._timeout:
                self._end(op, "", begin, key)

    # ---- Failures ----

    def _read(self, key: str) -> str:
        try:
            return self._store.get(key).decode() if self._store.check([key]) else ""
        except RuntimeError:  # the store is gone with the rank that had it
            return "the rank that has the store is gone"

    def _told(self, key: str) -> str:
        """What ends a wait; key: "", or that of a failure."""
        return self._read("broken") or (self._read(key) if key else "")

    def _say_first(self, key: str, text: str) -> None:
        try:
            if not self._store.check([key]):
                self._store.set(key, text)
        except RuntimeError:
            pass

    def _check(self) -> None:
        if self._why_broken():
            raise tarn.Rejected(f"rank {self._rank} cannot go on, because collectives may not have "
                                f"ended: {self._why_broken()}")

    def _why_broken(self) -> str:
        return _broken.get(self._default, "")

    def _break(self, why: str) -> None:
        """This process may have left a collective behind."""
        if self._why_broken():
            return
        _broken[self._default] = why
        for other in {self, *_councils}:
            if other._default is self._default:
                other._say_first("broken", why)

    def failed(self, error: BaseException) -> None:
        if self._why_broken():
            return
        why = f"rank {self._rank} has failed: {_line(error)}"
        self._failed = self._failed or _line(error)
        if self._is_unwatched or not isinstance(error, Exception):
            self._break(why)
        else:
            self._say_first(f"failed/{self._met}", why)

    def _say_where(self, op: str) -> None:
        """This rank waits, if another one asks."""
        try:
            if self._store.check(["ends"]):
                self._store.set(f"waits/{self._rank}", op)
        except RuntimeError:
            pass

    def _end(self, op: str, why: str, begin: float, key: str) -> None:
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
        told = self._told(key)
        missing = [rank for rank in self.members if rank not in places]
        others = {rank: place for rank, place in places.items() if place != op}
        text = why or f"no end after {time.monotonic() - begin:.0f} s"
        if missing and len(missing) < self.ranks:
            text += f"; ranks {missing} have not come to it"
        if others:
            text += "; " + ", ".join(f"rank {r} waits in {p}" for r, p in others.items())
        text = told or text
        self._break(told or f"rank {self._rank} has failed in {op}: {text}")
        raise tarn.Rejected(f"rank {self._rank} ends the step in {op}: {text}")


def number_of(text: str) -> int:
    """For votes: texts that differ have other numbers."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


def _line(error: BaseException) -> str:
    """Of what kind an error is, and what its text begins with."""
    return f"{type(error).__name__}: {(str(error) or type(error).__name__).splitlines()[0]}"


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
    on_one_rank = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._warned: set[str] = set()  # of what: each is told once
        self._voted = True
        self._is_told = False  # do all ranks know of the error that this one raises?
        try:
            super().__init__(*arguments, **options)
        except BaseException as error:
            if not isinstance(error, Exception):  # those are what subclasses tell
                self.wire.failed(error)
            raise

    def __call__(self, *batch: Any) -> Any:
        self.wire.goes_on()
        self._voted = self._is_told = False
        with self._telling():
            self._begin()
            return super().__call__(*batch)

    def _begin(self) -> None:
        """Before each call."""

    def report(self) -> Report:
        self.wire.votes(0, "a report")
        self._is_told = False
        with self._telling():
            return super().report()

    def eager(self, *batch: Any) -> Any:
        self.wire.goes_on()
        return super().eager(*batch)

    def _vote(self, mine: int) -> Any:
        """What each rank would run; once in each call. Raises NotRun if others run eagerly."""
        if self._voted:
            return []
        self._voted = True
        votes = self.wire.votes(mine)
        if EAGER in votes and mine != EAGER:
            self._not_run(self._eager_ranks(votes))
        return votes

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
            if not self._is_told:
                self.wire.failed(error)
            raise

    def _run(self, variant: Any) -> None:
        with self._telling():
            super()._run(variant)

    def _rehearse(self, variant: Any) -> None:
        try:
            with self._telling():  # of what is kept beside the run, too
                super()._rehearse(variant)
        except tarn.Rejected:
            raise
        except Exception:  # NotRun, too: before the eager step that follows
            self.wire.votes(0, "the end of a rehearsal")
            raise

    def _differs(self, loss: Any, batch: Any) -> str:
        told = self.wire.told(super()._differs(loss, batch), "the comparison with eager execution")
        return next(filter(None, told), "")
