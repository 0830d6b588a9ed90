"""What the model is told when something goes wrong: the sections of the prompt template ``hints.md``."""

from __future__ import annotations

import re
from collections.abc import Callable

_SECTION = re.compile(r"(?m)^## (\w+)\n")


class Hints:
    """Hints by name, read from the template at the first use."""

    def __init__(self, prompts: Callable[[str], str]) -> None:
        self._prompts = prompts
        self._sections: dict[str, str] = {}

    def get(self, hint: str, /, **values: object) -> str:
        """The hint of that name with ``{…}`` filled in; one that the template lost is said plainly."""
        if not self._sections:
            parts = _SECTION.split(self._prompts("hints"))
            self._sections = dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))
        text = self._sections.get(hint, hint.replace("_", " "))
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", str(value))
        return text
