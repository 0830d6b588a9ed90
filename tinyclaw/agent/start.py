"""Make a session: the only place where the parts are chosen and put together."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tinyclaw.agent.budgets import Budgets
from tinyclaw.agent.facts import Facts
from tinyclaw.agent.recorded import last_sent
from tinyclaw.agent.session import AskPerson, MemoryHabits, Session, SmallModel, image_loader
from tinyclaw.agent.spending import Allowance
from tinyclaw.context.clearing import WaterMarks
from tinyclaw.context.compiler import Target
from tinyclaw.context.source import Limits, load_sources, watched_patterns
from tinyclaw.errors import StateError, TinyclawError, UsageError
from tinyclaw.model.base import Model
from tinyclaw.model.catalog import ModelInfo, default_model, lookup
from tinyclaw.model.connection import Endpoint, server_of
from tinyclaw.model.limits import Limits as ModelLimits
from tinyclaw.model.limits import LimitsFile
from tinyclaw.model.prices import FREE, Price, own_prices, price_of
from tinyclaw.model.replay import ReplayModel
from tinyclaw.prompts import prompt_loader, unused_prompts
from tinyclaw.stamp import stamp
from tinyclaw.state.ledger import Ledger
from tinyclaw.state.leftovers import clear_leftovers
from tinyclaw.state.live import LiveFiles
from tinyclaw.state.memory import proposal
from tinyclaw.state.memory.store import Memory
from tinyclaw.state.outputs import Outputs
from tinyclaw.state.redaction import Masker
from tinyclaw.state.settings import Settings, load_settings
from tinyclaw.state.snapshot import MAX_STATE_BYTES, SnapshotReader
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.state.transcript.sessions import find_session
from tinyclaw.state.transcript.store import SessionName, Transcript
from tinyclaw.state.workspace import OWN_FOLDER, PLAN, TODO, TRANSCRIPTS, Workspace
from tinyclaw.tools._base import load_tools
from tinyclaw.tools._jobs import Jobs
from tinyclaw.types import Interrupt, Json

DEFAULT_OUTPUT_TOKENS = 32_000
REPLAY = "replay:"
_SMALL_TRIES = 2
"""What nothing depends on is not worth a long wait."""


@dataclass(frozen=True)
class Options:
    """What a front end decides about a session.

    ``flags`` are settings of the command line by field name; ``resume`` is ``last`` or an id; ``title``
    names a new session. ``ask`` is None when there is nobody to ask.
    ``report`` keeps the details of a fault of ours and gives the line for the person.
    """

    workspace: Workspace
    environment: Mapping[str, str]
    clock: Callable[[], datetime]
    flags: Mapping[str, str] = field(default_factory=dict)
    resume: str | None = None
    title: str = ""
    ask: AskPerson | None = None
    report: Callable[[Exception], str] = repr
    interrupt: Interrupt = field(default_factory=Interrupt)
    strict: bool = False


def open_session(options: Options) -> Session:
    """Start a session, or go on with one.

    Raises: UsageError, StateError, Locked, or ModelError when no key is set.
    """
    workspace = options.workspace
    settings, diagnostics = load_settings(workspace.root, workspace.user_dir, options.environment, options.flags)
    masker = Masker(options.environment)
    resumed = _resumed(options) if options.resume is not None else None
    try:
        model, endpoint = _model(options, settings, resumed.conversation.model if resumed else "")
        price = FREE if endpoint is None else _limited_price(model.name, settings)
    except TinyclawError:
        if resumed:
            resumed.close()
        raise
    transcript = resumed or _new_transcript(options, masker)
    live = LiveFiles(time.time, time.sleep, limit_bytes=MAX_STATE_BYTES)
    sources = load_sources()
    outputs = Outputs(workspace.root, transcript.session, masker.mask)
    started = options.clock().date().isoformat() if not isinstance(model, ReplayModel) else model.recorded_date
    limits = limits_file(options)
    target = target_of(model.name, settings, limits.of(model.name) if endpoint else None)
    session = Session(
        workspace=workspace,
        transcript=transcript,
        model=model,
        target=target,
        registry=load_tools(),
        sources=sources,
        reader=SnapshotReader(workspace, live, masker.mask, watched_patterns(sources), time.time),
        prefixes=PrefixStore(workspace.root / TRANSCRIPTS, workspace.user_dir),
        ledger=Ledger(),
        outputs=outputs,
        jobs=Jobs(workspace.root, options.environment, outputs),
        memory=Memory.of(workspace, lambda: stamp(options.clock()), masker.mask),
        masker=masker,
        prompts=prompt_loader(workspace.user_dir),
        clock=options.clock,
        facts=Facts(fixed_facts(workspace, started), lambda: git_text(workspace.root, masker)),
        permission_mode=settings.permission_mode,
        mode=settings.mode,
        limits=limits_of(settings),
        marks=marks_of(settings, target.window_tokens),
        price=price,
        allowance=Allowance(settings.max_requests or None, settings.max_cost or None),
        habits=_habits(settings),
        small=_small_model(model, endpoint, settings),
        ask=options.ask,
        report=options.report,
        interrupt=options.interrupt,
    )
    if endpoint is not None:
        session.budgets = _budgets(session, endpoint, limits, settings, options)
    if resumed:
        blocks, load_image = resumed.blocks, image_loader(workspace)
        session.sent = last_sent(blocks, session.conversation, session.prefixes, load_image, options.clock())
    session.notices += [str(diagnostic) for diagnostic in diagnostics]
    session.notices += unused_prompts(workspace.root / OWN_FOLDER)
    if proposal.is_waiting(session.memory):
        session.notices.append(f"{proposal.PATH} waits for you: tinyclaw memory accept, or reject")
    session.notices += [str(rescued) for rescued in clear_leftovers(written_folders(session))]
    return session


def written_folders(session: Session) -> Iterator[Path]:
    """Where an earlier process may have died in the middle of a write: state's own folders, those of open calls."""
    workspace = session.workspace
    yield from (workspace.root, session.prefixes.folder, session.prefixes.user_folder)
    if not session.memory.files.path.is_symlink():
        yield session.memory.files.path
    named = [call.input.get("path") for call in session.conversation.pending_calls]
    for name in (PLAN, TODO, *named):
        with suppress(StateError):
            if isinstance(name, str):
                yield workspace.resolve(name).parent


