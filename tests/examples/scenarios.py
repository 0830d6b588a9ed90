"""The sessions that the examples record: what the person says and edits, and what the model answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.messages_api import reply

Step = Any


def save(path: Path, text: str) -> None:
    """Save as most editors do: a new file that takes the old one's place."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.replace(path)


@dataclass(frozen=True)
class Scenario:
    """Turns of (the person's text, the model's replies). ``edit`` makes the person's change in the workspace.

    ``edit_at`` is the number of the request during which the person saves; 0 for never.
    """

    name: str
    turns: tuple[tuple[str, tuple[Step, ...]], ...]
    edit: Callable[[Path], None] | None = None
    edit_at: int = 0


def _plan_an_empty_basket(root: Path) -> None:
    save(root / "PLAN.md", (root / "PLAN.md").read_text() + "4. An empty basket costs nothing: add a test for that.\n")


def _ask_for_indentation(root: Path) -> None:
    todo = root / "TODO.md"
    save(todo, todo.read_text().replace("JSON list of the headings", "JSON list of the headings, one a line"))


FIX = Scenario(
    "fix-failing-test",
    (
        (
            "A test fails. Follow PLAN.md.",
            (
                reply(
                    "I'll run the tests and read the code they are about.",
                    tools=[
                        ("read", {"path": "shop/basket.py"}, "call_1"),
                        ("grep", {"pattern": "total\\(", "path": "."}, "call_2"),
                        ("bash", {"command": "python3 -m unittest -q"}, "call_3"),
                    ],
                ),
                reply(
                    "`total` sums prices and ignores the count (shop/basket.py:18). The test is right.",
                    tools=[
                        (
                            "edit",
                            {
                                "path": "shop/basket.py",
                                "old_text": "sum(price for _, price, _ in self.lines)",
                                "new_text": "sum(price * count for _, price, count in self.lines)",
                            },
                            "call_4",
                        ),
                        ("todo", {"done": ["mend the total of a basket"]}, "call_5"),
                    ],
                ),
                reply(
                    "Now the tests.",
                    tools=[("bash", {"command": "python3 -m unittest -q"}, "call_6")],
                ),
                reply(
                    "All three pass. You have added a step to PLAN.md meanwhile: an empty basket. I'll add that test.",
                    tools=[
                        (
                            "edit",
                            {
                                "path": "tests/test_basket.py",
                                "old_text": '\n\nif __name__ == "__main__":',
                                "new_text": (
                                    "\n    def test_an_empty_basket_costs_nothing(self):\n"
                                    "        self.assertEqual(Basket(discount=10).total(), 0)\n"
                                    '\n\nif __name__ == "__main__":'
                                ),
                            },
                            "call_7",
                        ),
                        ("bash", {"command": "python3 -m unittest -q"}, "call_8"),
                    ],
                ),
                reply(
                    tools=[
                        ("todo", {"done": ["all tests pass"]}, "call_9"),
                        ("plan", {"status": "done"}, "call_10"),
                    ],
                ),
                reply(
                    "Done. `Basket.total` now multiplies each price by its count (shop/basket.py:18), and "
                    "tests/test_basket.py has the test for an empty basket that you asked for in PLAN.md. "
                    "`python3 -m unittest -q`: 4 tests, all pass. Nothing is left.",
                ),
            ),
        ),
    ),
    _plan_an_empty_basket,
    3,
)

