"""What a user can mend, told so that each front end can spell it in its own words.

The shell calls a setting `--block-size`, the app calls it block size. So an error's text is made of
words and `Setting`s, and whoever shows it spells the settings.
"""

from collections.abc import Callable
from typing import NamedTuple


class Setting(NamedTuple):
    """A setting that an error's text names.

    Attributes:
        name: the field of a configuration, or the name of an option, such as "block_size".
        value: shown behind the name; None shows the name alone.
    """

    name: str
    value: object = None


def in_words(setting: Setting) -> str:
    """A setting as the app and the run folder call it: block size 64, n_embd 384."""
    name = setting.name if setting.name.startswith("n_") else setting.name.replace("_", " ")
    return name if setting.value is None else f"{name} {setting.value}"


class UserError(Exception):
    """A problem that the user can mend.

    Attributes:
        parts: one line of text: words, and the settings that it names.
    """

    def __init__(self, *parts: str | Setting) -> None:
        super().__init__(*parts)
        self.parts = parts

    def spelled(self, spell: Callable[[Setting], str]) -> str:
        """The text with its settings spelled by a front end."""
        return "".join(part if isinstance(part, str) else spell(part) for part in self.parts)

    def __str__(self) -> str:
        return self.spelled(in_words)


class ConfigError(UserError):
    """A value of a setting that cannot work.

    Attributes:
        field: name of the setting, for a form that marks it.
        value: what it was.
        need: what it must be, as parts of a sentence.
    """

    def __init__(self, field: str, value: object, *need: str | Setting) -> None:
        super().__init__(Setting(field), f" is {value!r}, but it must be ", *need)
        self.field = field
        self.value = value
        self.need = need
