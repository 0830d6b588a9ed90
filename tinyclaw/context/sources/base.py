"""Who the model is here and how it works: the prompt template ``base.md``."""

from __future__ import annotations

from tinyclaw.context.source import SourceContext, source


@source(placement="prefix", priority=100, required=True, order=0)
def base(context: SourceContext) -> str:
    """The base prompt."""
    return context.prompts("base").strip()
