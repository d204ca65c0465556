"""`tuigpt generate`: text from a checkpoint, streamed to standard output."""

import sys
from pathlib import Path

from tuigpt.config import SampleConfig
from tuigpt.core.checkpoint import load_checkpoint
from tuigpt.core.decode import generate, read_prompt
from tuigpt.core.device import resolve_device
from tuigpt.runs.store import find_checkpoint
from tuigpt.wording import one_line, visible


def run(home: Path, spec: str, prompt_text: str, config: SampleConfig, device_name: str) -> int:
    """Print the prompt as the model read it, then new text as it is drawn.

    Notes about the prompt go to stderr, so that a pipe gets nothing but the text.

    Raises:
        UserError: there is no such checkpoint or device, or the checkpoint is broken.
    """
    device = resolve_device(device_name)
    model, tokenizer, _ = load_checkpoint(find_checkpoint(spec, home).path, device)
    prompt = read_prompt(prompt_text, tokenizer)
    if prompt.dropped:
        _note(f"the model does not know {one_line(prompt.dropped)!r}: left out of the prompt")
    if len(prompt.dropped) == len(set(prompt_text)):
        _note(f"nothing to go on from: started with {prompt.text!r}")
    if len(prompt.ids) > model.config.block_size:
        _note(
            f"the model sees the last {model.config.block_size} of {len(prompt.ids):,} characters"
        )

    shown = visible if sys.stdout.isatty() else str
    _write(shown(prompt.text))
    try:
        for token in generate(model, prompt.ids, config):
            _write(shown(tokenizer.decode([token])))
    finally:
        _write("\n")
    return 0


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _note(message: str) -> None:
    print(f"tuigpt: {message}", file=sys.stderr)
