"""What the library's status codes become: exceptions with the library's text."""
from typing import Optional

NONE = 0xFFFFFFFF  # no id


class TarnError(Exception):
    """A call has failed. `op` and `tensor` are ids, or None; `pointer` is a JSON pointer into the
    file, or ""; `line` and `column` count from 1 and are 0 where there is none. `job` is the number
    of tarn.plan_many's job, from 0, or None."""

    job: Optional[int] = None

    def __init__(self, text: str, error=None):
        super().__init__(text)
        self.op = self.tensor = None
        self.pointer, self.device_code, self.line, self.column = "", 0, 0, 0
        if error:
            self.op, self.tensor = (None if i == NONE else i for i in (error.op, error.tensor))
            self.pointer, self.device_code = error.pointer.decode(), error.device_code
            self.line, self.column = error.line, error.column


class DoesNotFit(TarnError):
    """The plan needs more than the capacity or the budget; the text says how much."""


class UsageError(TarnError, ValueError):
    """An argument is wrong."""


class BadInput(TarnError, ValueError):
    """A graph, plan or file is malformed or breaks a rule; the text says where."""


class DeviceError(TarnError, RuntimeError):
    """The device or a kernel has failed."""


class DeadlineExceeded(TarnError, TimeoutError):
    """Work did not finish in time."""


class Rejected(TarnError):
    """The verifier refused a plan, or a plan is not the one that was expected."""


class CheckFailed(TarnError, AssertionError):
    """Checked execution read a byte that it must not hold."""


class OutOfResources(TarnError, OSError):
    """No memory, or a file could not be read or written."""


class Interrupted(TarnError):
    """Stopped from outside before there was a result."""


BY_STATUS = {1: DoesNotFit, 2: UsageError, 3: BadInput, 4: DeviceError, 5: DeadlineExceeded,
              6: Rejected, 7: CheckFailed, 8: OutOfResources, 130: Interrupted}


def index_of(words, what, word):
    """The number of one of the words that an argument may be."""
    if word not in words:
        raise UsageError(f"{what} {word!r} is none of {', '.join(words)}")
    return words.index(word)
