"""Run a shell command."""

from __future__ import annotations

from typing import Annotated

from tinyclaw.errors import ToolError
from tinyclaw.tools._base import ToolContext, tool
from tinyclaw.tools._bound import Collected
from tinyclaw.tools._process import OUTPUT_LIMIT_BYTES, Ended, Shell
from tinyclaw.tools._terminal import Terminal
from tinyclaw.types import NO_OUTPUT, ToolOutput

MAX_SECONDS = 600

_FIRST_LOOK_SECONDS = 0.5


@tool(effect="execute", shows="command")
def bash(
    ctx: ToolContext,
    command: str,
    timeout: Annotated[int, "seconds, at most 600"] = 120,
    background: Annotated[bool, "for servers and watchers: return at once, output goes to a file"] = False,
) -> ToolOutput:
    """Run a command with bash. The result is its output (stdout and stderr as they came) and its exit code.

    Every call starts at the workspace's root with the same environment: cd and export do not
    last, so write `cd sub && make`. There is no terminal and no stdin: pass input and flags that
    answer questions. Prefer read, grep, glob and edit for files.
    """
    if not 1 <= timeout <= MAX_SECONDS:
        raise ToolError(
            f"timeout is {timeout}; give 1 to {MAX_SECONDS} seconds, or background=true for what runs longer."
        )
    return _start(ctx, command) if background else _run(ctx, command, timeout)


def _run(ctx: ToolContext, command: str, timeout: int) -> ToolOutput:
    terminal = Terminal()
    collected = Collected(ctx.outputs, ctx.workspace.root, "bash")
    received = 0

    def show(text: str) -> None:
        if text and not terminal.binary:
            ctx.emit(text)
            collected.write(text)

    def take(data: bytes) -> None:
        nonlocal received
        received += len(data)
        if not terminal.binary:
            show(terminal.feed(data))

    ended = Shell(command, ctx.workspace.root, ctx.jobs.environment).follow(take, ctx.interrupt, timeout)
    show(terminal.close())
    output = collected.finish()
    if terminal.binary:
        output = f"[binary output, {received:,} bytes, not shown; send it to a file, or through xxd, file or iconv]"
    return _result(output, ended, timeout)


def _result(output: str, ended: Ended, timeout: int) -> ToolOutput:
    """A failing command is a fact, not an error of the tool; one that we had to stop is."""
    output = output.rstrip("\n")
    last = {
        "exit": f"[{ended}]",
        "timeout": f"[stopped: it ran longer than {timeout} s; give a longer timeout, at most {MAX_SECONDS}, "
        "or run it with background=true]",
        "interrupt": "[stopped: the person interrupted it]",
        "output": f"[stopped: it printed more than {OUTPUT_LIMIT_BYTES:,} bytes; send its output to a file]",
    }[ended.why]
    text = f"{output if output.strip() else NO_OUTPUT}\n{last}"
    return ToolOutput(text, is_error=ended.why != "exit", summary=last.strip("[]").partition(";")[0])


def _start(ctx: ToolContext, command: str) -> ToolOutput:
    job = ctx.jobs.start(command)
    job.wait(_FIRST_LOOK_SECONDS)
    if job.ended is not None:
        ctx.jobs.announced(job)
        return ToolOutput(f"{job}", summary=f"{job.ended}")
    return ToolOutput(
        f"{job}. Stop it with `kill -- -{job.group}`; the session's end stops it too. You are told when it ends.",
        summary=f"job {job.number}",
    )
