"""Which folders' instructions a conversation keeps in sight: those that calls touched, and those that it was given.

A session may be resumed from another folder, from which other ways lead to the root: what the model was told on the way
to the first one goes on standing, and is not told as gone.
"""

from __future__ import annotations

from tinyclaw.state.files import ABSENT
from tinyclaw.state.nested import folders_of
from tinyclaw.state.transcript.fold import Conversation
from tinyclaw.state.transcript.prefixes import Prefix


def folders_in_sight(conversation: Conversation, prefix: Prefix | None) -> tuple[str, ...]:
    """Folders from the root: the pinned ones first, then those touched, in the order of their first touch."""
    pinned = (block.path for block in prefix.blocks) if prefix is not None else ()
    stated = (path for path, said in conversation.statements.items() if said.revision != ABSENT)
    return tuple(dict.fromkeys((*folders_of(pinned), *conversation.touched, *folders_of(stated))))
