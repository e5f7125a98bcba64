"""What the library's status codes become: exceptions with the library's text."""
from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any, Optional

from .ids import OpId, TensorId

NONE = 0xFFFFFFFF  # no id


class TarnError(Exception):
    """A call has failed. `op` and `tensor` are ids, or None; `pointer` is a JSON pointer into the
    file, or ""; `line` and `column` count from 1 and are 0 where there is none. `job` is the number
    of tarn.plan_many's job, from 0, or None."""

    job: Optional[int] = None

    def __init__(self, text: str, error: Any = None, path: Optional[str] = None):
        """For the package: error is a struct tarn_error, path the file of the call."""
        super().__init__(text)
        self.op: Optional[OpId] = None
        self.tensor: Optional[TensorId] = None
        self.pointer, self.device_code, self.line, self.column = "", 0, 0, 0
        if error:
            self.op, self.tensor = (None if i == NONE else i for i in (error.op, error.tensor))
            self.pointer, self.device_code = error.pointer.decode(), error.device_code
            self.line, self.column = error.line, error.column

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, vars(self)


class DoesNotFit(TarnError):
    """The plan needs more than the capacity or the budget; the text says how much. `least` has the
    bytes of the smallest arena that was found, which may be asked for instead; None: none was."""

    def __init__(self, text: str, error: Any = None, path: Optional[str] = None):
        super().__init__(text, error, path)
        self.least: Optional[int] = error.footprint or None if error else None


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
    """No memory, or a file could not be read or written: then errno and filename say more."""

    def __init__(self, text: str, error: Any = None, path: Optional[str] = None):
        super().__init__(text, error, path)
        if self.device_code:
            self.errno, self.strerror = self.device_code, os.strerror(self.device_code)
            self.filename = path

    def __reduce__(self) -> tuple[Any, ...]:
        system = {name: getattr(self, name) for name in ("errno", "strerror", "filename")}
        return type(self), self.args, {**vars(self), **system}


class FileMissing(OutOfResources, FileNotFoundError):
    """A file, or the folder to write it to, is not there."""


class AccessDenied(OutOfResources, PermissionError):
    """A file may not be read or written."""


class IsDirectory(OutOfResources, IsADirectoryError):
    """What was named as a file is a directory."""


class NoDirectory(OutOfResources, NotADirectoryError):
    """A part of a path that must be a directory is a file."""


class Interrupted(TarnError):
    """Stopped from outside before there was a result."""


BY_STATUS: dict[int, type[TarnError]] = {
    1: DoesNotFit, 2: UsageError, 3: BadInput, 4: DeviceError, 5: DeadlineExceeded, 6: Rejected,
    7: CheckFailed, 8: OutOfResources, 130: Interrupted}
BY_ERRNO = {errno.ENOENT: FileMissing, errno.EACCES: AccessDenied, errno.EPERM: AccessDenied,
            errno.EISDIR: IsDirectory, errno.ENOTDIR: NoDirectory}


def error_of(status: int, text: str, error: Any = None, path: Optional[str] = None) -> TarnError:
    """The exception for a status."""
    kind = BY_STATUS.get(status, TarnError)
    if kind is OutOfResources and error:
        kind = BY_ERRNO.get(error.device_code, kind)
    return kind(text, error, path)


def index_of(words: Sequence[Optional[str]], what: str, word: str) -> int:
    """The number of one of the words that an argument may be."""
    if word not in words:
        raise UsageError(f"{what} {word!r} is none of {', '.join(map(str, words))}")
    return words.index(word)
