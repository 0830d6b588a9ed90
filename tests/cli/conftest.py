from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder to work in; recordings and other files of a test lie beside it."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
