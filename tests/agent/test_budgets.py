"""The windows of the server's models become those of the session, without anybody waiting for them."""

from __future__ import annotations

import time

from tests.agent.conftest import NOON
from tests.messages_api import reply
from tinyclaw.model.limits import FILE, Limits, LimitsFile

LIST = [("glob", {"pattern": "*"})]
BIG = "x" * 90_000


def learned(session) -> bool:
    """Wait until the limits have come and were written down."""
    end = time.monotonic() + 10
    path = session.workspace.user_dir / FILE
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.exists()


def test_a_conversation_that_has_grown_asks_once_and_goes_by_what_it_hears(api, start, turn):
    server = api([reply(BIG), reply(BIG), reply("Done.")], models={"claude-sonnet-5-5": (60_000, 9_000)})
    session = start(server)
    turn(session)
    turn(session)
    assert learned(session)
    assert (session.target.window_tokens, session.target.max_tokens, session.marks.high) == (60_000, 9_000, 54_000)
    turn(session)
    assert [request["max_tokens"] for request in server.requests][::2] == [32_000, 9_000]


def test_the_next_session_knows_it_from_its_start(api, start, turn):
    server = api([reply(BIG), reply(BIG), reply("Done.")], models={"claude-sonnet-5-5": (60_000, 9_000)})
    session = start(server)
    turn(session)
    turn(session)
    assert learned(session)
    session.close()
    session = start(server)
    assert session.target.window_tokens == 60_000
    turn(session)
    assert server.requests[-1]["max_tokens"] == 9_000
    assert session.budgets.file.is_fresh(session.budgets.today)


def test_a_small_conversation_with_a_known_model_asks_nothing(api, start, turn):
    server = api([reply("Hello.")])
    session = start(server)
    turn(session)
    assert session.budgets._asked is False


def test_a_model_that_is_not_known_is_asked_for_at_once(api, start, turn):
    server = api([reply("Hello.")], models={"qwen3:8b": (40_000, 4_000)})
    session = start(server, model="qwen3:8b")
    assert session.target.window_tokens == 200_000
    turn(session)
    assert learned(session) and session.target.window_tokens == 40_000


def test_a_server_without_such_a_list_is_left_in_peace(api, start, turn):
    server = api([reply("Hello."), reply("Again.")], models={})
    session = start(server, model="qwen3:8b")
    turn(session)
    turn(session)
    assert session.target.window_tokens == 200_000 and session.take_notices() == []


def test_settings_of_the_person_come_first(api, start, tmp_path):
    server = api([reply("Hello.")])
    LimitsFile(tmp_path / "user", server.url).learn({"claude-sonnet-5-5": Limits(60_000, 9_000)}, NOON.date())
    session = start(server, max_tokens=2_000, high_water_tokens=30_000)
    assert (session.target.window_tokens, session.target.max_tokens) == (60_000, 2_000)
    assert session.marks.high == 30_000
