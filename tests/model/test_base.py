import subprocess
import sys

import pytest

from tinyclaw.model.base import finish_import, start_import


def run(program):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout


@pytest.mark.parametrize("module", ["base", "anthropic", "catalog", "connection", "faults"])
def test_importing_the_layer_does_not_import_the_sdk(module):
    program = f"import sys, tinyclaw.model.{module}; print('anthropic' in sys.modules, 'httpx2' in sys.modules)"
    assert run(program) == "False False\n"


def test_the_sdk_is_whole_when_it_is_handed_out():
    program = """
import threading
from tinyclaw.model.base import finish_import, start_import
start_import(); start_import()
print(threading.active_count(), finish_import().Anthropic.__name__, threading.active_count())
"""
    assert run(program) == "2 Anthropic 1\n"


def test_starting_again_later_is_harmless():
    start_import()
    assert finish_import() is finish_import()


def test_the_collector_works_again_after_the_import():
    program = """
import gc
from tinyclaw.model.base import finish_import
finish_import()
print(gc.isenabled(), gc.get_freeze_count() > 100_000)
"""
    assert run(program) == "True True\n"
