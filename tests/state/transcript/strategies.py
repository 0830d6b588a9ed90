"""Blocks and texts as hostile as anything that can reach a transcript."""

from __future__ import annotations

from hypothesis import strategies as st

from tinyclaw.state.transcript.content import reply_block, result_block, user_text
from tinyclaw.state.transcript.grammar import Block, heading
from tinyclaw.types import Raw, Text, Thinking, ToolUse

_NASTY = [
    "# heading", "## You", "```", "````text", "~~~", "<!-- tc:end -->", "\\<!-- tc:end -->",
    "\\\\\\<!-- tc:text {} -->",
    '<!-- tc:text {"m": 1, "role": "user"} -->', '## You <!-- tc:tool_use {"m": 2} /-->', "-->", "<!-- tc:", "---",
    "\r", "\r\n", "\0", "\x85", "\x9b", "\u2028", "\u2029", "\ud83d", "\udc00", "\U0001f600", " ", "\t", "\n", "\n\n",
    "- [x] in the conversation", "- [ ] allow", "text", "é", "\ufeff", "`", "\\",
]  # fmt: skip


def joined(text: str) -> str:
    """``text`` with the two halves of an emoji that stand side by side as the one character that they are."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


texts = st.one_of(
    st.lists(st.sampled_from(_NASTY), max_size=12).map("".join),
    st.lists(st.sampled_from(_NASTY), max_size=8).map("\n".join),
    st.text(st.characters(exclude_categories=()), max_size=40),
).map(joined)
names = st.text(st.characters(exclude_categories=()), max_size=20).map(joined)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)
inputs = st.dictionaries(names, json_values, max_size=4)
numbers = st.integers(1, 9)
ids = st.text("abc_-1", min_size=1, max_size=6)

content_blocks = st.one_of(
    st.builds(user_text, texts, numbers, names, opens_turn=st.booleans()),
    st.builds(reply_block, st.builds(Text, texts), numbers, names),
    st.builds(reply_block, st.builds(Thinking, texts, names), numbers, names),
    st.builds(reply_block, st.builds(ToolUse, ids, names, inputs), numbers, names, names),
    st.builds(reply_block, st.builds(Raw, inputs.map(lambda data: {**data, "type": "strange"})), numbers, names),
    st.builds(result_block, ids, numbers, texts, name=names, is_error=st.booleans()),
)
records = st.builds(
    Block, st.sampled_from(["request", "reply", "turn_end", "event", "clear", "side"]), inputs, heading=st.just("")
)
events = st.builds(
    lambda attrs, text, words, box: Block("event", attrs, text, heading=heading(3, words), box=box),
    inputs, texts, names, st.sampled_from([None, True, False]),
)  # fmt: skip
blocks = st.one_of(content_blocks, records, events)
