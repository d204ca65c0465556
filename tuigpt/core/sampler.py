"""From logits to the next token: pure functions over the last dimension."""

import torch
from torch import Tensor

from tuigpt.config import SampleConfig, UserError


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Set every logit below the k-th largest to -inf; ties with the k-th stay.

    Args:
        logits: (..., vocab_size).
        k: 0, or anything from vocab_size up, keeps all.

    Source: Fan et al., "Hierarchical Neural Story Generation" (2018), section 5.1; ties as in the
    workshop's part 4.
    """
    if k <= 0 or k >= logits.size(-1):
        return logits
    kth_largest = torch.topk(logits, k).values[..., -1:]
    return logits.masked_fill(logits < kth_largest, -torch.inf)


def next_token_probs(logits: Tensor, config: SampleConfig) -> Tensor:
    """The distribution that the next token is drawn from: temperature, then top-k, then softmax.

    Args:
        logits: (..., vocab_size) float.
        config: its temperature must be above 0.

    Returns:
        probabilities, (..., vocab_size).
    """
    return torch.softmax(top_k_filter(logits / config.temperature, config.top_k), dim=-1)


def sample(logits: Tensor, config: SampleConfig, generator: torch.Generator) -> int:
    """Draw the next token; temperature 0 takes the likeliest.

    Args:
        logits: (vocab_size,) float32 on the CPU.
        generator: on the CPU, so that every device draws the same.

    Raises:
        UserError: a logit is not finite, so the weights are broken.
    """
    if not torch.isfinite(logits).all():
        raise UserError(
            "this checkpoint is broken: its weights give logits that are not finite;"
            " open an earlier checkpoint"
        )
    # So near 0, dividing overflows float32; the limit of the distribution is the argmax.
    if config.temperature < 1e-6:
        return int(logits.argmax())
    return int(torch.multinomial(next_token_probs(logits, config), 1, generator=generator))
