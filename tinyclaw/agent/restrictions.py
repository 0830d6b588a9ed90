"""What the skills that are active allow: a skill is, from its load_skill call to the end of that turn.

A pure function of the conversation and of the skills' files as they are: it holds after a resume, too, and a file that
says something else now counts as it is. It only ever narrows; what runs without a question is not decided here.
"""

from __future__ import annotations

from typing import NamedTuple

from tinyclaw.agent.session import Session
from tinyclaw.state.skills import FILE_NAMES, find_skills, skill_of
from tinyclaw.state.transcript.content import call_of
from tinyclaw.state.transcript.fold import Conversation
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.tools._skills import LOAD_SKILL, allows
from tinyclaw.types import ToolUse


class Active(NamedTuple):
    """A skill that was loaded in the turn that runs; ``path`` is its file, "" where the result no longer says so."""

    name: str
    path: str


def active_skills(conversation: Conversation) -> tuple[Active, ...]:
    """The skills that were loaded since the person spoke last, in the turn that runs."""
    names: dict[str, str] = {}
    active: dict[Active, None] = {}
    for block in (block for group in conversation.running_groups for block in group.blocks):
        if block.kind == "text" and block.box is not None:
            names, active = {}, {}
        elif block.kind == "tool_use":
            call = call_of(block)
            if call.name == LOAD_SKILL and isinstance(call.input.get("name"), str):
                names.setdefault(call.id, call.input["name"])
        elif block.kind == "tool_result" and not block.attrs.get("is_error"):
            name = names.get(str(block.attrs.get("id")))
            if name is not None:
                active[Active(name, _path(block))] = None
    return tuple(active)


def refusal(session: Session, call: ToolUse) -> str | None:
    """Why an active skill does not let this call through, for the model; None when all do."""
    for active in active_skills(session.conversation):
        allowed, why = _allowed(session, active)
        if allowed is not None and not allows(allowed, call.name, call.input):
            names = ", ".join(allowed) or f"no tool but {LOAD_SKILL}{why and f' ({why})'}"
            return session.hints.get("skill_restricts", name=call.name, skill=active.name, allowed=names)
    return None


def _allowed(session: Session, active: Active) -> tuple[tuple[str, ...] | None, str]:
    """What the skill allows now, None for everything, and why it is nothing where that is its file's fault."""
    if active.path:
        file = session.reader.file(active.path)
        skill = skill_of(file) if file is not None else None
    else:
        skill = find_skills(session.workspace, session.masker.mask).find(active.name)
    if skill is None:
        return (), "its file is gone"
    if skill.problem is not None:
        return (), str(skill.problem)
    return skill.allowed, "its allowed-tools cannot be understood" if skill.allowed == () else ""


def _path(result: Block) -> str:
    revisions = result.attrs.get("revisions")
    paths = revisions if isinstance(revisions, dict) else {}
    return next((path for path in paths if path.rpartition("/")[2] in FILE_NAMES), "")
