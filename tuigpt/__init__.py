"""Train a small GPT in the terminal, watch it learn, prompt it, browse its checkpoints.

For Python programs there is `load`; everything else is the program `tuigpt`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuigpt.version import __version__

if TYPE_CHECKING:
    import os

    from tuigpt.generation.library import LoadedModel

__all__ = ["__version__", "load"]


def load(
    spec: str | os.PathLike[str],
    home: str | os.PathLike[str] | None = None,
    device: str = "auto",
) -> LoadedModel:
    """Load a checkpoint's model to write with.

    >>> import tuigpt
    >>> poet = tuigpt.load("poet")
    >>> for piece in poet.generate("ROMEO:", temperature=0.8, max_new_tokens=100):
    ...     print(piece, end="")

    Args:
        spec: a checkpoint as on the command line: a file, `RUN` (its newest), `RUN@STEP`,
            `RUN@best`, or `poet`, the built-in model.
        home: where runs are kept; None for the usual place.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        tuigpt.errors.UserError: there is no such checkpoint or device, or it cannot be opened.
    """
    # Here, because `import tuigpt` is also the first thing that the app does, and torch is slow.
    from tuigpt.generation.library import load_model

    return load_model(spec, home, device)
