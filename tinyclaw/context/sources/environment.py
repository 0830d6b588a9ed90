"""Where and when: the root, the folder we work in, the platform, the date of the session's start."""

from __future__ import annotations

from tinyclaw.context.source import SourceContext, source

_SHOWN = ("Workspace", "Working folder", "Platform", "Date")


@source(placement="prefix", priority=90, order=10)
def environment(context: SourceContext) -> str | None:
    """Facts of the machine and the session's start."""
    facts = [f"{name}: {context.snapshot.facts[name]}" for name in _SHOWN if context.snapshot.facts.get(name)]
    return "\n".join(["# Environment", *facts]) if facts else None
