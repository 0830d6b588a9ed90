"""Tokens without a tokenizer: characters over a ratio, corrected by what the provider has reported."""

from __future__ import annotations

from dataclasses import dataclass

from tinyclaw.types import Json, Usage


@dataclass(frozen=True)
class Estimator:
    """``tokens = characters / chars_per_token``. ``corrected`` says that the ratio was measured in this session."""

    chars_per_token: float
    corrected: bool = False

    @classmethod
    def calibrated(cls, chars_per_token: float, usage: Usage | None, manifest: Json) -> Estimator:
        """The ratio of the last request whose tokens are known; a ratio far from the default is not believed."""
        chars = manifest.get("chars")
        if usage is None or not usage.prompt or not isinstance(chars, int):
            return cls(chars_per_token)
        measured = chars / usage.prompt
        if not chars_per_token / 3 < measured < chars_per_token * 3:
            return cls(chars_per_token)
        return cls(measured, corrected=True)

    def tokens(self, characters: int) -> int:
        """The estimate for that many characters."""
        return round(characters / self.chars_per_token)
