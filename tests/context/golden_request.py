"""The golden request: what a typical first request looks like, as Markdown that people can review.

``python -m tests.context.golden_request`` writes ``tests/context/golden/first_request.md`` again.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.context.conftest import FACTS, Bench
from tinyclaw.types import Request

GOLDEN = Path(__file__).parent / "golden" / "first_request.md"
FILES = {
    "~/AGENTS.md": "Answer in English.\n",
    "AGENTS.md": "# Rules\n\n- Use tabs.\n- NEVER touch vendor/.\n",
    "sub/CLAUDE.md": "Tests of this folder run with `make test`.\n",
    "PLAN.md": "---\nstatus: approved\n---\n\n1. Find the bug\n2. Mend it\n",
    "TODO.md": "- [x] find\n- [~] mend\n- [ ] prove\n",
    ".memory/MEMORY.md": "- [style](style.md) — likes small commits\n",
    "skills/release/SKILL.md": "---\nname: release\ndescription: Makes a release. Use it to publish.\n---\n\nSteps.\n",
}


def first_request(folder: Path) -> Request:
    """The first request of a session in a small workspace below ``folder``."""
    for name in ("project/sub", "user"):
        (folder / name).mkdir(parents=True)
    bench = Bench(folder / "project", folder / "user", folder / "project/sub")
    for path, text in FILES.items():
        bench.write(path, text)
    bench.inputs["facts"] = {**FACTS, "git": "On branch main, 1 file changed.\nLast commits:\n1a2b3c Begin"}
    bench.say("Fix the failing test.")
    return bench.peek().request


def as_markdown(request: Request) -> str:
    """Every part of a request under a heading of its own, in the order in which the model reads it."""
    rest = {**request.to_wire(), "system": len(request.system), "messages": len(request.messages)}
    parts = [("Request", json.dumps(rest, indent=1))]
    parts += [(f"System {number}{_mark(block)}", block["text"]) for number, block in enumerate(request.system, 1)]
    for number, message in enumerate(request.messages, 1):
        parts += [(f"Message {number}, {message['role']}{_mark(block)}", block["text"]) for block in message["content"]]
    return "\n".join(f"<!-- {title} -->\n\n{text}\n" for title, text in parts)


def _mark(block: dict[str, object]) -> str:
    return " (cache mark)" if "cache_control" in block else ""


if __name__ == "__main__":
    GOLDEN.write_text(as_markdown(first_request(Path(tempfile.mkdtemp()))), encoding="utf-8")
    print(f"wrote {GOLDEN}")
