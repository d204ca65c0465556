"""tuigpt for Python programs: a checkpoint as an object that writes. `tuigpt.load` makes it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tuigpt.config import SampleConfig
from tuigpt.generation.decode import TextGenerator, read_prompt
from tuigpt.generation.judge import open_checkpoint
from tuigpt.model.checkpoint import LoadedCheckpoint
from tuigpt.model.device import resolve_device
from tuigpt.model.gpt import GPT
from tuigpt.paths import home_dir
from tuigpt.runs.names import find_checkpoint
from tuigpt.text.tokenizer import Tokenizer
from tuigpt.wording import symbols_shown


class LoadedModel:
    """A checkpoint's model in memory, ready to write.

    Attributes:
        path: the checkpoint's file.
        model: the network, float32, in eval mode: `model(ids)` gives logits and None.
        tokenizer: text to token ids and back.
        config: how `generate` draws where it is called without settings; it may be replaced.
    """

    def __init__(self, path: Path, loaded: LoadedCheckpoint) -> None:
        self.path = path
        self.model: GPT = loaded.model
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.config = SampleConfig()

    def generate(self, prompt: str = "", **settings: float) -> Iterator[str]:
        """Continue a prompt.

        Args:
            prompt: text to continue; a warning names characters that the model does not know.
            settings: those of `SampleConfig` that are to differ from `config`, by their names, such
                as `temperature=0.5`, `max_new_tokens=1000` or `seed=7`.

        Returns:
            the new text in pieces, each as soon as it is drawn; `"".join` makes it one. The same
            prompt and settings always give the same text, also on the command line.

        Raises:
            ConfigError: a setting has an impossible value.
            TypeError: there is no setting of that name.
        """
        read = read_prompt(prompt, self.tokenizer)
        if read.dropped:
            unknown = symbols_shown(read.dropped)
            warnings.warn(f"left out, not known to the model: {unknown}", stacklevel=2)
        config = replace(self.config, **settings)  # type: ignore[arg-type]
        return self._pieces(TextGenerator(self.model, read.ids, config))

    def _pieces(self, generator: TextGenerator) -> Iterator[str]:
        stream = self.tokenizer.stream()
        for tokens in generator:
            if piece := stream.push(tokens):
                yield piece
        if piece := stream.flush():
            yield piece

    def __repr__(self) -> str:
        return f"<tuigpt model {str(self.path)!r}: {self.model.config}>"


def load_model(
    spec: str | os.PathLike[str], home: str | os.PathLike[str] | None, device: str
) -> LoadedModel:
    """Find a checkpoint as the shell does, and load it. `tuigpt.load` explains the arguments."""
    found = find_checkpoint(os.fspath(spec), home_dir(home))
    return LoadedModel(found.path, open_checkpoint(found.path, resolve_device(device)))
