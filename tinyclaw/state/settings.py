"""Typed settings from five places; later ones win, and every value knows where it came from.

Defaults, the user's SETTINGS.md, the workspace's ``.tinyclaw/SETTINGS.md`` and ``SETTINGS.local.md``,
the environment (``TINYCLAW_<NAME>``), the command line. A workspace's own files come with the
repository, so they may only tighten what restricts the agent; loosening is ignored and said.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from tinyclaw.errors import StateError, UsageError
from tinyclaw.state.files import read
from tinyclaw.state.workspace import OWN_FOLDER
from tinyclaw.types import Diagnostic, Mode, PermissionMode

if TYPE_CHECKING:
    from tinyclaw.state.documents import Document

FILE = "SETTINGS.md"
LOCAL_FILE = "SETTINGS.local.md"
ENVIRONMENT_PREFIX = "TINYCLAW_"
_MAX_BYTES = 256 * 1024
_AT_LEAST_ONE = ("max_tries", "request_timeout_seconds")
_LOOSENESS = {mode: index for index, mode in enumerate(get_args(PermissionMode))}


_WIDTHS = {
    "memory_select": ("off", "keywords", "model"),
    "memory_extract": ("off", "on"),
    "memory_flush": ("off", "on"),
    "memory_consolidate": ("off", "propose", "auto"),
}
"""What is done by itself, the least first: a workspace may have less of it done."""


@dataclass(frozen=True)
class Settings:
    """The settings in force. ``origins`` names the place of each value that is no default."""

    model: str = ""
    """Id of the main model, or ``replay:FILE``; empty for the newest one that tinyclaw knows."""
    permission_mode: PermissionMode = "ask"
    """What runs without a question: read-only, ask, accept-edits or auto."""
    mode: Mode = "default"
    """``plan`` looks and plans; nothing is changed but PLAN.md and TODO.md."""
    thinking: Literal["auto", "adaptive", "off"] = "auto"
    """Whether the model may think before it answers; ``auto`` asks for it where the model can."""
    max_tokens: int = 0
    """Longest answer in tokens; 0 for what suits the model."""
    max_requests: int = 0
    """Most requests in one turn, those beside the conversation included; 0 for no limit."""
    max_cost: float = 0.0
    """Most US dollars that one turn may cost; 0 for no limit."""
    prices: str = ""
    """What models cost that tinyclaw does not know, or other than it knows: a list of "PATTERN INPUT OUTPUT", in US
    dollars per million tokens; two more figures are those of cache writes and cache reads."""
    max_tries: int = 5
    """How often one request is tried when the server or the network fails."""
    request_timeout_seconds: int = 120
    """How long the server may be silent during a request."""
    instructions_bytes: int = 32 * 1024
    """Most bytes of all AGENTS.md files together in the prompt."""
    memory_index_lines: int = 200
    """Most lines of .memory/MEMORY.md in the prompt."""
    memory_index_bytes: int = 25 * 1024
    """Most bytes of .memory/MEMORY.md in the prompt."""
    high_water_tokens: int = 0
    """Above this size of a request old results are cleared and old messages summarized; 0 for what suits the model."""
    low_water_tokens: int = 0
    """The size down to which results are cleared; 0 for what suits the model."""
    small_model: str = ""
    """Id of the model for small questions about the memory; empty for the newest small one that tinyclaw knows."""
    memory_select: Literal["model", "keywords", "off"] = "model"
    """How records that matter for a turn are chosen: by the small model, by their words alone, or not at all."""
    memory_extract: Literal["on", "off"] = "on"
    """Whether the small model looks at the end of a turn for what is worth remembering."""
    memory_flush: Literal["on", "off"] = "on"
    """Whether what a summary finds worth remembering becomes records in .memory/."""
    memory_consolidate: Literal["propose", "auto", "off"] = "propose"
    """Whether records that say the same or no longer hold are merged once there are many: proposed, or done at once."""
    watcher: Literal["on", "off"] = "on"
    """Whether saves are noticed while the prompt is idle. Requests see every save in either case."""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    def origin(self, name: str) -> str:
        """Where a value came from: ``file:line``, a variable, a flag, or ``default``."""
        return self.origins.get(name, "default")


_HINTS = {name: hint for name, hint in get_type_hints(Settings).items() if name != "origins"}


@dataclass(frozen=True)
class _Value:
    """One setting as somebody wrote it."""

    name: str
    text: str
    origin: str
    from_workspace: bool = False
    place: tuple[str, int | None] = ("", None)


def load_settings(
    root: Path, user_dir: Path, environment: Mapping[str, str], flags: Mapping[str, str]
) -> tuple[Settings, list[Diagnostic]]:
    """The settings in force and what is wrong with the files; a faulty value leaves the one below it standing.

    Args:
        flags: settings of the command line by name.

    Raises: UsageError for a variable or a flag that means nothing.
    """
    diagnostics: list[Diagnostic] = []
    settings = Settings()
    for value in _values(root, user_dir, environment, flags, diagnostics):
        settings = _with(settings, value, diagnostics)
    return settings, diagnostics


def _values(
    root: Path,
    user_dir: Path,
    environment: Mapping[str, str],
    flags: Mapping[str, str],
    diagnostics: list[Diagnostic],
) -> Iterator[_Value]:
    own = root / OWN_FOLDER
    yield from _file_values(user_dir / FILE, f"~/{FILE}", diagnostics, from_workspace=False)
    for name in (FILE, LOCAL_FILE):
        yield from _file_values(own / name, f"{OWN_FOLDER}/{name}", diagnostics, from_workspace=True)
    for name in _HINTS:
        variable = ENVIRONMENT_PREFIX + name.upper()
        if environment.get(variable):
            yield _Value(name, environment[variable], f"environment {variable}")
    for name, text in flags.items():
        yield _Value(name, text, f"--{name.replace('_', '-')}")


def _file_values(path: Path, shown: str, diagnostics: list[Diagnostic], *, from_workspace: bool) -> Iterator[_Value]:
    try:
        found = read(path, limit_bytes=_MAX_BYTES)
    except StateError as error:
        diagnostics.append(Diagnostic(shown, None, str(error), "its settings are not used"))
        return
    if found.data is None:
        if path.is_symlink():
            diagnostics.append(Diagnostic(shown, None, "is a link that leads nowhere", "mend or delete the link"))
        return
    if b"\0" in found.data:
        diagnostics.append(Diagnostic(shown, 1, "holds NUL bytes and is no text", "its settings are not used"))
        return
    from tinyclaw.state.documents import Document

    document = Document.parse(found.data, shown)
    for name in document.fields:
        line = document.field_lines.get(name)
        if name in _HINTS and (text := _text_of(document, name)):
            yield _Value(name, text, f"{shown}:{line}", from_workspace, (shown, line))
        elif name not in _HINTS:
            close = difflib.get_close_matches(name, _HINTS, n=1)
            mend = f"did you mean {close[0]}?" if close else f"known are {', '.join(_HINTS)}"
            diagnostics.append(Diagnostic(shown, line, f'"{name}" is no setting', mend))
    diagnostics.extend(document.diagnostics)


def _text_of(document: Document, name: str) -> str:
    return "; ".join(document.strings(name)) if name == "prices" else document.string(name)


def _with(settings: Settings, value: _Value, diagnostics: list[Diagnostic]) -> Settings:
    try:
        typed = _typed(value.name, value.text)
    except ValueError as error:
        if not value.place[0]:
            raise UsageError(f"{value.origin}: {error}") from None
        if value.name == "permission_mode" and value.from_workspace:  # what restricts fails closed
            diagnostics.append(Diagnostic(*value.place, str(error), "read-only holds until it is mended"))
            return dataclasses.replace(settings, permission_mode="read-only", origins=_origins(settings, value))
        diagnostics.append(Diagnostic(*value.place, str(error), f"{value.name} stays {getattr(settings, value.name)}"))
        return settings
    if value.from_workspace and _loosens(value.name, typed, getattr(settings, value.name)):
        message = f"{value.name}: {value.text} would loosen what restricts the agent; a workspace may only tighten it"
        mend = f"set it in the user-level {FILE} or as {ENVIRONMENT_PREFIX}{value.name.upper()}"
        diagnostics.append(Diagnostic(*value.place, message, mend))
        return settings
    changed: dict[str, Any] = {value.name: typed, "origins": _origins(settings, value)}
    return dataclasses.replace(settings, **changed)


def _origins(settings: Settings, value: _Value) -> dict[str, str]:
    return {**settings.origins, value.name: value.origin}


def _typed(name: str, text: str) -> str | int | float:
    """``text`` as the setting's type. Raises: ValueError in words for the person."""
    hint = _HINTS[name]
    if hint is int:
        plain = text.replace("_", "").replace(",", "").strip()
        if not plain.isdecimal():
            raise ValueError(f"{name} is a whole number, not {text!r}")
        if int(plain) == 0 and name in _AT_LEAST_ONE:
            raise ValueError(f"{name} is at least 1")
        return int(plain)
    if hint is float:
        return _amount(name, text)
    allowed = get_args(hint)
    if allowed and text.strip().lower() not in allowed:
        raise ValueError(f"{name} is one of {', '.join(allowed)}, not {text!r}")
    return text.strip().lower() if allowed else text.strip()


def _amount(name: str, text: str) -> float:
    try:
        amount = float(text.strip().removeprefix("$"))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise ValueError(f"{name} is an amount in US dollars such as 0.50, not {text!r}")
    return amount


def _loosens(name: str, new: str | int | float, old: str | int | float) -> bool:
    """Whether ``new`` restricts less than ``old``. For limits, 0 is no limit; other prices make another limit."""
    if name == "permission_mode":
        return _LOOSENESS[str(new)] > _LOOSENESS[str(old)]
    if name == "mode":
        return old == "plan" and new != "plan"
    if name in _WIDTHS:
        return _WIDTHS[name].index(str(new)) > _WIDTHS[name].index(str(old))
    if name in ("max_requests", "max_cost"):
        return float(old) > 0 and not 0 < float(new) <= float(old)
    return name == "prices"
