"""What write and edit share: what may not be written, and how a write is told to the model."""

from __future__ import annotations

from typing import NamedTuple

from tinyclaw.errors import FileChanged, StateError, ToolError
from tinyclaw.state import files
from tinyclaw.state.merge import unified
from tinyclaw.state.plan import Plan
from tinyclaw.state.redaction import holds_mask
from tinyclaw.state.workspace import Workspace
from tinyclaw.tools._base import ToolContext
from tinyclaw.tools._locate import Place, is_plan, unusable
from tinyclaw.tools._text import decode, shown

DIFF_CHARACTERS = 4_000


class Diff(NamedTuple):
    """A unified diff for the model; ``whole`` when nothing of it was cut."""

    text: str
    whole: bool


class Committed(NamedTuple):
    """``now``: the file as it stands after the write. ``others``: what somebody had saved meanwhile, merged in.

    ``revisions`` for the result: the file's, when the model knows what stands there.
    """

    now: files.FileRead
    others: Diff
    revisions: dict[str, str]


def refuse_masks(text: str) -> None:
    """Raises: ToolError when ``text`` holds the mark of a masked secret: the secret itself would be lost."""
    if holds_mask(text):
        raise ToolError(
            "The text holds a mask ([masked:…]) that stands for a secret you cannot see; writing it would destroy the "
            "secret. Edit smaller pieces around it."
        )


def refuse_approval(workspace: Workspace, place: Place, old: bytes | None, new: bytes) -> None:
    """Raises: ToolError when ``new`` would approve PLAN.md: only the person does that."""
    if is_plan(workspace, place) and _approved(new) and not _approved(old or b""):
        raise ToolError(
            "A tool cannot set `status: approved` in PLAN.md. Only the person approves: with `tinyclaw plan approve`, "
            "at the prompt, or in an editor. Leave the status as it is and say that the plan is ready."
        )


def _approved(data: bytes) -> bool:
    return Plan.parse(data).status == "approved"


def changes(old: bytes, new: bytes, name: str) -> Diff:
    """What somebody else made of ``old``."""
    return bounded(unified(shown(decode(old).text), shown(decode(new).text), name))


def bounded(diff: str) -> Diff:
    if len(diff) <= DIFF_CHARACTERS:
        return Diff(diff.rstrip("\n"), True)
    kept = diff[:DIFF_CHARACTERS].rpartition("\n")[0]
    return Diff(f"{kept}\n[diff cut: {len(kept):,} of {len(diff):,} characters; read the file for the rest]", False)


def commit(ctx: ToolContext, place: Place, data: bytes, base: files.FileRead, *, knows_base: bool) -> Committed:
    """Write ``data`` over ``base`` and remember what the model knows now (nothing, unless it ``knows_base``).

    Raises: ToolError when somebody saved over the same lines meanwhile (theirs stands), or the system refuses.
    """
    try:
        written = files.write(place.path, data, base=base)
    except FileChanged as error:
        raise ToolError(
            f"{place.name} was saved by somebody else in this moment, and both changes touch the same lines. Nothing "
            f"was written; their version stands. Read it again, then change it.\n{bounded(error.diff).text}".rstrip()
        ) from error
    except StateError as error:
        raise unusable(place, error) from error
    others = bounded(written.diff)
    now = files.read(place.path)
    if not (knows_base and others.whole and now.revision == written.revision):
        return Committed(now, others, {})
    ctx.ledger.note(place.name, now)
    return Committed(now, others, {place.name: now.revision})


def told(others: Diff) -> str:
    """The sentence for a merge, empty when there was none."""
    return f"\nSomebody saved it in the same moment; their change is merged in:\n{others.text}" if others.text else ""
