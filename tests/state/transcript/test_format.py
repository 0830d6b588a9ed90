"""The format's page names every kind and every attribute that stands in the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tinyclaw
from tinyclaw.state.transcript import fold
from tinyclaw.state.transcript.block import DAMAGED, FENCED, OUTSIDE

PACKAGE = Path(tinyclaw.__file__).parent
PAGE = (PACKAGE.parent / "docs/transcript-format.md").read_text()
NAMED = set(re.findall(r"`(\w+)`", PAGE))


def strings(node: ast.AST) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def attributes_read(path: Path) -> set[str]:
    """Names in ``block.attrs.get("x")``, ``facts.get("x")`` and ``_number(block, "x")``."""
    found: set[str] = set()
    for call in nodes(path):
        asked = ast.unparse(call.func) if isinstance(call, ast.Call) and call.args else ""
        if asked.endswith(("attrs.get", "facts.get")):
            found.update(strings(call.args[0]))
        elif asked == "_number":
            found.update(strings(call.args[1]))
    return found


def attributes_written(path: Path) -> set[str]:
    """Keys of the dictionaries inside ``Block(…)`` and of those called facts, attrs or record."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            if target.startswith("facts["):
                found.add(ast.literal_eval(target[len("facts[") : -1]))
            is_facts = target in ("facts", "attrs", "record", "kept", "error")
        else:
            is_facts = isinstance(node, ast.Call) and ast.unparse(node.func) == "Block"
        for each in ast.walk(node) if is_facts else ():
            if isinstance(each, ast.Dict):
                found.update(text for key in each.keys if key for text in strings(key))
    return found


def kinds_written(path: Path) -> set[str]:
    blocks = [node for node in nodes(path) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Block"]
    return {text for block in blocks if block.args for text in strings(block.args[0])}


MODULES = [
    path
    for path in PACKAGE.rglob("*.py")
    if "transcript.grammar import" in path.read_text() or path.parent.name == "transcript"
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_kind_and_attribute_in_the_code_is_on_the_page(path: Path):
    assert (kinds_written(path) | attributes_written(path) | attributes_read(path)) - {"enc"} - NAMED == set()


def test_the_search_finds_what_there_is():
    fold_module, content = PACKAGE / "state/transcript/fold.py", PACKAGE / "state/transcript/content.py"
    assert {"m", "n", "keep", "how", "rev", "manifest", "started"} <= attributes_read(fold_module)
    assert {"text", "thinking", "tool_use", "raw", "image"} <= kinds_written(content)
    assert {"m", "role", "at", "signature", "sha256", "args", "is_error", "file"} <= attributes_written(content)
    assert {"by", "how", "from"} <= attributes_written(PACKAGE / "state/transcript/statements.py")


def test_every_record_and_every_fenced_kind_is_on_the_page():
    assert set(fold._RECORDS) | FENCED <= NAMED
    assert not {OUTSIDE, DAMAGED} & NAMED
    assert '"enc": "json"' in PAGE
