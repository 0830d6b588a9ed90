"""Two processes and an editor write the memory for a minute: all that anybody wrote is there, the index is right."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tinyclaw.state.memory.index import INDEX_BEGIN, INDEX_END
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.workspace import Workspace

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(300)]

SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]
WRITER = """
import random, sys, time
from pathlib import Path
from tinyclaw.errors import StateError
from tinyclaw.state.memory.record import Note
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.workspace import Workspace

root, user, name, end = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], time.monotonic() + float(sys.argv[4])
memory = Memory.of(Workspace(root, root, user), lambda: "2026-11-30T12:00:00Z", str)
number = 0
while time.monotonic() < end:
    number += 1
    note = Note(f"{name} {number}", "project", f"what {name} keeps as number {number}")
    saved = memory.save(note, lambda path: None)
    assert saved.how == "new", saved
    if number % 7 == 0:
        assert f"number {number - 3}" in memory.find(f"{name} {number - 3}").text
        assert memory.search(f"{name} {number}", 3).total
    if number % 3 == 0:
        try:
            memory.index.write()
        except StateError as error:
            assert "change it all the time" in str(error), error
print(number)
"""


def test_two_processes_and_an_editor_lose_nothing_in_a_minute(tmp_path: Path):
    root, user = (tmp_path / name for name in ("work", "user"))
    folder = root / ".memory"
    folder.mkdir(parents=True)
    index = folder / "MEMORY.md"
    index.write_text("# Mine\n")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), str(user), name, str(SECONDS)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    lines, edited = edits(folder, index, writers)
    counts = []
    for writer in writers:
        out, error = writer.communicate()
        assert writer.returncode == 0, error
        counts.append(int(out))
    memory = Memory.of(Workspace(root, root, user), lambda: "2026-11-30T12:01:00Z", str)
    memory.index.write()
    texts = {record.name: record.text for record in memory.records()}
    for name, count in zip(("one", "two"), counts, strict=True):
        for number in range(1, count + 1):
            assert texts[f"{name} {number}"].startswith(f"what {name} keeps as number {number}")
    assert [name for name, mark in edited.items() if mark not in texts[name]] == []
    text = index.read_text()
    rescued = [path.read_text() for path in folder.glob("MEMORY.md.rescued-*")]  # where two saves were of one moment
    assert [line for line in lines if line not in "\n".join((text, *rescued))] == []
    assert (text.count(INDEX_BEGIN), text.count(INDEX_END)) == (1, 1)
    assert text.count("\n- [") + more(text) == len(texts) == sum(counts)
    assert len(memory.heads()) == len(texts) and not memory.index.is_stale()
    strange = [path.name for path in folder.iterdir() if not path.name.endswith(".md") and "rescued" not in path.name]
    assert strange == []
    print(f"{counts} records, {len(lines)} lines and {len(edited)} records by hand, {len(rescued)} rescued")


def edits(folder: Path, index: Path, writers: list[subprocess.Popen[str]]) -> tuple[list[str], dict[str, str]]:
    """A person adds lines to MEMORY.md and to records, as an editor does that looks before it saves."""
    dice = random.Random(1)
    lines: list[str] = []
    edited: dict[str, str] = {}
    while any(writer.poll() is None for writer in writers):
        time.sleep(0.1)
        text = index.read_text()
        line = f"my line {len(lines)}."
        beside = folder / ".edit"
        beside.write_text(text.replace("# Mine\n", f"# Mine\n{line}\n", 1))
        if index.read_text() == text:
            beside.replace(index)
            lines.append(line)
        beside.unlink(missing_ok=True)
        records = [path for path in folder.glob("*.md") if path.name != "MEMORY.md"]
        if records:
            path = dice.choice(records)
            name = path.stem.replace("-", " ")
            mark = f"by hand {len(edited)}."
            with path.open("a") as file:
                file.write(f"\n{mark}\n")
            edited[name] = mark
    return lines, edited


def more(text: str) -> int:
    """How many records the index says that it does not name."""
    line = next((line for line in text.split("\n") if line.startswith("- … and ")), "- … and 0 more")
    return int(line.split()[3].replace(",", ""))
