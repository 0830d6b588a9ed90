"""What the command line shows of instructions: where each part comes from, and what is missing."""

from __future__ import annotations

import pytest

from tests.cli.process import tinyclaw
from tests.cli.recording import record
from tests.cli.test_context import rows_of


@pytest.fixture
def nested(workspace, tmp_path):
    """A workspace whose last session has read a file of a folder with instructions of its own."""
    (workspace / "web").mkdir()
    (workspace / "AGENTS.md").write_text("Be brief.\n@style.md\n")
    (workspace / "style.md").write_text("Short names.\n")
    (workspace / "web/AGENTS.md").write_text("# Web\n\nuse tabs\n")
    (workspace / "web/x.ts").write_text("let x\n")
    done = tinyclaw("run", "-m", record(tmp_path / "r.md", [("read", {"path": "web/x.ts"})], "ok"), "go", cwd=workspace)
    assert done.returncode == 0, done.stderr
    return workspace


def test_context_shows_imported_and_nested_files_as_every_part(nested):
    rows = rows_of(tinyclaw("context", cwd=nested).stdout)
    shown = {row["file"]: row for row in rows.values() if row.get("file")}
    for path, lines in (("style.md", "1-1"), ("AGENTS.md", "1-2"), ("web/AGENTS.md", "1-3")):
        row = shown[path]
        assert (row["lines"], len(row["revision"])) == (lines, 16) and int(row["tokens"]) > 0
    assert "  state of web/AGENTS.md" in rows


def test_why_names_the_file_and_line_of_a_nested_rule_and_why_another_is_not_in(nested):
    (nested / "api").mkdir()
    (nested / "api/AGENTS.md").write_text("use blanks\n")
    assert "web/AGENTS.md:3" in tinyclaw("why", "use tabs", cwd=nested).stdout
    assert "style.md:1" in tinyclaw("why", "Short names", cwd=nested).stdout
    done = tinyclaw("why", "api/AGENTS.md", cwd=nested)
    assert "no call touched it before this request" in done.stdout + done.stderr


def test_a_run_says_on_standard_error_what_was_cut_and_what_is_missing(workspace, tmp_path):
    (workspace / "AGENTS.md").write_text("@gone.md\n" + "a rule\n" * 6_000 + "NEVER touch vendor/\n")
    done = tinyclaw("run", "-m", record(tmp_path / "r.md", "ok"), "go", cwd=workspace)
    assert done.stdout == "ok\n"
    assert done.stderr.count("AGENTS.md: cut: it is 42,029 bytes in 6,002 lines, and only lines 1-") == 1
    assert "instructions_bytes in SETTINGS.md sets the limit" in done.stderr
    assert done.stderr.count("AGENTS.md:1: @gone.md is not there; correct it, or write it in backticks") == 1
    (workspace / ".tinyclaw").mkdir()
    (workspace / ".tinyclaw/SETTINGS.md").write_text("---\ninstructions_bytes: 50000\n---\n")
    again = tinyclaw("run", "-m", record(tmp_path / "r.md", "ok"), "go", cwd=workspace)
    assert "cut:" not in again.stderr