STEER = Scenario(
    "steer-a-feature",
    (
        (
            "Give notes a --json flag.",
            (
                reply(
                    "I'll read the tool, its test and its README first.",
                    tools=[
                        ("read", {"path": "notes.py"}, "call_1"),
                        ("read", {"path": "tests/test_notes.py"}, "call_2"),
                        ("read", {"path": "README.md"}, "call_3"),
                    ],
                ),
                reply(
                    "Small enough to do in one go. I begin with the first item of TODO.md.",
                    tools=[
                        ("todo", {"in_progress": ["`notes list --json`"]}, "call_4"),
                        (
                            "edit",
                            {
                                "path": "notes.py",
                                "old_text": "import argparse\n",
                                "new_text": "import argparse\nimport json\n",
                            },
                            "call_5",
                        ),
                        (
                            "edit",
                            {
                                "path": "notes.py",
                                "old_text": '    listing.add_argument("file")\n',
                                "new_text": (
                                    '    listing.add_argument("file")\n'
                                    '    listing.add_argument("--json", action="store_true")\n'
                                ),
                            },
                            "call_6",
                        ),
                        (
                            "edit",
                            {
                                "path": "notes.py",
                                "old_text": '    print("\\n".join(found))\n',
                                "new_text": '    print(json.dumps(found) if options.json else "\\n".join(found))\n',
                            },
                            "call_7",
                        ),
                    ],
                ),
                reply(
                    "You have changed the item in TODO.md: one heading a line. So the JSON is indented.",
                    tools=[
                        (
                            "edit",
                            {
                                "path": "notes.py",
                                "old_text": "json.dumps(found)",
                                "new_text": "json.dumps(found, indent=0)",
                            },
                            "call_8",
                        ),
                        ("bash", {"command": "python3 notes.py list --json README.md"}, "call_9"),
                    ],
                ),
                reply(
                    "That is valid JSON with one heading a line. Now the test and the README.",
                    tools=[
                        (
                            "edit",
                            {
                                "path": "tests/test_notes.py",
                                "old_text": "import unittest\n\nfrom notes import headings\n",
                                "new_text": (
                                    "import contextlib\nimport io\nimport json\nimport tempfile\nimport unittest\n\n"
                                    "from notes import headings, main\n"
                                ),
                            },
                            "call_10",
                        ),
                        (
                            "edit",
                            {
                                "path": "tests/test_notes.py",
                                "old_text": '["One", "Two"])\n',
                                "new_text": (
                                    '["One", "Two"])\n\n\n'
                                    "class JsonTest(unittest.TestCase):\n"
                                    "    def test_json_has_one_heading_a_line(self):\n"
                                    '        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:\n'
                                    '            file.write("# One\\n## Two\\n")\n'
                                    "            file.flush()\n"
                                    "            out = io.StringIO()\n"
                                    "            with contextlib.redirect_stdout(out):\n"
                                    '                main(["list", "--json", file.name])\n'
                                    '        self.assertEqual(json.loads(out.getvalue()), ["One", "Two"])\n'
                                    '        self.assertEqual(out.getvalue(), \'[\\n"One",\\n"Two"\\n]\\n\')\n'
                                ),
                            },
                            "call_11",
                        ),
                        (
                            "edit",
                            {
                                "path": "README.md",
                                "old_text": "lists the headings of a Markdown file, one a line.\n",
                                "new_text": (
                                    "lists the headings of a Markdown file, one a line. With `--json` they come as\n"
                                    "a JSON list, one a line as well.\n"
                                ),
                            },
                            "call_12",
                        ),
                        ("bash", {"command": "python3 -m unittest -q"}, "call_13"),
                    ],
                ),
                reply(
                    tools=[
                        (
                            "todo",
                            {"done": ["`notes list --json`", "a test for it", "README.md tells of it"]},
                            "call_14",
                        )
                    ],
                ),
                reply(
                    "`notes list --json` prints a JSON list with one heading a line (notes.py:24), as TODO.md "
                    "says since your edit. tests/test_notes.py has a test for it and README.md tells of it. "
                    "`python3 -m unittest -q`: 2 tests, both pass.",
                ),
            ),
        ),
    ),
    _ask_for_indentation,
    2,
)

RESUME = Scenario(
    "resume-and-search",
    (
        (
            "The nightly job skipped a record. Which one?",
            (
                reply("I'll run it.", tools=[("bash", {"command": "python3 simulate.py"}, "call_1")]),
                reply(
                    "The output is long; the line that matters is in the part that was left out. I'll search the file.",
                    tools=[("grep", {"pattern": "WARN|skipped", "path": ".task_outputs"}, "call_2")],
                ),
                reply("Record 81c3 was skipped: its amount is negative (line 4217 of the output)."),
            ),
        ),
        (
            "The amount should be 1. Mend it.",
            (
                reply(
                    tools=[
                        ("edit", {"path": "record.csv", "old_text": "81c3,-1", "new_text": "81c3,1"}, "call_3"),
                    ]
                ),
                reply(
                    "The file is called records.csv.",
                    tools=[("edit", {"path": "records.csv", "old_text": "81c3,-1", "new_text": "81c3,1"}, "call_4")],
                ),
                reply("Record 81c3 in records.csv:3 has the amount 1 now; nothing else was changed."),
            ),
        ),
    ),
)

SCENARIOS = (FIX, STEER, RESUME)
