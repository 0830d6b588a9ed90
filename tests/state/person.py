"""A person at an editor, as a process: saves a file many times in one style, printing each save's token.

usage: person.py FILE STYLE BUFFER SAVES [SECONDS]. With a "stale" buffer the file is read once and each
save adds a line to what the editor holds; "reloaded" reads the file anew before each change. There are at
most SECONDS between two saves; where they are given, each token is followed by the save's end on the
monotonic clock and the revision of what was saved.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from pathlib import Path


def in_place(path: Path, data: bytes) -> None:
    with path.open("wb", buffering=0) as file:
        pause()
        middle = len(data) // 2
        file.write(data[:middle])
        pause()
        file.write(data[middle:])


def overwrite(path: Path, data: bytes) -> None:
    with path.open("r+b", buffering=0) as file:
        pause()
        file.write(data)
        pause()
        file.truncate()


def rename(path: Path, data: bytes) -> None:
    temp = path.with_name(f"{path.name}.temp")
    temp.write_bytes(data)
    temp.replace(path)


def backup(path: Path, data: bytes) -> None:
    away = path.with_name(path.name + "~")
    path.rename(away)
    pause()
    path.write_bytes(data)
    away.unlink()


def two_renames(path: Path, data: bytes) -> None:
    temp, away = path.with_name(f"{path.name}___jb_tmp___"), path.with_name(f"{path.name}___jb_old___")
    temp.write_bytes(data)
    path.rename(away)
    pause()
    temp.rename(path)
    away.unlink()


def anew(path: Path, data: bytes) -> None:
    path.unlink()
    pause()
    path.write_bytes(data)


def pause() -> None:
    time.sleep(random.choice([0, 0, 0.001, 0.003]))


def main(name: str, style: str, buffer: str, saves: str, seconds: str = "") -> None:
    path = Path(name)
    save = {"in-place": in_place, "overwrite": overwrite, "two-renames": two_renames}.get(style) or globals()[style]
    text = path.read_bytes()
    for number in range(int(saves)):
        time.sleep(random.uniform(0, float(seconds or 0.03)))
        token = f"<{number}>"
        if buffer == "reloaded":
            text = path.read_bytes()
        text += f"{token}\n".encode()
        save(path, text)
        details = [time.monotonic(), hashlib.sha256(text).hexdigest()[:16]] if seconds else []
        print(token, *details)


if __name__ == "__main__":
    main(*sys.argv[1:])
