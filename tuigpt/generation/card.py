"""How to print a text again: commands, checkpoint, and the card that carries them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from tuigpt.config import SampleConfig
from tuigpt.paths import default_home, runs_dir
from tuigpt.runs.folder import Checkpoint


def tuigpt_command(
    checkpoint: Checkpoint,
    home: Path,
    prompt: str,
    config: SampleConfig,
    extra: Sequence[str] = (),
) -> str:
    """The command line that prints a text again, to be pasted into bash.

    Every setting is in it, also the defaults; but for top-p and min-p, which few have heard of.

    Args:
        home: where the user's runs are; it is in the command if it is not the default.
        extra: further arguments that the text depends on.
    """
    words = ["tuigpt", "generate"]
    if checkpoint.built_in:
        words.append(checkpoint.label)
    elif checkpoint.path.is_relative_to(runs_dir(home) / checkpoint.run):
        words.append(checkpoint.label)
        if home != default_home():
            words.append(f"--home={home}")
    else:
        words.append(str(checkpoint.path.absolute()))
    words.append(f"--prompt={prompt}")
    for entry in fields(SampleConfig):
        value = getattr(config, entry.name)
        if entry.name not in ("top_p", "min_p") or value != entry.default:
            words += ["--" + entry.name.replace("_", "-"), repr(value)]
    return _for_bash([*words, *extra])


def workshop_command(
    checkpoint: str, prompt: str, config: SampleConfig, vocab_size: int
) -> str | None:
    """The same text from the workshop's generate.py, or None when it cannot be asked for.

    Args:
        checkpoint: the name of the workshop's file with the same weights.
        prompt: as the model reads it.
    """
    if config.top_p != 1 or config.min_p != 0:
        return None
    # generate.py divides by the temperature, so greedy is the likeliest one of any temperature;
    # and it takes the k largest of vocab_size logits, so "off" is all of them.
    temperature, top_k = config.temperature or 1.0, config.top_k or vocab_size
    top_k = 1 if config.temperature == 0 else min(top_k, vocab_size)
    words = ["python", "generate.py", checkpoint, f"--prompt={prompt}"]
    words += ["--max_new_tokens", str(config.max_new_tokens)]
    words += ["--temperature", repr(temperature), "--top_k", str(top_k)]
    return _for_bash([*words, "--seed", str(config.seed)])


def card(text: str, command: str, workshop: str | None, checkpoint: Path, sha256: str) -> str:
    """A submission: the text, and all that is needed to print it again.

    Args:
        text: prompt and generated text.
    """
    lines = [
        text,
        "",
        "-" * 72,
        "Printed by:",
        f"  {command}",
        "The same in the workshop's own program, from the same weights:",
        f"  {workshop or '(it has no top-p and min-p)'}",
        f"Checkpoint: {checkpoint.name}",
        f"  sha256 {sha256}",
        "Verified: the plain loop (CPU, float32, no cache) writes the same text.",
    ]
    return "\n".join(lines) + "\n"


def file_sha256(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\udc80-\udcff]")


def _for_bash(words: Sequence[str]) -> str:
    """One line of bash. What a terminal would take for a key, or no text can hold, is escaped."""
    return " ".join(
        _ansi_c(word) if _CONTROLS.search(word) else shlex.quote(word) for word in words
    )


def _ansi_c(word: str) -> str:
    word = word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    escaped = _CONTROLS.sub(
        lambda found: "".join(f"\\x{byte:02x}" for byte in os.fsencode(found[0])), word
    )
    return f"$'{escaped}'"
