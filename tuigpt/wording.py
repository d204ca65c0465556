"""Numbers and losses in words, the same on the command line and in the app."""

import math
import re
import unicodedata
from collections.abc import Sequence

from tuigpt.loss import Baselines

PLAYS = frozenset({"shakespeare", "tinyshakespeare"})
"""Names of the texts that `MILESTONES` speak of."""

MILESTONES = (
    (1.8, "first recognisable words"),
    (1.45, "recognisable words, the shape of a play"),
    (1.2, "whole phrases, names and verse that hold together"),
    (1.0, "fluent verse"),
    (0.0, "so low that it may be reciting its training text"),
)
"""Lowest loss of each stage on Shakespeare's plays, in nats per character, after the workshop."""

WORSE_THAN_GUESSING = 0.5
"""How far a loss must lie above that of pure guessing, in nats, before we call it worse."""

MEMORISING_ABOVE = 0.03
"""How far val_loss must lie above its best, in nats, before we speak of memorising."""


def meaning_of_loss(loss: float, baselines: Baselines, text: str = "") -> str:
    """What a loss says about how much a model knows of its text.

    What holds for any text is told by what counting alone reaches on it: a model knows pairs of
    letters when its loss is nearer to that of counting pairs than to that of counting letters.

    Args:
        loss: in nats per character; of a run that has begun to memorise, its best.
        baselines: of the text.
        text: its name; of Shakespeare's plays more is known.
    """
    if not math.isfinite(loss):
        return "not a number: the model has diverged"
    guessing = baselines.guessing if baselines.guessing is not None else math.inf
    if loss > guessing + WORSE_THAN_GUESSING:
        return "worse than guessing: the learning rate may be too high"
    if loss >= 0.95 * guessing:
        return "nothing learned yet: every character is as likely as any other"
    letters, pairs, triples = baselines.letters, baselines.pairs, baselines.triples
    if letters is None or pairs is None or triples is None:
        return "it has begun to learn: better than guessing"
    if loss >= (letters + pairs) / 2:
        return "it has learned how often each letter comes"
    if loss >= (pairs + triples) / 2:
        return "it knows which letters come in pairs"
    milestones = MILESTONES if text in PLAYS else ()
    for lowest, words in milestones:
        if loss >= lowest:
            return words
    if loss >= triples:
        return "it knows which letters come in threes"
    return "it knows more than counting three letters can tell: it has begun to learn words"


def gap_in_words(val: Sequence[tuple[int, float]]) -> str:
    """Whether the model still learns or has begun to memorise, from its (step, val_loss) series."""
    measured = [(step, loss) for step, loss in val if math.isfinite(loss)]
    if len(measured) < 2:
        return ""
    best_step, best = min(measured, key=lambda point: point[1])
    now = measured[-1][1]
    if now - best > MEMORISING_ABOVE:
        return f"memorising: +{now - best:.2f} since its best, {best:.2f} at step {best_step:,}"
    return f"val is {'at' if now == best else 'near'} its lowest: no overfitting yet"


def short_count(number: float) -> str:
    """A count in at most four characters and a unit: 950, 8.1k, 10.8M."""
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M"), (math.inf, "G")):
        if number < limit * 0.9995:
            value = number / (limit / 1e3 if limit < math.inf else 1e9)
            return f"{value:.0f}{unit}" if not unit or value >= 99.95 else f"{value:.1f}{unit}"
    raise ValueError(number)


def file_size(n_bytes: float) -> str:
    """A file's size, such as 41 MB."""
    count = short_count(n_bytes)
    digits = count.rstrip("kMG")
    return f"{digits} {count[len(digits) :]}B"


def duration(seconds: float) -> str:
    """A length of time that stays put while it runs: 45 s, 6 min, 2 h 05 min, 3 d 4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24} h"


def times(number: float) -> str:
    """How often something is done: 0.3 times, 4.8 times, 120 times."""
    return f"{number:.1f} times" if number < 10 else f"{short_count(round(number))} times"


def step_time(seconds: float) -> str:
    """How long a step takes: 12 ms, 0.27 s, 6.2 s."""
    if seconds >= 9.95:
        return duration(seconds)
    return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s"


def density(parameters_per_character: float) -> str:
    """How large a model is for its text: 0.1 or 11 parameters a character."""
    ratio = parameters_per_character
    return f"{f'{ratio:.2g}' if ratio < 10 else short_count(round(ratio))} parameters a character"


def overfitting(parameters_per_character: float, epochs: float) -> str:
    """What to expect of a model that will learn its text by heart, and what to do."""
    return (
        f"it will overfit: {density(parameters_per_character)}, and the text read"
        f" {times(epochs)}; take fewer steps, a smaller model or more text"
    )


def visible(text: str) -> str:
    """Text that is safe on a terminal: control characters but newline and tab become pictures.

    So do the signs that turn the direction of what follows them: they would scramble the line.
    """
    return _UNSAFE.sub(lambda found: _picture(found[0]), text)


def one_line(text: str) -> str:
    """Safe text with its line ends shown as ⏎."""
    return visible(text.replace("\n", "⏎"))


def with_line_feeds(text: str) -> str:
    """Text whose lines end in LF, whether they ended in CRLF, in CR or in LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def symbols_shown(symbols: str, most: int = 8) -> str:
    """The first of some characters, each so that it can be read: 'a', '◌̈', space, U+200D, …"""
    shown = map(symbol_shown, symbols[:most])
    named = [f"{name!r}" if len(name) <= 2 else name for name in shown]
    return ", ".join([*named, *["…"] * (len(symbols) > most)])


def symbol_shown(symbol: str) -> str:
    """One character so that it can be seen and read, alone and where it is put.

    A mark stands on a dotted circle instead of on its neighbour; blanks have names.
    """
    if symbol == " ":
        return "space"
    if symbol in "\n\t":
        return {"\n": "⏎", "\t": "⇥"}[symbol]
    category = unicodedata.category(symbol)
    if category in ("Cf", "Cn", "Co", "Cs", "Zs", "Zl", "Zp"):
        return f"U+{ord(symbol):04X}"
    return f"◌{symbol}" if category.startswith("M") else visible(symbol)


_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _picture(control: str) -> str:
    if control in "\n\t":
        return control
    if ord(control) >= 128:
        return "\ufffd"
    return "\u2421" if control == "\x7f" else chr(0x2400 + ord(control))


def age(seconds: float) -> str:
    """How long ago, coarse enough not to flicker: now, 6 min, 5 h, 3 d."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return "now"


def loss_text(loss: float | None) -> str:
    """A loss with two decimals; NaN and none in words that fit."""
    if loss is None:
        return "–"
    return f"{loss:.2f}" if math.isfinite(loss) else "NaN"
