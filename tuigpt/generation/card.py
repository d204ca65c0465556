"""How to print a text again: commands, checkpoint, and the card that carries them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from tuigpt.config import SampleConfig
from tuigpt.paths import default_home, runs_dir
from tuigpt.runs.folder import Checkpoint
from tuigpt.shell import bash_line, tuigpt_line


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
    run_folder = runs_dir(home) / checkpoint.run
    in_home = bool(checkpoint.run) and checkpoint.path.is_relative_to(run_folder)
    by_name = in_home or checkpoint.built_in
    subject = checkpoint.label if by_name else str(checkpoint.path.absolute())
    flags = [f"--prompt={prompt}"]
    for entry in fields(SampleConfig):
        value = getattr(config, entry.name)
        if entry.name not in ("top_p", "min_p") or value != entry.default:
            flags += ["--" + entry.name.replace("_", "-"), repr(value)]
    home = home if in_home else default_home()
    return tuigpt_line("generate", subject, *flags, *extra, home=home)


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
    return bash_line([*words, "--seed", str(config.seed)])


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
