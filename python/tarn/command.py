"""What only the command `tarn` can do, for graphs and plans of this process: explain and draw."""
from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from .errors import FileMissing, Interrupted, error_of

if TYPE_CHECKING:
    from .graph import Graph
    from .planning import Plan


def found() -> str:
    """The command: what TARN_COMMAND names, else this package's, else one of the PATH."""
    own = shutil.which("tarn", path=sysconfig.get_path("scripts"))
    return os.environ.get("TARN_COMMAND") or own or "tarn"


def run(verb: str, graph: Graph, plan: Optional[Plan], words: Sequence[str],
        allowed: Sequence[str] = (), timeout: Optional[float] = None) -> str:
    """What the command prints. Its errors are those that the library would raise. allowed: kinds of
    op that write in place."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, "graph.json")]
        graph.save(files[0])
        if plan is not None:
            files.append(os.path.join(folder, "plan.json"))
            plan.save(files[1])
        more = ["--in-place-kinds", ",".join(allowed)] if allowed else []
        try:
            done = subprocess.run([found(), verb, *files, *words, *more], timeout=timeout,
                                  capture_output=True, check=False)
        except OSError as error:
            raise FileMissing(f"the command tarn cannot be run: {error}; install the package with "
                              "pip, or name it in TARN_COMMAND") from None
    told = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0:
        raise Interrupted(f"the command tarn was ended by signal {-done.returncode}")
    if done.returncode and (verb, done.returncode) != ("show", 6):  # draws what is refused
        told = told[6:] if told.startswith("tarn: ") else told
        raise error_of(done.returncode, told or f"the command tarn has failed: {done.returncode}")
    return done.stdout.decode(errors="replace")


def show(path: Union[str, os.PathLike[str]], graph: Graph, plan: Optional[Plan],
         allowed: Sequence[str], **options: Any) -> None:
    """Draws to a file. options: those of `tarn show`, as of="svg", axis="time"."""
    words = [word for name, value in options.items() for word in ("--" + name, str(value))]
    run("show", graph, plan, ["-o", os.path.abspath(os.fspath(path)), *words], allowed)