def _model(options: Options, settings: Settings, before: str) -> tuple[Model, Endpoint | None]:
    """The model to ask: the one that was chosen, else the session's own from ``before``, else the default.

    And the way to its server, None for a replay.
    """
    name = settings.model or before or default_model("main")
    if name.startswith(REPLAY):
        path = Path(name.removeprefix(REPLAY))
        return ReplayModel(path, options.workspace.user_dir, strict=options.strict), None
    if options.strict:
        raise UsageError("--strict compares with a recorded session; it goes with -m replay:FILE")
    from tinyclaw.model.anthropic import AnthropicModel
    from tinyclaw.model.retry import RetryPolicy

    endpoint = Endpoint.from_environment(options.environment, idle_seconds=settings.request_timeout_seconds)
    endpoint.warm()
    return AnthropicModel(name, endpoint, RetryPolicy(max_tries=settings.max_tries)), endpoint


def _small_model(main: Model, endpoint: Endpoint | None, settings: Settings) -> SmallModel:
    """A replay answers small questions, too; a server is asked for another model."""
    if endpoint is None:
        return SmallModel(main, FREE)
    from tinyclaw.model.anthropic import AnthropicModel
    from tinyclaw.model.retry import RetryPolicy

    name = settings.small_model or default_model("small")
    policy = RetryPolicy(max_tries=min(settings.max_tries, _SMALL_TRIES))
    return SmallModel(AnthropicModel(name, endpoint, policy), price_for(name, settings))


def _habits(settings: Settings) -> MemoryHabits:
    return MemoryHabits(
        flush=settings.memory_flush == "on",
        select=settings.memory_select,
        extract=settings.memory_extract == "on",
        consolidate=settings.memory_consolidate,
    )


