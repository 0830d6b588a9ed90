"""The group of commands: the public modules beside this one, each imported when it is used."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import click

from tinyclaw import __version__
from tinyclaw.errors import TinyclawError, UsageError

FAILED, USAGE, INTERRUPTED = 1, 2, 130
_EPILOG = """\b
Start here:        tinyclaw demo            (needs no key)
Shell completion:  eval "$(_TINYCLAW_COMPLETE=bash_source tinyclaw)"   (or zsh_source, fish_source)"""


class Commands(click.Group):
    """Commands by file name. Their short help is the first line of their module's docstring, read without importing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (path.stem for path in Path(__file__).parent.glob("*.py"))
        return sorted(name for name in names if not name.startswith("_") and name != "main")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"tinyclaw.cli.{cmd_name}").command
        assert isinstance(command, click.Command), f"tinyclaw/cli/{cmd_name}.py defines no command"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f'{error.message} A prompt for the agent goes to: tinyclaw run "…"', ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_line(name)) for name in self.list_commands(ctx)])


def _first_line(name: str) -> str:
    source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", message="tinyclaw %(version)s")
@click.option("--resume", metavar="ID|last", help="Go on with a session at the prompt.")
@click.option("-m", "--model", metavar="NAME", help="Model for the prompt, or replay:FILE.")
@click.option("-C", "--workspace", "directory", metavar="DIR", help="Work in DIR instead of the current folder.")
@click.pass_context
def group(ctx: click.Context, resume: str | None, model: str | None, directory: str | None) -> int | None:
    """A file-native local coding agent: its whole mind is a folder of Markdown.

    Without a command it is an interactive prompt. With text on its standard input it is `tinyclaw run -`.
    """
    if ctx.invoked_subcommand is not None:
        if resume or model:
            raise click.UsageError(f"put --resume and --model behind the command: tinyclaw {ctx.invoked_subcommand} …")
        return None
    from tinyclaw.cli._start import start

    return start(resume, model, directory)


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code. Errors are one line on stderr.

    Raises: BrokenPipeError when nobody reads the output any more.
    """
    try:
        result: Any = group.main(arguments, prog_name="tinyclaw", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TinyclawError as error:
        say(str(error))
        return USAGE if isinstance(error, UsageError) else FAILED
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else FAILED
    except Exception as error:  # a bug of ours: one line for the person, the rest in a file
        from tinyclaw.cli._crash import describe

        say(describe(error))
        return FAILED


def say(text: str) -> None:
    """One message on stderr, under our name."""
    from tinyclaw.width import harmless

    print(f"tinyclaw: {harmless(text)}", file=sys.stderr)
