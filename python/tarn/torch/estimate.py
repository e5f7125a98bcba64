"""python -m tarn.torch.estimate MODEL.py:build --gpu H100: see estimating/command.py.

As a module it is called like the function: whoever imports it does not lose tarn.torch.estimate."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tarn.torch.estimating import estimate


class _Called(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return estimate(*arguments, **options)


if __name__ == "__main__":
    from tarn.torch.estimating.command import main
    sys.exit(main(sys.argv[1:]))
sys.modules[__name__].__class__ = _Called
