"""How much of the window tinyclaw itself takes: tools and system of the first request in an empty workspace."""

from __future__ import annotations

import json

from benchmarks._server import opened, workspace


def run() -> None:
    with workspace() as root:
        session = opened(root, "http://127.0.0.1:9")
        request = session.compile().request
        session.close()
    parts = {"tools": list(request.tools), "system": list(request.system)}
    for tool in request.tools:
        print(f"  {tool['name']:6} {tokens(tool):5,} tokens")
    for name, part in parts.items():
        print(f"{name:8} {tokens(part):5,} tokens")
    print(f"together {tokens(list(parts.values())):5,} tokens (characters / 4)")


def tokens(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False)) // 4
