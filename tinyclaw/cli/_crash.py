"""An unexpected error: its details go to a file outside the workspace, the person gets one line."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from pathlib import Path

from tinyclaw import __version__
from tinyclaw.cli._here import now
from tinyclaw.state.redaction import Masker


def describe(error: Exception) -> str:
    """Write the traceback to a file and give the line that names it."""
    what = f"{type(error).__name__}: {error}".split("\n", 1)[0][:200]
    place = _write("".join(traceback.format_exception(error)))
    masked = Masker(os.environ).mask(what)
    return f"unexpected error ({masked}); this is a fault of tinyclaw, details are in {place}"


def _write(details: str) -> str:
    text = f"tinyclaw {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n{details}"
    text = Masker(os.environ).mask(text)
    name = f"crash-{now():%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError:
            continue
        return str(folder / name)
    return "no file, for none could be written:\n" + text


def _folders() -> list[Path]:
    from platformdirs import user_state_path

    try:
        own = user_state_path("tinyclaw", appauthor=False)
    except (RuntimeError, KeyError):
        own = Path()
    return [*([own] if own.is_absolute() else []), Path(tempfile.gettempdir())]
