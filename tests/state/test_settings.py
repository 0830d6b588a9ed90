"""Settings from five places, each value with its origin."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

from tinyclaw.errors import UsageError
from tinyclaw.state.settings import Settings, load_settings


@pytest.fixture
def write(tmp_path: Path):
    """Writes a settings file: ``user``, ``workspace`` or ``local``."""
    places = {
        "user": tmp_path / "user/SETTINGS.md",
        "workspace": tmp_path / "ws/.tinyclaw/SETTINGS.md",
        "local": tmp_path / "ws/.tinyclaw/SETTINGS.local.md",
    }

    def write_one(place: str, *lines: str) -> None:
        places[place].parent.mkdir(parents=True, exist_ok=True)
        places[place].write_text("\n".join(["---", *lines, "---", "", "Why we set this."]))

    return write_one


@pytest.fixture
def load(tmp_path: Path):
    def load_now(environment=None, flags=None):
        return load_settings(tmp_path / "ws", tmp_path / "user", environment or {}, flags or {})

    return load_now


def test_without_files_the_defaults_hold_and_yaml_is_not_loaded(load):
    assert load() == (Settings(), [])


def test_later_places_win_and_each_value_knows_its_place(load, write):
    write("user", "model: from-user", "max_tokens: 4_000")
    write("workspace", "# why", "model: from-workspace")
    write("local", "model: from-local")
    settings, problems = load()
    assert (settings.model, settings.max_tokens, problems) == ("from-local", 4000, [])
    assert settings.origin("model") == ".tinyclaw/SETTINGS.local.md:2"
    assert settings.origin("max_tokens") == "~/SETTINGS.md:3"
    assert settings.origin("thinking") == "default"
    settings, _ = load({"TINYCLAW_MODEL": "from-variable"})
    assert (settings.model, settings.origin("model")) == ("from-variable", "environment TINYCLAW_MODEL")
    settings, _ = load({"TINYCLAW_MODEL": "from-variable"}, {"model": "from-flag"})
    assert (settings.model, settings.origin("model")) == ("from-flag", "--model")


@pytest.mark.parametrize("place", ["workspace", "local"])
@pytest.mark.parametrize("looser", ["accept-edits", "auto"])
def test_a_workspace_cannot_loosen_the_permission_mode(load, write, place, looser):
    write(place, f"permission_mode: {looser}")
    settings, (problem,) = load()
    assert settings.permission_mode == "ask"
    assert "may only tighten" in str(problem) and "TINYCLAW_PERMISSION_MODE" in str(problem) and problem.line == 2


def test_a_workspace_may_tighten_and_the_person_may_then_loosen(load, write):
    write("user", "permission_mode: auto", "max_requests: 50")
    write("workspace", "permission_mode: read-only", "max_requests: 10")
    settings, problems = load()
    assert (settings.permission_mode, settings.max_requests, problems) == ("read-only", 10, [])
    assert load(flags={"permission_mode": "auto"})[0].permission_mode == "auto"


def test_a_workspace_cannot_lift_a_limit_or_leave_plan_mode(load, write):
    write("user", "max_requests: 10", "mode: plan", "memory_flush: off")
    write("workspace", "max_requests: 0", "mode: default", "memory_flush: on")
    settings, problems = load()
    assert (settings.max_requests, settings.mode, settings.memory_flush, len(problems)) == (10, "plan", "off", 3)


def test_a_wrong_value_is_said_with_its_line_and_leaves_the_one_below(load, write):
    write("user", "max_tokens: 1000")
    write("workspace", "thinking: maybe", "max_tokens: lots", "permision_mode: ask")
    settings, problems = load()
    assert (settings.max_tokens, settings.thinking) == (1000, "auto")
    assert [problem.line for problem in problems] == [2, 3, 4]
    assert "did you mean permission_mode?" in str(problems[2])


def test_a_permission_mode_that_means_nothing_fails_closed(load, write):
    write("user", "permission_mode: auto")
    write("workspace", "permission_mode: readonly")
    settings, (problem,) = load()
    assert settings.permission_mode == "read-only" and "read-only holds until it is mended" in str(problem)


@pytest.mark.parametrize("name", ["max_tries", "request_timeout_seconds"])
def test_a_limit_that_cannot_be_nothing_is_refused(load, name):
    with pytest.raises(UsageError, match="at least 1"):
        load(flags={name: "0"})


def test_a_wrong_flag_or_variable_is_a_usage_error(load):
    with pytest.raises(UsageError, match="--permission-mode: permission_mode is one of read-only, ask"):
        load(flags={"permission_mode": "yolo"})
    with pytest.raises(UsageError, match="TINYCLAW_MAX_TOKENS"):
        load({"TINYCLAW_MAX_TOKENS": "many"})


def test_a_settings_file_that_cannot_be_read_is_said(load, tmp_path: Path):
    (tmp_path / "ws/.tinyclaw/SETTINGS.md").mkdir(parents=True)
    settings, (problem,) = load()
    assert settings == Settings() and ".tinyclaw/SETTINGS.md" in str(problem)


def test_every_setting_is_documented_below_its_field():

    source = inspect.getsource(Settings)
    for each in fields(Settings):
        if each.name != "origins":
            following = source.split(f"    {each.name}: ", 1)[1].split("\n")[1]
            assert following.strip().startswith('"""'), each.name
