import re
from typing import get_args

import pytest

from tinyclaw.errors import StateError
from tinyclaw.model.catalog import catalog, default_model, lookup, parse_catalog

HEAD = "| model | … |\n|---|---|\n"
DEFAULTS = "\n\n| use | model |\n|---|---|\n| main | `a` |\n| small | `b` |\n"


def sdk_models():
    from anthropic.types.model_param import ModelParam

    return get_args(get_args(ModelParam)[0])


def newest(family):
    """The highest version among ids such as claude-FAMILY-5-5 that the SDK lists."""
    versions = {
        tuple(map(int, match.groups(default="0"))): model
        for model in sdk_models()
        if (match := re.fullmatch(rf"claude-{family}-(\d+)(?:-(\d{{1,2}}))?", model))
    }
    return versions[max(versions)]


@pytest.mark.parametrize(("use", "family"), [("main", "sonnet"), ("small", "haiku")])
def test_defaults_are_the_newest_that_the_sdk_lists_and_not_deprecated(use, family):
    from anthropic.resources.messages.messages import DEPRECATED_MODELS

    assert default_model(use) == newest(family)
    assert default_model(use) not in DEPRECATED_MODELS


def test_every_model_that_the_sdk_lists_has_a_row():
    assert [model for model in sdk_models() if lookup(model).is_assumed] == []


def test_every_row_has_sane_figures():
    for row in catalog().rows:
        assert row.max_output < row.context_window
        assert 1 < row.characters_per_token < 6


def test_the_first_fitting_row_holds_and_carries_the_id_asked_for():
    info = lookup("claude-haiku-4-5-20251001")
    assert (info.id, info.context_window, info.max_output) == ("claude-haiku-4-5-20251001", 200_000, 64_000)
    assert (info.thinking, info.is_assumed) == ("none", False)


@pytest.mark.parametrize("model", ["qwen3:8b", "", "gpt-[x]", "*"])
def test_an_unknown_model_gets_a_cautious_guess_that_says_so(model):
    info = lookup(model)
    assert (info.id, info.context_window, info.is_assumed) == (model, 200_000, True)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| `a` | 1 | 2 |", ":3: 3 cells"),
        ("| `a` | many | 2 | none | 3 |", ":3: .*many"),
        ("| `a` | 1 | 2 | deep | 3 |", ":3: thinking is 'deep'"),
    ],
)
def test_a_damaged_row_is_named_by_its_line(row, fault):
    with pytest.raises(StateError, match=r"models\.md" + fault):
        parse_catalog(HEAD + row + DEFAULTS)


def test_a_missing_default_is_an_error():
    with pytest.raises(StateError, match="main and small"):
        parse_catalog("| use | model |\n|---|---|\n| main | `a` |\n")
