"""Streaming generation: one token after another from a prompt."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tuigpt.config import SampleConfig
from tuigpt.core.model import GPT
from tuigpt.core.sampler import sample
from tuigpt.core.tokenizer import CharTokenizer


@dataclass(frozen=True)
class Prompt:
    """A prompt as the model reads it.

    Attributes:
        text: the prompt with LF line ends and without the characters that have no token.
        dropped: those characters, each once.
        ids: (T,) int64, T at least 1.
    """

    text: str
    dropped: str
    ids: Tensor


def read_prompt(prompt: str, tokenizer: CharTokenizer) -> Prompt:
    """Prepare what a user typed. One that is empty becomes a newline, or the first symbol."""
    unified = prompt.replace("\r\n", "\n").replace("\r", "\n")
    kept, dropped = tokenizer.split_unknown(unified)
    kept = kept or ("\n" if "\n" in tokenizer.vocab else tokenizer.vocab[0])
    return Prompt(kept, dropped, torch.from_numpy(tokenizer.encode(kept)))


def generate(model: GPT, prompt_ids: Tensor, config: SampleConfig) -> Iterator[int]:
    """Yield new tokens one by one, each as soon as it is drawn.

    The text is the workshop's own: for each token the ids are cropped to the last `block_size`,
    the model runs on them, and the draw is made on the CPU from a generator seeded with
    `config.seed`. Training mode is restored at the end.

    Args:
        prompt_ids: (T,) int64 with T at least 1, on any device.

    Raises:
        UserError: the weights are broken (see `sample`).
    """
    device = model.lm_head.weight.device
    generator = torch.Generator().manual_seed(config.seed)
    block_size = model.config.block_size
    ids = prompt_ids.to(device)[-block_size:]
    was_training = model.training
    model.eval()
    try:
        for _ in range(config.max_new_tokens):
            with torch.inference_mode():
                logits = model(ids[None])[0][0, -1]  # (vocab_size,)
                token = sample(logits.float().cpu(), config, generator)
                ids = torch.cat((ids, ids.new_tensor([token])))[-block_size:]
            yield token
    finally:
        model.train(was_training)
