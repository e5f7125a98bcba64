"""What the plan of a step needs, for people."""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Sequence


class Report(NamedTuple):
    """Bytes and names.

    eager     the most that eager execution has alive at once beyond what stays; None where only a
              part of a batch was compared
    arena, bound  what the plan needs in its place, and what every plan of this order needs
    graphs, left_out  how many CUDA graphs the last step was; ops between them, and why
    not_captured  why a step on a GPU is never captured, where that is no fault: see `reason`
    compared  "all", or what part of a batch was compared with eager execution, or nothing
    moves, moved  copies to the host's memory and back in a step, and their bytes; host: bytes there
    collectives, gathers  in a step; gathers are those of parameters. gathered_again: names of those
              that a budget runs again. received: bytes that this rank gets from the others
    noise     where fused kernels differ by more than the tolerance of their types: by how much of
              its norm eager execution makes something else if its parameters are rounded otherwise,
              by name; twice that was then allowed"""

    eager: Optional[int]
    arena: Optional[int] = None
    bound: Optional[int] = None
    recomputed: Sequence[str] = ()
    copied: Mapping[str, int] = {}
    reason: Optional[str] = None
    graphs: int = 0
    left_out: Mapping[str, str] = {}
    compared: str = ""
    noise: Mapping[str, float] = {}
    collectives: int = 0
    gathers: int = 0
    gathered_again: Sequence[str] = ()
    received: int = 0
    moves: int = 0
    moved: int = 0
    host: int = 0
    not_captured: str = ""

    def __str__(self) -> Any:
        if self.arena is None:
            return f"eager: {self.eager} bytes; {self.reason}"
        against = "" if self.eager is None else (
            f" ({self.arena / self.eager - 1:+.1%} against eager's {self.eager})")
        text = f"arena {self.arena} bytes{against}, bound {self.bound}"
        if self.compared not in ("", "all"):
            text += f"; compared with eager execution: {self.compared}"
        if self.noise:
            text += (f"; rounding changes gradients of eager execution by "
                     f"{self.noise['gradients']:.1%}, so that they were not compared closer")
        if self.recomputed:
            text += f"; {len(self.recomputed)} ops run again: {', '.join(self.recomputed[:8])}"
            text += " ..." if len(self.recomputed) > 8 else ""
        if self.moves:
            text += (f"; {self.moves} copies to the host's memory and back, {self.moved} bytes; "
                     f"{self.host} bytes there")
        if self.collectives:
            gathered = (f", {self.gathers} gathers, {len(self.gathered_again)} of them again"
                        if self.gathers else "")
            text += f"; {self.collectives} collectives{gathered}; {self.received} bytes received"
        if self.graphs:
            text += "; one CUDA graph" if self.graphs == 1 else f"; {self.graphs} CUDA graphs"
        if self.not_captured:
            text += f"; no CUDA graph: {self.not_captured}"
        for name, why in self.left_out.items():
            text += f"; {name} beside them: {why}"
        return text
