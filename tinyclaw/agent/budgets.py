"""Asks the server once for its models' limits, beside the work, and takes them over as soon as they are there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

from tinyclaw.errors import StateError
from tinyclaw.model.connection import Endpoint
from tinyclaw.model.limits import Limits, LimitsFile, limits_from
from tinyclaw.types import Usage

GROWN_TOKENS = 20_000
"""Below this size the window of a known model does not matter."""


@dataclass
class Budgets:
    """``take_over`` gets the limits of ``model``; it is called in another thread.

    ``is_guessed``: nothing is known of the model, so it is asked at the first chance. ``report`` keeps the details of
    a fault of ours and says in one line where they are; ``tell`` takes what the person has to know.
    """

    endpoint: Endpoint
    file: LimitsFile
    model: str
    is_guessed: bool
    today: date
    take_over: Callable[[Limits], None]
    tell: Callable[[str], None]
    report: Callable[[Exception], str]
    _asked: bool = field(default=False, init=False)

    def grown(self, usage: Usage) -> None:
        """Tell of a reply: the first that makes it worth while has the server asked."""
        if self._asked or not (self.is_guessed or usage.prompt > GROWN_TOKENS):
            return
        self._asked = True
        threading.Thread(target=self._ask, name="model limits", daemon=True).start()

    def _ask(self) -> None:
        try:
            if self.file.is_fresh(self.today) and not self.is_guessed:
                return
            found = limits_from(self.endpoint.models())
            if self.model in found:
                self.take_over(found[self.model])
            if found:
                self.file.learn(found, self.today)
        except StateError as error:
            self.tell(f"{error}; the limits of the server's models are not kept")
        except Exception as error:  # the thread boundary: a fault of ours is no reason to stop the work
            self.tell(self.report(error))