def price_for(model: str, settings: Settings) -> Price | None:
    """What a model costs; None when that is not known. Raises: UsageError for a price that is none."""
    try:
        return price_of(model, own_prices(settings.prices))
    except ValueError as error:
        raise UsageError(f"{settings.origin('prices')}: {error}") from None


def _limited_price(model: str, settings: Settings) -> Price | None:
    """Raises: UsageError when a limit is set on the cost, and the price is not known."""
    price = price_for(model, settings)
    if price is None and settings.max_cost:
        raise UsageError(
            f"what {model} costs is not known, so it cannot be kept below ${settings.max_cost:.2f}; set it under "
            f'prices: in the user-level SETTINGS.md, as in "- {model} 3 15" (US dollars per million tokens of '
            "input and output)"
        )
    return price


def _resumed(options: Options) -> Transcript:
    found = find_session(options.workspace.root / TRANSCRIPTS, options.resume or "last")
    return Transcript.open(found.path, image_loader(options.workspace))


def _new_transcript(options: Options, masker: Masker) -> Transcript:
    folder = options.workspace.root / TRANSCRIPTS
    load_image = image_loader(options.workspace)
    now = options.clock()
    title = masker.mask(" ".join(options.title.split()))[:120] or "session"
    name = SessionName.new(now.strftime("%Y%m%d-%H%M%S"), title, os.urandom(2).hex())
    return Transcript.create(folder, name, title, stamp(now), load_image)


def target_of(model: str, settings: Settings, known: ModelLimits | None = None) -> Target:
    """The model that requests are made for, with its limits: those that its server has told, else the shipped ones."""
    info = lookup(model)
    limits = known or ModelLimits(info.context_window, info.max_output)
    longest = settings.max_tokens or min(DEFAULT_OUTPUT_TOKENS, limits.max_output)
    return Target(model, limits.context_window, longest, info.characters_per_token, _params(info, settings))


def limits_file(options: Options) -> LimitsFile:
    """What the server has told of its models' limits."""
    return LimitsFile(options.workspace.user_dir, server_of(options.environment))


def _budgets(session: Session, endpoint: Endpoint, file: LimitsFile, settings: Settings, options: Options) -> Budgets:
    model = session.target.model

    def take_over(told: ModelLimits) -> None:
        session.target = target_of(model, settings, told)
        session.marks = marks_of(settings, session.target.window_tokens)

    return Budgets(
        endpoint=endpoint,
        file=file,
        model=model,
        is_guessed=lookup(model).is_assumed and file.of(model) is None,
        today=options.clock().date(),
        take_over=take_over,
        tell=session.notices.append,
        report=options.report,
    )


def _params(info: ModelInfo, settings: Settings) -> Json:
    adaptive = settings.thinking == "adaptive" or (settings.thinking == "auto" and info.thinking == "adaptive")
    return {"thinking": {"type": "adaptive"}} if adaptive else {}


def marks_of(settings: Settings, window_tokens: int) -> WaterMarks:
    """When a conversation is made smaller: long before a large window is full, for each request pays for all of it."""
    high = settings.high_water_tokens or min(WaterMarks().high, window_tokens * 9 // 10)
    return WaterMarks(high, min(settings.low_water_tokens or high // 10, high))


def limits_of(settings: Settings) -> Limits:
    """How much of the files may enter the prompt."""
    return Limits(
        instructions_bytes=settings.instructions_bytes,
        index_bytes=settings.memory_index_bytes,
        index_lines=settings.memory_index_lines,
    )


def fixed_facts(workspace: Workspace, date: str) -> dict[str, str]:
    """The facts of the environment that hold for a whole session; ``date`` is its start's."""
    below = workspace.relative(workspace.cwd)
    return {
        "Workspace": f"{workspace.root.name} (paths are relative to its root)",
        "Working folder": "the root" if below == "." else below,
        "Platform": platform.system(),
        "Date": date,
    }


def git_text(root: Path, masker: Masker) -> str:
    """What git says now, masked; "" outside a repository."""
    from tinyclaw.state.git import facts

    found = facts(root)
    return masker.mask(str(found)) if found is not None else ""
