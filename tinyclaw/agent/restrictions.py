"""What the skills that are active allow: a skill is, from its load_skill call to the end of that turn.

A pure function of the conversation and of the skills' files as they are: it holds after a resume, too. A call must be
allowed by what the skill said when it was loaded and by what its file says now, so that an edit of the file narrows and
never widens. What runs without a question is not decided here.
"""

from __future__ import annotations

from typing import NamedTuple

from tinyclaw.agent.session import Session
from tinyclaw.state.skills import skill_of
from tinyclaw.state.transcript.content import call_of
from tinyclaw.state.transcript.fold import Conversation
from tinyclaw.state.transcript.grammar import Block
from tinyclaw.tools._skills import LOAD_SKILL, allows, has_pattern
from tinyclaw.types import ToolUse

_Allowed = tuple[str, ...] | None
"""Entries of ``allowed-tools``; None where everything is allowed."""
_UNCLEAR = "its allowed-tools cannot be understood"


class Active(NamedTuple):
    """A skill that was loaded in the turn that runs, and what it ``allowed`` then.

    ``path`` is its SKILL.md, "" where the result no longer says so.
    """

    name: str
    path: str
    allowed: _Allowed


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
                active[Active(name, str(block.attrs.get("skill") or ""), _recorded(block))] = None
    return tuple(active)


def refusal(session: Session, call: ToolUse) -> str | None:
    """Why an active skill does not let this call through, for the model; None when all do."""
    for active in active_skills(session.conversation):
        then = active.allowed, _UNCLEAR if active.allowed == () else ""
        for allowed, why in (_now(session, active.path), then):
            if allowed is not None and not allows(allowed, call.name, call.input):
                names = ", ".join(allowed) or f"no tool but {LOAD_SKILL}{why and f' ({why})'}"
                hint = session.hints.get("skill_restricts", name=call.name, skill=active.name, allowed=names)
                return f"{hint} {session.hints.get('single_commands')}" if has_pattern(allowed, call.name) else hint
    return None


def _recorded(result: Block) -> _Allowed:
    if "allowed" not in result.attrs:
        return None
    entries = result.attrs["allowed"]
    return tuple(each for each in entries if isinstance(each, str)) if isinstance(entries, list) else ()


def _now(session: Session, path: str) -> tuple[_Allowed, str]:
    """What the skill's file allows now, and why it is nothing where that is the file's fault."""
    if not path:
        return (), "the result of loading it no longer says which file it is"
    file = session.reader.file(path)
    if file is None:
        return (), "its file is gone"
    skill = skill_of(file)
    if skill.problem is not None:
        return (), str(skill.problem)
    return skill.allowed, _UNCLEAR if skill.allowed == () else ""
