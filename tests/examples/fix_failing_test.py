"""A bug is found and mended; half way the person adds a step to PLAN.md. ``tinyclaw demo`` plays it."""

from __future__ import annotations

from tests.examples.scenario import Scenario, Turn, bash, edit, replacing
from tests.messages_api import reply

LAST_STEP = "3. Run all tests.\n"
NEW_STEP = "4. An empty basket costs nothing: add a test for that.\n"
TESTS = "python3 -m unittest -q"
EMPTY_BASKET = """
    def test_an_empty_basket_costs_nothing(self):
        self.assertEqual(Basket(discount=10).total(), 0)
"""

FIX = Scenario(
    "fix-failing-test",
    (
        Turn(
            "A test fails. Follow PLAN.md.",
            (
                reply(
                    "I'll run the tests and read the code they are about.",
                    tools=[
                        ("read", {"path": "shop/basket.py"}, "call_1"),
                        ("read", {"path": "tests/test_basket.py"}, "call_2"),
                        bash(TESTS, "call_3"),
                    ],
                ),
                reply(
                    "`total` adds up the prices and never looks at the count (shop/basket.py:18), so three teas cost "
                    "as much as one. The test is right and the code is wrong.",
                    tools=[
                        edit(
                            "shop/basket.py",
                            "sum(price for _, price, _ in self.lines)",
                            "sum(price * count for _, price, count in self.lines)",
                            "call_4",
                        ),
                        ("todo", {"done": ["mend the total of a basket"]}, "call_5"),
                    ],
                ),
                reply("Now all tests, to see that nothing else depended on it.", tools=[bash(TESTS, "call_6")]),
                reply(
                    "All three pass. You have added a step to PLAN.md meanwhile: an empty basket costs nothing. "
                    "I'll add that test.",
                    tools=[
                        edit(
                            "tests/test_basket.py",
                            '\n\nif __name__ == "__main__":',
                            f'{EMPTY_BASKET}\n\nif __name__ == "__main__":',
                            "call_7",
                        ),
                        bash(TESTS, "call_8"),
                    ],
                ),
                reply(
                    tools=[
                        ("todo", {"done": ["all tests pass"]}, "call_9"),
                        ("plan", {"status": "done"}, "call_10"),
                    ],
                ),
                reply(
                    "The test failed because `Basket.total` ignored the count; it multiplies by it now "
                    "(shop/basket.py:18). I also added the test for an empty basket that you asked for in PLAN.md "
                    "(tests/test_basket.py:22). `python3 -m unittest -q` runs 4 tests, all pass. Nothing is left.",
                ),
            ),
        ),
    ),
    proof=f"{TESTS} 2>&1 | tail -n 1",
    proved="OK",
    saves={3: replacing("PLAN.md", LAST_STEP, LAST_STEP + NEW_STEP)},
)
