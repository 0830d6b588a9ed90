"""Long results are kept in files with portable names, masked, never overwritten."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import threading

import pytest

from tinyclaw.errors import StateError
from tinyclaw.state.outputs import Outputs
from tinyclaw.state.redaction import mask

SECRET = "sk-ant-api03-aB3dE5fG7hJ9kL2mN4pQ6rS8"


def outputs(root, session="s1"):
    return Outputs(root, session, mask)


def test_nothing_is_created_before_the_first_output(tmp_path):
    outputs(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_text_is_stored_as_it_is_and_described(tmp_path):
    text = "one\r\ntwo\n---\nthree é"
    ref = outputs(tmp_path).put("bash", text)
    data = (tmp_path / ref.path).read_bytes()
    assert ref.path == ".task_outputs/s1/1-bash.md"
    assert data == text.encode()
    assert (ref.bytes, ref.lines, ref.sha256) == (len(data), 4, hashlib.sha256(data).hexdigest())


def test_secrets_are_masked_also_when_split_over_two_writes(tmp_path):
    out = outputs(tmp_path)
    whole = out.put("bash", f"key {SECRET}\n")
    with out.writer("bash") as writer:
        writer.write(f"key {SECRET[:15]}")
        writer.write(f"{SECRET[15:]}\n")
    assert (tmp_path / whole.path).read_text() == "key [masked:anthropic-key]\n"
    assert (tmp_path / writer.ref.path).read_text() == "key [masked:anthropic-key]\n"


def test_a_writer_shows_each_line_at_once_and_describes_the_file_at_the_end(tmp_path):
    with outputs(tmp_path).writer("bash") as writer:
        writer.write("one\ntw")
        assert (tmp_path / writer.path).read_text() == "one\n"
        writer.write("o\nthree")
    data = (tmp_path / writer.path).read_bytes()
    assert data == b"one\ntwo\nthree"
    assert (writer.ref.bytes, writer.ref.lines, writer.ref.sha256) == (13, 3, hashlib.sha256(data).hexdigest())


def test_a_failure_while_writing_keeps_what_came_before(tmp_path):
    with pytest.raises(KeyError), outputs(tmp_path).writer("bash") as writer:
        writer.write("one\ntwo")
        raise KeyError
    assert (tmp_path / writer.ref.path).read_text() == "one\ntwo"


def test_numbers_go_on_after_a_restart(tmp_path):
    outputs(tmp_path).put("bash", "a")
    outputs(tmp_path).put("grep", "b")
    assert outputs(tmp_path).put("bash", "c").path == ".task_outputs/s1/3-bash.md"


def test_two_processes_with_one_session_overwrite_nothing(tmp_path):
    first, second = outputs(tmp_path), outputs(tmp_path)
    first.put("bash", "a")
    refs = [second.put("bash", "b"), first.put("bash", "c"), second.put("bash", "d")]
    assert [(tmp_path / ref.path).read_text() for ref in refs] == ["b", "c", "d"]


def test_threads_get_numbers_of_their_own(tmp_path):
    out = outputs(tmp_path)
    threads = [threading.Thread(target=out.put, args=("read", str(n))) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_text() for path in (tmp_path / ".task_outputs/s1").iterdir()) == sorted(map(str, range(20)))


@pytest.mark.parametrize("name", ["https://h:5173/a?b", "CON", "a.", "x|y", "", "../../x", "é", "n" * 300, ".hidden"])
def test_every_name_is_portable(tmp_path, name):
    path = outputs(tmp_path, session=name).put(name, "x").path
    top, session, file = path.split("/")
    assert top == ".task_outputs"
    for part in (session, file):
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}", part) and not part.endswith(".")
        assert part.split(".")[0].upper() not in {"CON", "PRN", "AUX", "NUL"}


def test_a_picture_keeps_its_bytes_and_gets_its_suffix(tmp_path):
    ref = outputs(tmp_path).put_image("read", b"\x89PNG\r\n\xff", ".png")
    assert ref.path == ".task_outputs/s1/1-read.png"
    assert (tmp_path / ref.path).read_bytes() == b"\x89PNG\r\n\xff"
    assert (ref.bytes, ref.lines) == (7, 0)


def test_half_characters_are_stored_as_question_marks(tmp_path):
    ref = outputs(tmp_path).put("bash", "a\ud83d")
    assert (tmp_path / ref.path).read_text() == "a?"


def test_a_file_in_the_way_is_said_with_path_and_mend(tmp_path):
    (tmp_path / ".task_outputs").write_text("mine")
    with pytest.raises(StateError, match=r"\.task_outputs/s1: cannot be written \(.*\); free space or"):
        outputs(tmp_path).put("bash", "x")
    assert (tmp_path / ".task_outputs").read_text() == "mine"


def test_a_link_out_of_the_workspace_is_refused(tmp_path):
    root, outside = tmp_path / "w", tmp_path / "o"
    root.mkdir()
    outside.mkdir()
    (root / ".task_outputs").symlink_to(outside)
    with pytest.raises(StateError, match="leads out of the workspace"):
        outputs(root).put("bash", "x")


def test_a_disk_that_takes_no_more_is_an_error_that_leaves_no_half_file(tmp_path):
    program = (
        "import resource, signal, sys, pathlib\n"
        "from tinyclaw.state.outputs import Outputs\n"
        "from tinyclaw.errors import StateError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    Outputs(pathlib.Path(sys.argv[1]), 's1', str).put('bash', 'x' * 5000)\n"
        "except StateError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert re.match(r"\.task_outputs/s1/1-bash\.md: cannot be written \(File too large\)", run.stdout)
    assert list((tmp_path / ".task_outputs/s1").iterdir()) == []
