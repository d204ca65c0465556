"""Numbers in words, the same on the command line and in the app."""

import math
import re
import unicodedata


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


MEMORISES = "would memorise the text"
"""Said of a model that will memorise its text instead of what texts have in common."""


def density(parameters_per_character: float) -> str:
    """How large a model is for its text: 0.1 or 11 parameters a character."""
    ratio = parameters_per_character
    return f"{f'{ratio:.2g}' if ratio < 10 else short_count(round(ratio))} parameters a character"


def overfitting(parameters_per_character: float, epochs: float) -> str:
    """What to expect of a model that will memorise its text, and what to do."""
    return (
        f"it {MEMORISES}: {density(parameters_per_character)}, and the text read"
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


def val_text(loss: float | None, estimate: float | None) -> str:
    """A val loss as `loss_text` has it; where only an estimate is known, that with a tilde."""
    return f"~{loss_text(estimate)}" if loss is None and estimate is not None else loss_text(loss)
