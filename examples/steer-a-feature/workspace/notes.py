"""List the headings of a Markdown file."""

import argparse
import sys

import formats


def headings(text: str) -> list[str]:
    """The headings of a Markdown text, without their marks.

    >>> headings("# One\\ntext\\n## Two\\n")
    ['One', 'Two']
    """
    return [line.lstrip("#").strip() for line in text.split("\n") if line.startswith("#")]


def main(arguments: list[str]) -> int:
    """Run a command line.

    >>> main(["list", "PLAN.md"])
    JSON for other programs
    0
    """
    parser = argparse.ArgumentParser(prog="notes.py")
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("list")
    listing.add_argument("file")
    options = parser.parse_args(arguments)
    with open(options.file, encoding="utf-8") as file:
        found = headings(file.read())
    print(formats.plain(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
