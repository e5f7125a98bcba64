"""Ids, each kind with a type of its own: a type checker finds one that is taken for another. At run
time they are plain numbers. Names and records (tarn.Tensor, tarn.Op, tarn.Space) stand for ids."""
from __future__ import annotations

from typing import TYPE_CHECKING, NewType, Union

TensorId = NewType("TensorId", int)
OpId = NewType("OpId", int)
StreamId = NewType("StreamId", int)
SpaceId = NewType("SpaceId", int)
GroupId = NewType("GroupId", int)

if TYPE_CHECKING:
    from .graph import Op, Space, Tensor

TensorRef = Union[TensorId, "Tensor", str]
OpRef = Union[OpId, "Op", str]
StreamRef = Union[StreamId, str]
SpaceRef = Union[SpaceId, "Space", str]
