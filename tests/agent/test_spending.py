"""What a turn costs is written down, and its limits hold before the request that would pass them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.agent.conftest import NOON
from tests.messages_api import cut, fault, reply
from tinyclaw.agent.compaction import summarize_now
from tinyclaw.agent.spending import Allowance
from tinyclaw.errors import LimitReached, UsageError
from tinyclaw.model.prices import price_of
from tinyclaw.state.transcript.grammar import parse
from tinyclaw.types import Spent, Usage

SUMMARY = "## Goal\n\nMend the totals."
LIST = [("glob", {"pattern": "*"})]


def blocks(session, kind):
    return [block for block in parse(session.transcript.path.read_bytes(), "t").blocks if block.kind == kind]


def billed(usage) -> float:
    price = price_of("claude-sonnet-5-5")
    assert price is not None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return price.cost(Usage(*(usage[name] for name in names)))


def asks_for_summary(request) -> bool:
    return "has grown too long" in json.dumps(request["messages"][-1])


def test_each_reply_and_each_turn_say_what_they_cost(api, start, turn):
    server = api([reply(tools=LIST), reply("Done."), reply("Again.")])
    session = start(server)
    first, second = turn(session, "one")[-1], turn(session, "two")[-1]
    costs = [billed(usage) for usage in server.usages]
    assert [each.attrs["cost_usd"] for each in blocks(session, "reply")] == pytest.approx(costs)
    assert [each.attrs["cost_usd"] for each in blocks(session, "turn_end")] == pytest.approx([sum(costs[:2]), costs[2]])
    assert (first.cost_usd, second.cost_usd) == pytest.approx((sum(costs[:2]), costs[2]))
    assert session.conversation.spent.cost_usd == pytest.approx(sum(costs))
    assert (first.requests, second.requests) == (2, 1)


def test_what_is_asked_beside_the_conversation_counts(api, start, turn):
    server = api([reply("One."), reply("Two."), reply(SUMMARY)])
    session = start(server)
    turn(session, "first")
    turn(session, "second")
    list(summarize_now(session))
    assert session.conversation.spent.requests == 3
    assert blocks(session, "side")[0].attrs["cost_usd"] == pytest.approx(billed(server.usages[2]))
    assert session.conversation.spent.cost_usd == pytest.approx(sum(map(billed, server.usages)))


def test_without_a_known_price_the_cost_is_not_known(api, start, turn):
    server = api([reply("Hello.")])
    session = start(server, model="nobody-knows")
    assert turn(session)[-1].cost_usd is None
    assert "cost_usd" not in blocks(session, "reply")[0].attrs
    assert session.conversation.spent.unpriced == 1


def test_a_limit_on_the_cost_of_a_model_without_a_price_is_refused_and_a_price_can_be_set(api, start, turn, tmp_path):
    server = api([reply("Hello.")])
    with pytest.raises(UsageError, match=r"nobody-knows costs is not known.*prices:"):
        start(server, model="nobody-knows", max_cost=1)
    (tmp_path / "user").mkdir(exist_ok=True)
    (tmp_path / "user/SETTINGS.md").write_text("---\nprices:\n  - nobody-* 1 2\n---\n")
    assert turn(start(server, model="nobody-knows", max_cost=1))[-1].cost_usd > 0


def test_a_workspace_sets_no_prices(api, start, turn, root):
    (root / ".tinyclaw").mkdir()
    (root / ".tinyclaw/SETTINGS.md").write_text('---\nprices: ["* 0 0"]\nmax_cost: 0.5\n---\n')
    session = start(api([reply("Hello.")]))
    assert any("prices" in notice and "loosen" in notice for notice in session.take_notices())
    assert turn(session)[-1].cost_usd > 0 and session.allowance.dollars == 0.5


def test_a_turn_ends_before_the_request_that_would_cost_too_much(api, start, turn):
    server = api([reply("x" * 4_000, tools=LIST)] * 50)
    ended = turn(start(server, max_cost=0.05))[-1]
    assert (ended.reason, "limit of $0.05" in ended.text) == ("limit", True)
    assert 0.03 < sum(map(billed, server.usages)) <= 0.05 and len(server.requests) < 50
    assert ended.cost_usd == pytest.approx(sum(map(billed, server.usages)))


def test_no_answer_can_be_so_long_that_the_turn_costs_more(api, start, turn):
    server = api([reply("x" * 4_000, tools=LIST)] * 50)
    turn(start(server, max_cost=0.05))
    longest = [request["max_tokens"] for request in server.requests]
    assert longest == sorted(longest, reverse=True) and longest[-1] >= 1024
    spent = 0.0
    for request, usage in zip(server.requests, server.usages, strict=True):
        spent += billed(usage)
        assert spent + (request["max_tokens"] - usage["output_tokens"]) * 10 / 1e6 <= 0.0505


def test_the_next_turn_may_spend_as_much_again(api, start, turn):
    server = api([reply("x" * 4_000, tools=LIST)] * 100)
    session = start(server, max_cost=0.03)
    assert [turn(session)[-1].reason, turn(session)[-1].reason] == ["limit", "limit"]
    assert session.conversation.spent.cost_usd > 0.03


def test_requests_beside_the_conversation_count_for_the_limit_on_requests(api, start, turn):
    server = api([])
    steps = iter([reply("y" * 20_000, tools=LIST)] * 40)
    server.reset(lambda body: reply(SUMMARY) if asks_for_summary(body) else next(steps))
    session = start(server, max_requests=12, high_water_tokens=40_000, low_water_tokens=15_000)
    ended = turn(session)[-1]
    assert any(asks_for_summary(request) for request in server.requests)
    assert (ended.reason, ended.requests, len(server.requests)) == ("limit", 12, 12)


def test_no_summary_is_begun_beyond_the_limit(api, start, turn):
    server = api([reply("One."), reply("Two."), reply("Three.")])
    session = start(server, max_cost=0.03)
    turn(session, "first")
    turn(session, "second")
    session.allowance = type(session.allowance)(dollars=0.000001)
    before = session.conversation.messages(session.target.model)
    with pytest.raises(LimitReached):
        list(summarize_now(session))
    assert len(server.requests) == 2 and session.conversation.messages(session.target.model) == before


def test_a_request_that_the_server_refuses_costs_nothing(api, start, turn):
    server = api([fault(400), reply("Hello.")])
    session = start(server)
    assert (turn(session)[-1].reason, turn(session)[-1].reason) == ("error", "done")
    assert session.conversation.spent.cost_usd == pytest.approx(sum(map(billed, server.usages)))


# Why part of a request is sent again


def again(session):
    return [(block.attrs.get("why"), block.attrs.get("what")) for block in blocks(session, "request")]


def test_what_goes_on_as_it_was_is_sent_once(api, start, turn):
    server = api([reply(tools=LIST), reply(tools=LIST), reply("Done."), reply("Yes.")])
    session = start(server)
    turn(session)
    turn(session)
    assert again(session) == [(None, None)] * 4
    held = [block.attrs.get("held", 0) for block in blocks(session, "request")]
    read = [usage["cache_read_input_tokens"] for usage in server.usages]
    assert held == pytest.approx(read, rel=0.05)


def test_each_miss_of_the_cache_is_explained(api, start, turn, root):
    now = [NOON]
    server = api([reply("Yes.")] * 11)
    session = start(server, clock=lambda: now[0])
    (root / "AGENTS.md").write_text("Be brief.\n")
    turn(session, "one")
    path = session.transcript.path
    path.write_text(path.read_text().replace("\none\n", "\nanother\n"))
    turn(session, "two")
    assert again(session)[1] == ("edited", "message 1 of the transcript")
    assert [block.attrs.get("again", 0) for block in blocks(session, "request")] == [0, 0], "all behind it is new"
    now[0] += timedelta(minutes=7)
    turn(session, "three")
    assert again(session)[2] == ("expired", "7 minutes had passed")
    list(summarize_now(session))
    turn(session, "four")
    assert again(session)[3][0] == "summary"
    session.target = type(session.target)(**{**vars(session.target), "model": "claude-opus-5-5"})
    turn(session, "five")
    assert again(session)[4] == ("model", "claude-sonnet-5-5 was asked before")
    session.close()
    session = start(server, resume="last", clock=lambda: now[0])
    turn(session, "six")
    assert again(session)[5] == (None, None), "another process within five minutes finds the cache"
    session.close()
    session = start(server, resume="last", clock=lambda: now[0] + timedelta(minutes=30))
    turn(session, "seven")
    assert again(session)[6] == ("expired", "30 minutes had passed")
    (root / "AGENTS.md").write_text("Be very brief.\n")
    list(summarize_now(session))
    turn(session, "eight")
    assert again(session)[7] == ("prefix", "compaction: AGENTS.md")


# What the limits count


def test_an_answer_that_broke_off_is_billed_and_counts(api, start, turn):
    words = "many words of an answer " * 40
    server = api([cut(reply(words), after_events=6), cut(reply(words), after_events=6), reply("Done.")])
    session = start(server)
    ended = turn(session)[-1]
    lost = blocks(session, "side")
    assert [block.attrs["what"] for block in lost] == ["lost", "lost"] and ended.requests == 1
    assert ended.usage.prompt == sum(
        usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        for usage in server.usages
    )
    assert ended.cost_usd == pytest.approx(sum(map(billed, server.usages)), rel=0.2)


def test_an_answer_that_is_given_up_is_billed_too(api, start, turn):
    server = api([cut(reply("words " * 50), after_events=6)] * 5)
    session = start(server)
    ended = turn(session)[-1]
    assert ended.reason == "error" and ended.cost_usd == pytest.approx(sum(map(billed, server.usages)), rel=0.2)


def test_what_becomes_of_the_transcript_moves_no_limit(api, start, turn, root):
    session = start(api([reply("One.")]))
    turn(session, "first")
    session.close()
    forget = "import re, glob\np = glob.glob('.transcripts/2*.md')[0]\nt = open(p).read()\n"
    forget += "open(p, 'w').write(re.sub('(?m)^<!-- tc:(request|reply) .*$', '', t))\n"
    (root / "forget.py").write_text(forget)
    server = api([reply(tools=[("bash", {"command": "python3 forget.py"})])] * 9)
    session = start(server, resume="last", max_requests=3)
    ended = turn(session, "second")[-1]
    assert (ended.reason, ended.requests, len(server.requests)) == ("limit", 3, 3)
    assert ended.cost_usd == pytest.approx(sum(map(billed, server.usages)))
    assert blocks(session, "turn_end")[-1].attrs["cost_usd"] == ended.cost_usd


def test_a_turn_that_goes_on_after_a_pause_goes_on_with_its_limits(api, start, turn):
    steps = [reply(tools=LIST), reply(tools=[("bash", {"command": "true"})]), *[reply(tools=LIST)] * 9]
    server = api(steps)
    session = start(server, max_requests=3, permission_mode="ask")
    assert turn(session)[-1].reason == "paused"
    session.close()
    (path,) = (session.workspace.root / ".transcripts").glob("2*.md")
    path.write_text(path.read_text().replace("- [ ] allow", "- [x] allow"))
    session = start(server, resume="last", max_requests=3, permission_mode="ask")
    ended = turn(session, None)[-1]
    assert (ended.reason, ended.requests, len(server.requests)) == ("limit", 3, 3)
    assert ended.cost_usd == pytest.approx(sum(map(billed, server.usages)))


def test_near_a_size_from_which_on_prompts_cost_more_the_dearer_price_counts():
    price = price_of("claude-haiku-5-5")
    allowance = Allowance(dollars=0.0135)
    assert allowance.answer_tokens(2_000, 80_000, 0, Spent(), price) == 2_000
    with pytest.raises(LimitReached, match=r"might pass the limit of \$0\.0135: \$0\.00 are spent, it costs about"):
        allowance.answer_tokens(2_000, 99_900, 0, Spent(), price)


def test_after_an_edit_between_two_runs_only_the_prefix_counts_as_held(api, start, turn):
    server = api([reply("word " * 4_000), reply("Yes."), reply("Yes.")])
    session = start(server)
    turn(session, "first")
    turn(session, "second")
    session.close()
    path = session.transcript.path
    path.write_text(path.read_text().replace("\nfirst\n", "\nthe first\n"))
    session = start(server, resume="last")
    turn(session, "third")
    record = blocks(session, "request")[-1].attrs
    assert (record["why"], record["what"]) == ("edited", "the transcript, since then")
    assert record["held"] == pytest.approx(server.usages[-1]["cache_read_input_tokens"], rel=0.1)
    assert record["again"] == pytest.approx(5_000, rel=0.2)


def test_what_is_sent_again_is_counted_and_not_what_was_taken_out(api, start, turn, root):
    for number in range(12):
        (root / f"{number}.txt").write_text(f"{number} {'word ' * 20}\n" * 150)
    steps = [reply(tools=[("read", {"path": f"{number}.txt"})]) for number in range(12)]
    server = api([*steps, reply("Done.")])
    session = start(server, high_water_tokens=20_000, low_water_tokens=2_000)
    turn(session)
    cleared = [
        (request.attrs["again"], usage["cache_creation_input_tokens"] + usage["input_tokens"])
        for request, usage in zip(blocks(session, "request"), server.usages, strict=True)
        if request.attrs.get("why") == "cleared"
    ]
    assert cleared and all(0 < again <= written * 1.1 for again, written in cleared), cleared


def test_no_try_is_made_that_the_limit_does_not_pay_for(api, start, turn):
    server = api([cut(reply("word " * 4_000), after_events=4)] * 4 + [reply("Done.")])
    ended = turn(start(server, max_cost=0.0265))[-1]
    assert (ended.reason, len(server.usages)) == ("limit", 1) and "limit of $0.0265" in ended.text
