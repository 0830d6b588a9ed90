"""What requests cost, in US dollars."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from tinyclaw.model.catalog import default_model
from tinyclaw.model.prices import FREE, own_prices, price_of, shipped_prices
from tinyclaw.templates import template_text
from tinyclaw.types import Usage

MILLION = 1_000_000


@pytest.mark.parametrize("use", ["main", "small"])
def test_the_models_that_are_used_by_default_have_a_price(use):
    assert price_of(default_model(use)) is not None


def test_every_row_fits_a_model_that_the_sdk_lists_and_costs_as_caches_do():
    from fnmatch import fnmatchcase

    from anthropic.types.model_param import ModelParam

    known = get_args(get_args(ModelParam)[0])
    for row in shipped_prices():
        assert any(fnmatchcase(model, row.pattern) for model in known), row.pattern
        rates = row.rates
        assert 0 < rates.cache_read < rates.input < rates.cache_write < rates.output


def test_the_table_says_when_and_where_its_figures_were_found():
    assert re.search(r"<https://\S+>, \w+ 20\d\d\.", template_text("prices.md"))


def test_each_kind_of_token_has_its_price():
    price = price_of("claude-sonnet-5-5")
    assert price is not None
    assert price.cost(Usage(input=MILLION)) == 2.0
    assert price.cost(Usage(output=MILLION)) == 10.0
    assert price.cost(Usage(cache_write=MILLION)) == 2.5
    assert price.cost(Usage(cache_read=MILLION)) == 0.1
    assert price.cost(Usage(100, 200, 300, 400)) == pytest.approx((200 + 2000 + 30 + 1000) / MILLION)


def test_a_longer_prompt_may_cost_more_and_all_of_it_does_answer_included():
    price = price_of("claude-haiku-5-5")
    assert price is not None
    assert price.cost(Usage(input=60_000, cache_read=40_000, output=1_000)) == pytest.approx(0.0069)
    assert price.cost(Usage(input=60_000, cache_read=40_001, output=1_000)) == pytest.approx(0.0345, rel=1e-4)


@pytest.mark.parametrize("model", ["qwen3:8b", "", "claude-nova-9"])
def test_a_price_that_is_not_known_is_not_guessed(model):
    assert price_of(model) is None
    assert FREE.cost(Usage(1, 2, 3, 4)) == 0.0


def test_a_persons_own_price_comes_before_the_shipped_one():
    own = own_prices("claude-sonnet-5-5 3 15; local-* 0 0 ; gateway/* $1 $4 1.5 0.5")
    sonnet, local, gateway = (price_of(model, own) for model in ("claude-sonnet-5-5", "local-7b", "gateway/x"))
    assert sonnet and local and gateway
    assert sonnet.cost(Usage(cache_write=MILLION, cache_read=MILLION)) == pytest.approx(3.75 + 0.3)
    assert local.cost(Usage(MILLION, MILLION)) == 0.0
    assert gateway.cost(Usage(MILLION, MILLION, MILLION, MILLION)) == 7.0
    assert price_of("claude-haiku-5-5", own) == price_of("claude-haiku-5-5")


@pytest.mark.parametrize("text", ["x", "x 1", "x 1 2 3", "x 1 2 3 4 5", "x one 2", "x -1 2", "x nan 2", "x inf 2"])
def test_what_is_no_price_is_said_in_words(text):
    with pytest.raises(ValueError, match=r"no price"):
        own_prices(text)
