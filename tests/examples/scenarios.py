"""All examples."""

from __future__ import annotations

from tests.examples.fix_failing_test import FIX
from tests.examples.resume_and_search import RESUME
from tests.examples.steer_a_feature import STEER

SCENARIOS = (FIX, STEER, RESUME)
