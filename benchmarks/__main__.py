"""What tinyclaw itself costs, beside the machine's own baseline: ``python -m benchmarks [NAME…]``, from the root.

Figures are medians. Nothing is asserted: a figure that got worse is for a person to see.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks import first_request, long_session, memory, overhead, size, startup, transcript

BENCHMARKS: dict[str, Callable[[], None]] = {
    "startup": startup.run,
    "first_request": first_request.run,
    "overhead": overhead.run,
    "transcript": transcript.run,
    "size": size.run,
    "memory": memory.run,
    "long_session": long_session.run,
}


def main(names: list[str]) -> int:
    names = [name for name in names if not name.startswith("--")]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        print(f"\n== {name}", flush=True)
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
