"""An import is an ``@`` and a path, in prose."""

from __future__ import annotations

import time

import pytest

from tinyclaw.state.imports import LOOKED_THROUGH, MOST_NAMES, find_imports


def names(text: str) -> list[str]:
    return [found.name for found in find_imports(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@docs/style.md", ["docs/style.md"]),
        ("See @a.md, @./b and (@../c.txt).", ["a.md", "./b", "../c.txt"]),
        ("- @a.md\n- @b.md", ["a.md", "b.md"]),
        ("**@a.md** _@b.md_ [@c.md](d) \"@e.md\" '@f.md'", ["a.md", "b.md", "c.md", "e.md", "f.md"]),
        ("> @a.md", ["a.md"]),
        ("@a.md's, @b.md:12 @c.md#part @d.md?", ["a.md", "b.md", "c.md", "d.md"]),
        (r"@docs/my\ style.md", ["docs/my style.md"]),
        ("@~/a.md @.hidden.md @ü.md @package.json", ["~/a.md", ".hidden.md", "ü.md", "package.json"]),
        ("@../../etc/passwd", ["../../etc/passwd"]),
        ("@a.md twice: @a.md", ["a.md"]),
    ],
)
def test_a_path_behind_an_at_is_an_import(text, wanted):
    assert names(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "me@host.md",
        "<me.too@host.md>",
        "@user@host.md",
        "@handle and @scope/package, @angular/core.",
        "@/etc/passwd",
        r"\@a.md",
        "@ a.md",
        "@.md",
        "@" + "a" * 2000 + ".md",
    ],
)
def test_mail_addresses_handles_packages_and_escaped_ones_are_text(text):
    assert names(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "`@a.md`",
        "`` ` @a.md ``",
        "`over\ntwo lines @a.md`",
        "```\n@a.md\n```",
        "~~~ text\n```\n@a.md\n~~~",
        "````\n```\n@a.md\n````",
        "- item\n\n  ```\n  @a.md\n  ```",
        "1. ```\n   @a.md\n   ```",
        "> ```\n> @a.md\n> ```",
        "```\nnever closed\n\n@a.md",
        "    @a.md",
        "words\n\n\t@a.md",
        "- item\n\n      @a.md",
        "<!-- @a.md -->",
        "<!--\n\n```\n\n@a.md\n-->",
        "<!-- never closed\n\n@a.md",
    ],
)
def test_code_and_comments_hold_no_imports(text):
    assert names(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "a lone ` and @a.md",
        "`one` @a.md `two`",
        "a lone `\n\n@a.md`",
        "- a lone `\n- @a.md`",
        "`<!--` @a.md",
        "<!-- x --> @a.md",
        "<!--\n``` -->\n@a.md",
        "```\ncode\n```\n@a.md",
        "```js` is no fence\n@a.md",
        "> ```\n> code\n\n@a.md",
        "words\n    @a.md",
        "- item\n\n    @a.md",
        "1. one\n   - two\n\n     @a.md",
    ],
)
def test_what_only_looks_like_code_is_prose(text):
    assert names(text) == ["a.md"]


def test_an_import_knows_its_line_and_whether_it_can_only_be_one():
    text = "# Title\n\nfirst\nsecond @a.md\n\n```\n@no.md\n```\n\n@john.doe @./x\n<!-- -->@b.TXT\n"
    assert find_imports(text) == ((4, "a.md", True), (10, "john.doe", False), (10, "./x", True), (11, "b.TXT", True))


HOSTILE = {
    "names": "".join(f"@a{number}.md\n" for number in range(200_000)),
    "one name": "@a.md " * 200_000,
    "ats": "@" * 1_000_000,
    "backticks": "`" * 1_000_000,
    "open spans": "`\n@a.md\n" * 140_000,
    "runs": " ".join("`" * length for length in range(1, 1_400)),
    "backslashes": "\\" * 500_000 + "`" * 500_000,
    "comments": "<!-- x " * 140_000,
    "spans with comments": "`<!--` " * 140_000,
    "markers": "- " * 500_000,
    "quotes": "> " * 500_000,
    "fences": "```\n" * 250_000,
    "a path without end": "@" + "a.b/" * 250_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_megabyte_of_anything_takes_no_second(kind):
    began = time.process_time()
    assert len(find_imports(HOSTILE[kind] + " @z.md")) <= MOST_NAMES
    assert time.process_time() - began < 1


def test_what_lies_far_behind_the_beginning_is_not_looked_at():
    assert names("x" * LOOKED_THROUGH + " @a.md") == []
