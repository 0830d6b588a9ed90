"""A feature over three files after an approved plan; the person makes TODO.md and AGENTS.md more exact meanwhile."""

from __future__ import annotations

from tests.examples.scenario import Scenario, Turn, bash, edit, replacing
from tests.messages_api import reply

TESTS = "python3 -m doctest notes.py formats.py README.md"
ITEM = "`as_json` in formats.py gives a JSON list of the headings"
RULE = "- README.md documents every option.\n"
AS_JSON = '''

def as_json(headings: list[str]) -> str:
    """A JSON list, one heading a line.

    >>> print(as_json(["One", "Two"]))
    [
    "One",
    "Two"
    ]
    """
    return json.dumps(headings, ensure_ascii=False, indent=0)
'''
DOCUMENTED = """
With `--json` (`-j`) they come as a JSON list, one a line as well:

    >>> main(["list", "-j", "PLAN.md"])
    [
    "JSON for other programs"
    ]
    0
"""

STEER = Scenario(
    "steer-a-feature",
    (
        Turn(
            "The plan is approved. Build it.",
            (
                reply(
                    "I'll read the three files that PLAN.md names, and run the tests once before I change anything.",
                    tools=[
                        ("read", {"path": "formats.py"}, "call_1"),
                        ("read", {"path": "notes.py"}, "call_2"),
                        ("read", {"path": "README.md"}, "call_3"),
                        bash(TESTS, "call_4"),
                    ],
                ),
                reply(
                    "The tests are quiet, so we start clean. You have just made the first item of TODO.md more exact: "
                    "one heading a line. `json.dumps` does that with `indent=0`.",
                    tools=[
                        ("todo", {"in_progress": ["`as_json` in formats.py"]}, "call_5"),
                        edit(
                            "formats.py",
                            '"""How a list of headings is printed."""\n',
                            '"""How a list of headings is printed."""\n\nimport json\n',
                            "call_6",
                        ),
                        edit(
                            "formats.py",
                            '    return "\\n".join(headings)\n',
                            f'    return "\\n".join(headings)\n{AS_JSON}',
                            "call_7",
                        ),
                    ],
                ),
                reply(
                    "Next the option.",
                    tools=[
                        edit(
                            "notes.py",
                            '    listing.add_argument("file")\n',
                            '    listing.add_argument("file")\n'
                            '    listing.add_argument("--json", action="store_true", help="as a JSON list")\n',
                            "call_8",
                        ),
                        edit(
                            "notes.py",
                            "    print(formats.plain(found))\n",
                            "    print(formats.as_json(found) if options.json else formats.plain(found))\n",
                            "call_9",
                        ),
                        bash(TESTS, "call_10"),
                    ],
                ),
                reply(
                    "AGENTS.md asks for a short form of every option since a moment ago, so `--json` gets `-j`. "
                    "Then README.md.",
                    tools=[
                        edit("notes.py", '"--json", action', '"-j", "--json", action', "call_11"),
                        edit(
                            "README.md",
                            "    JSON for other programs\n    0\n",
                            f"    JSON for other programs\n    0\n{DOCUMENTED}",
                            "call_12",
                        ),
                        bash(TESTS, "call_13"),
                        bash("python3 notes.py list -j README.md", "call_14"),
                    ],
                ),
                reply(
                    tools=[
                        (
                            "todo",
                            {"done": ["`as_json` in formats.py", "`notes.py list --json`", "README.md"]},
                            "call_15",
                        ),
                        ("plan", {"status": "done"}, "call_16"),
                    ],
                ),
                reply(
                    "`notes.py list --json` (or `-j`) prints the headings as a JSON list, one a line.\n\n"
                    "- formats.py:16: `as_json`, with a doctest\n"
                    "- notes.py:29: the option; the short form is there because AGENTS.md asks for it now\n"
                    "- README.md:12: the option and an example, which is a doctest too\n\n"
                    f"`{TESTS}` prints nothing. All items of TODO.md are ticked, the plan is done.",
                ),
            ),
        ),
    ),
    proof=f"{TESTS} && python3 notes.py list -j README.md",
    proved='[\n"notes"\n]',
    saves={
        1: replacing("TODO.md", f"- [ ] {ITEM}", f"- [ ] {ITEM}, one a line"),
        3: replacing("AGENTS.md", RULE, f"{RULE}- Every option has a short form of one letter.\n"),
    },
)
