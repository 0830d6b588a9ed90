"""The next request of a session as it would be sent now, without opening the session or writing anything."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tinyclaw.agent.facts import Facts
from tinyclaw.agent.recorded import Rebuilt, Recording, last_sent
from tinyclaw.agent.scene import Scene
from tinyclaw.agent.session import image_loader
from tinyclaw.agent.sight import folders_in_sight
from tinyclaw.agent.start import (
    REPLAY,
    Options,
    fixed_facts,
    git_text,
    limits_file,
    limits_of,
    marks_of,
    price_for,
    target_of,
)
from tinyclaw.agent.view import View
from tinyclaw.context.compiler import Inputs, WorkingSet, compile_request
from tinyclaw.context.reuse import reuse
from tinyclaw.context.source import load_sources, watched_patterns
from tinyclaw.model.catalog import default_model
from tinyclaw.model.replay import ReplayModel
from tinyclaw.prompts import prompt_loader
from tinyclaw.stamp import stamp
from tinyclaw.state.live import LiveFiles
from tinyclaw.state.redaction import Masker
from tinyclaw.state.settings import load_settings
from tinyclaw.state.snapshot import MAX_STATE_BYTES, Snapshot, SnapshotReader
from tinyclaw.state.transcript.fold import Conversation, conversation_of
from tinyclaw.state.transcript.prefixes import Prefix, PrefixStore
from tinyclaw.state.transcript.sessions import SessionFile, find_session
from tinyclaw.state.workspace import TRANSCRIPTS
from tinyclaw.tools._base import load_tools


@dataclass(frozen=True)
class Preview:
    """The working set, how it looks, what it was made from, and its session; None for one that would begin now."""

    working: WorkingSet
    view: View
    scene: Scene
    session: SessionFile | None


def preview(options: Options) -> Preview:
    """Compile what would be sent next, for the session that ``options.resume`` names or for a new one.

    Raises: UsageError, StateError, PromptTooLong.
    """
    workspace = options.workspace
    settings, _ = load_settings(workspace.root, workspace.user_dir, options.environment, options.flags)
    folder = workspace.root / TRANSCRIPTS
    session = find_session(folder, options.resume) if options.resume is not None else None
    load_image = image_loader(workspace)
    blocks = Recording.read(session.path, load_image).blocks if session else ()
    conversation = conversation_of(blocks, load_image)
    now = options.clock()
    prefixes = PrefixStore(folder, workspace.user_dir)
    prefix = prefixes.load(conversation.prefix) if conversation.prefix else None
    snapshot = _snapshot(options, now, conversation, prefix)
    model = _model_name(settings.model or conversation.model, options)
    target = target_of(model, settings, limits_file(options).of(model))
    marks = marks_of(settings, target.window_tokens)
    inputs = Inputs(
        snapshot=snapshot,
        conversation=conversation,
        prefix=prefix,
        sources=load_sources(),
        tools=load_tools().specs(),
        prompts=prompt_loader(workspace.user_dir),
        target=target,
        limits=limits_of(settings),
        marks=marks,
        mode=settings.mode,
        now=stamp(now),
    )
    working = compile_request(inputs)
    before = last_sent(blocks, conversation, prefixes, load_image, now)
    held = reuse(before, working, now, 0).tokens
    price = price_for(target.model, settings)
    view = View(working.request, working.prefix, working.manifest, target.window_tokens, marks, held, price)
    scene = Scene(
        workspace=workspace,
        transcript=workspace.relative(session.path) if session else "",
        blocks=blocks,
        end=len(blocks),
        conversation=conversation.extended(working.blocks),
        prefix=working.prefix,
        messages=working.messages,
        manifest=working.manifest,
        snapshot=snapshot,
        prefixes=prefixes,
        is_exact=before is None or not before.is_edited,
    )
    return Preview(working, view, scene, session)


def _snapshot(options: Options, now: datetime, conversation: Conversation, prefix: Prefix | None) -> Snapshot:
    """What the live files say now."""
    workspace = options.workspace
    masker = Masker(options.environment)
    live = LiveFiles(time.time, time.sleep, limit_bytes=MAX_STATE_BYTES)
    reader = SnapshotReader(workspace, live, masker.mask, watched_patterns(load_sources()), time.time)
    facts = Facts(fixed_facts(workspace, now.date().isoformat()), lambda: git_text(workspace.root, masker))
    return reader.take(facts.get(), folders_in_sight(conversation, prefix))


def recorded_scene(options: Options, recording: Recording, rebuilt: Rebuilt) -> Scene:
    """What a request was made from that was sent; the live files are those of now."""
    workspace = options.workspace
    return Scene(
        workspace=workspace,
        transcript=workspace.relative(recording.path),
        blocks=recording.blocks,
        end=rebuilt.place,
        conversation=rebuilt.conversation,
        prefix=rebuilt.prefix,
        messages=rebuilt.messages,
        manifest=rebuilt.manifest,
        snapshot=_snapshot(options, options.clock(), rebuilt.conversation, rebuilt.prefix),
        prefixes=PrefixStore(workspace.root / TRANSCRIPTS, workspace.user_dir),
        is_exact=rebuilt.is_exact,
    )


def recorded_view(options: Options, rebuilt: Rebuilt) -> View:
    """How a request looks that was sent: by today's settings and prices. Raises: UsageError."""
    settings, _ = load_settings(options.workspace.root, options.workspace.user_dir, options.environment, options.flags)
    model = rebuilt.request.model
    target = target_of(model, settings, limits_file(options).of(model))
    marks, price = marks_of(settings, target.window_tokens), price_for(model, settings)
    return View(
        rebuilt.request, rebuilt.prefix, rebuilt.manifest, target.window_tokens, marks, rebuilt.cached_tokens, price
    )


def _model_name(wanted: str, options: Options) -> str:
    if wanted.startswith(REPLAY):
        return ReplayModel(Path(wanted.removeprefix(REPLAY)), options.workspace.user_dir).name
    return wanted or default_model("main")
