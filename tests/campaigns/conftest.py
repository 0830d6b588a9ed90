from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.campaigns.launcher import Launcher


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """One for all tests: loading what a session needs takes longer than most of them."""
    with Launcher() as running:
        yield running
