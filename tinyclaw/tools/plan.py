"""PLAN.md: show it, write its text, set its goal and status. Approving it is the person's."""

from __future__ import annotations

from typing import Annotated, Literal

from tinyclaw.errors import StateError, ToolError
from tinyclaw.state.documents import Document
from tinyclaw.state.merge import split_lines
from tinyclaw.state.plan import Plan
from tinyclaw.state.workspace import PLAN
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._edit_match import BREAK
from tinyclaw.tools._statement import open_state_file, refused, save, stated
from tinyclaw.tools._writing import refuse_masks
from tinyclaw.types import ToolOutput


@tool(effect="state", shows="status")
def plan(
    ctx: ToolContext,
    text: Annotated[str | None, "the new text below the frontmatter, whole"] = None,
    status: Literal["draft", "done"] | None = None,
    goal: Annotated[str | None, "what must be true in the end; empty takes it back"] = None,
) -> ToolOutput:
    """Write the plan in PLAN.md, or set its status or goal; without arguments, show it.

    Only the person can approve a plan: write it, say that it is ready, and wait. They may edit it at any time, and
    what stands in the file counts. To change a few lines, use edit.
    """
    place, base = open_state_file(ctx, PLAN)
    if text is None and status is None and goal is None:
        if base.data is None:
            return ToolOutput(f"There is no {PLAN} yet; give text to begin one.")
        return stated(ctx, place, base)
    try:
        data = _changed(base.data or b"", text, status, goal)
    except StateError as error:
        raise refused(error) from error
    given = {"text": text, "status": status, "goal": goal}
    done = f"{PLAN}: {', '.join(name for name, value in given.items() if value is not None)} set."
    return save(ctx, place, base, data, done, text or "")


def _changed(data: bytes, text: str | None, status: Literal["draft", "done"] | None, goal: str | None) -> bytes:
    refuse_masks(f"{text or ''}\n{goal or ''}")
    plan = Plan.parse(data)
    if status is not None or "status" not in plan.document.fields:
        data = plan.set_status(status or "draft")
    if goal is not None:
        data = Plan.parse(data).set_goal(goal)
    return data if text is None else _with_text(data, text)


def _with_text(data: bytes, text: str) -> bytes:
    """The file with another body; its frontmatter stays as it is."""
    if Document.parse(text.encode("utf-8", "replace"), PLAN).body_line > 1:
        raise ToolError("text begins with frontmatter. Give the plan's text alone; status and goal are arguments.")
    document = Document.parse(data, PLAN)
    head = "".join(split_lines(document.source)[: document.body_line - 1])
    body = text.strip("\r\n") + "\n"
    if head:
        body = f"\n{body}" if head.endswith("\n") else f"\n\n{body}"
    return document.replaced(len(head), len(document.source), BREAK.sub(lambda _: document.newline, body))
