"""Every test runs in an environment of its own: no key, no proxy, no settings of the person who runs it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings

from tests.messages_api import MessagesApi

PERSONAL = ("ANTHROPIC_", "TINYCLAW_", "XDG_", "GIT_", "OTEL_")
SIZE = {"COLUMNS", "LINES"}
SINGLE = {"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NO_COLOR", "FORCE_COLOR", "EDITOR", "VISUAL", "PAGER"}


def pytest_configure() -> None:
    """A runner in the background is started with signals ignored, and what it starts would inherit that.

    A slow machine fails no test by the time that an example takes.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No variable that steers us, a home that is empty, and git with an identity but without anybody's settings.

    The small model is not asked at a turn's end, unless a test is about that.
    """
    for name in os.environ:
        if name.startswith(PERSONAL) or name.upper() in SINGLE | SIZE:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    git_config = home / ".gitconfig"
    git_config.write_text("[init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n")
    variables = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "GIT_CONFIG_GLOBAL": str(git_config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "TINYCLAW_MEMORY_EXTRACT": "off",
        "TINYCLAW_MEMORY_CONSOLIDATE": "off",
    }
    for role in ("AUTHOR", "COMMITTER"):
        variables |= {f"GIT_{role}_NAME": "Test", f"GIT_{role}_EMAIL": "test@example.invalid"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def api() -> Iterator[Callable[..., MessagesApi]]:
    """Starts servers: ``api(script, **options)`` with the arguments of ``MessagesApi``.

    At the test's end they are closed, and a refused request fails the test; a test that expects refusals says
    ``api(script, refusals=True)``.
    """
    strict: list[MessagesApi] = []
    with ExitStack() as stack:

        def start(script: Any = (), *, refusals: bool = False, **options: Any) -> MessagesApi:
            server = stack.enter_context(MessagesApi(script, **options))
            if not refusals:
                strict.append(server)
            return server

        yield start
    refused = [f"{refusal.status}: {refusal.message}" for server in strict for refusal in server.refused]
    assert refused == [], "the Messages API refused requests of this test"
