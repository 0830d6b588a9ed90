"""A source is one way into the prompt: a function from the snapshot to pieces of text.

``@source`` declares where its pieces stand (``prefix``: pinned with the tools and cached; ``event``:
stated in the conversation when they change), how dear they are when room is short, and which files
it reads. Every public module of ``tinyclaw.context.sources`` is one source of the module's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from tinyclaw._discover import import_modules
from tinyclaw.context.cut import cut_file
from tinyclaw.errors import TinyclawError
from tinyclaw.state.snapshot import Snapshot, StateFile
from tinyclaw.types import Mode

Placement = Literal["prefix", "event"]


@dataclass(frozen=True)
class Limits:
    """How much of the files may enter the prompt, in bytes of UTF-8 or in lines."""

    instructions_bytes: int = 32 * 1024
    document_bytes: int = 32 * 1024
    index_bytes: int = 25 * 1024
    index_lines: int = 200
    catalog_bytes: int = 16 * 1024


@dataclass(frozen=True)
class SourceContext:
    """All that a source may see. A source reads no file, clock or environment by itself."""

    snapshot: Snapshot
    limits: Limits
    mode: Mode
    prompts: Callable[[str], str]
    """The text of the prompt template with that name."""


@dataclass(frozen=True)
class Piece:
    """A text for the prompt and where it comes from.

    ``path`` makes the piece a live file: a change of ``revision`` is stated in the conversation.
    ``lines`` says which lines of the file are in, ``note`` what was cut and why. A blank ``text`` with a note is
    left out for that reason. ``private`` text comes from the user level and is not written into the workspace.
    ``priority`` and ``required`` are the source's where they are None. ``arrives``: the file comes into sight by what
    the agent does or another file imports, so that its first statement is nobody's change. ``unsaid`` are files for
    which there is no room at all: what was said of them last stands.
    """

    id: str
    text: str
    path: str = ""
    revision: str = ""
    lines: str = ""
    note: str = ""
    private: bool = False
    priority: int | None = None
    required: bool | None = None
    arrives: bool = False
    unsaid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A source function and what it declares. ``priority``: the lower one falls out first.

    ``watches`` are patterns of ``state.snapshot``; a source without any speaks of facts that only we change.
    """

    function: Callable[[SourceContext], str | Iterable[Piece] | None]
    placement: Placement
    priority: int
    required: bool
    watches: tuple[str, ...]
    order: int

    @property
    def name(self) -> str:
        return self.function.__name__

    def pieces(self, context: SourceContext) -> tuple[Piece, ...]:
        """What the source has to say now; empty when nothing.

        A text about one watched file becomes that file's piece: bounded, and saying what is wrong with the file.
        """
        result = self.function(context)
        if result is not None and not isinstance(result, str):
            return tuple(piece for piece in result if piece.text.strip() or piece.note)
        watched = list(context.snapshot.files(*self.watches))
        if len(self.watches) == len(watched) == 1:
            return self._file_piece(watched[0], result, context.limits.document_bytes)
        return (Piece(self.name, result),) if result and result.strip() else ()

    def _file_piece(self, file: StateFile, text: str | None, limit_bytes: int) -> tuple[Piece, ...]:
        if file.problem is None and not (text and text.strip()):
            return ()
        shown = cut_file(replace(file, text=text or ""), limit_bytes)
        return (Piece(self.name, shown.text, file.path, file.revision, shown.lines, shown.note, file.private),)


def source(
    *,
    placement: Placement,
    priority: int = 50,
    required: bool = False,
    watches: tuple[str, ...] = (),
    order: int = 50,
) -> Callable[[Callable[[SourceContext], str | Iterable[Piece] | None]], Source]:
    """Declare a source. ``order`` places it in the prefix: what changes least comes first."""
    return lambda function: Source(function, placement, priority, required, watches, order)


@cache
def load_sources() -> tuple[Source, ...]:
    """Every source of the package, in the order in which their pieces stand."""
    import tinyclaw.context.sources as package

    found = []
    for name, module in import_modules(package).items():
        candidate = getattr(module, name, None)
        if not isinstance(candidate, Source):
            raise TinyclawError(f"{module.__file__} defines no source called {name}")
        found.append(candidate)
    return tuple(sorted(found, key=lambda each: (each.order, each.name)))


def watched_patterns(sources: Iterable[Source]) -> tuple[str, ...]:
    """Every pattern that a snapshot must hold for these sources, each once."""
    return tuple(dict.fromkeys(pattern for each in sources for pattern in each.watches))
