"""Costs of ops in a file that runs share: the same costs give the same plan."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Union


def _profiles() -> Any:
    """estimating is imported where it is needed: it imports stepping."""
    from .estimating import profiles  # pylint: disable=import-outside-toplevel
    return profiles


class Costs:
    """Of the file at `path`, a tarn.profile of this device and PyTorch; without one, what is measured
    holds."""

    def __init__(self, path: Union[str, os.PathLike[str], None]) -> None:
        self._path = None if path is None else Path(path)

    def agree(self, lowered: Any) -> None:
        """Gives ops the costs that the file has, and adds those that it lacks."""
        if self._path is None:
            return
        profiles = _profiles()
        measured = profiles.Profile.of(lowered, lowered.device)
        known = self._known(measured)
        for op in lowered.ops:
            entry = known.entries.get(profiles.signature(lowered, op)) if known else None
            entry = entry or measured.entries[profiles.signature(lowered, op)]
            op.cost = round(1e9 * entry.seconds)
        entries = {**measured.entries, **(known.entries if known else {})}
        if known is None or len(entries) > len(known.entries):
            self._write(profiles.Profile(entries, measured.device, measured.torch))

    def _known(self, measured: Any) -> Any:
        if self._path is None or not self._path.exists():
            return None
        found = _profiles().Profile.load(self._path)
        same = (found.device, found.torch) == (measured.device, measured.torch)
        return found if same else None  # of others nothing holds, and it is written anew

    def _write(self, profile: Any) -> None:
        """All at once, for others may read it."""
        assert self._path is not None
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        os.close(handle)
        try:
            profile.save(name)
            os.replace(name, self._path)
        except BaseException:
            os.unlink(name)
            raise
