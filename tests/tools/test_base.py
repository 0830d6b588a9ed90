from __future__ import annotations

import pytest

from tinyclaw.tools._base import check_arguments

SCHEMA = {
    "properties": {
        "names": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer"},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
    },
    "required": ["count"],
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "count is missing"),
        ({"count": 1, "more": 1}, "more is not an argument (known: names, count, mode)"),
        ({"count": True}, "count is boolean, not integer"),
        ({"count": None}, "count is null, not integer"),
        ({"count": 1, "names": [1, "a"]}, "names is an array of integer, string, not an array of string"),
        ({"count": 1, "names": {}}, "names is an object, not an array of string"),
        ({"count": 1, "mode": "other"}, "mode is string, not one of fast, slow"),
    ],
)
def test_a_wrong_argument_is_named_in_the_words_of_its_schema(arguments, problem):
    assert check_arguments(arguments, SCHEMA) == [problem]


def test_arguments_that_fit_are_no_problem():
    assert check_arguments({"count": 1, "names": [], "mode": "slow"}, SCHEMA) == []
