"""What commands that only look share: the next request, a past request, a session's record."""

from __future__ import annotations

from tinyclaw.agent.preview import Preview, preview, recorded_scene, recorded_view
from tinyclaw.agent.recorded import Rebuilt, Recording
from tinyclaw.agent.scene import Scene
from tinyclaw.agent.session import image_loader
from tinyclaw.agent.start import Options
from tinyclaw.agent.view import View
from tinyclaw.cli._here import here
from tinyclaw.cli._opening import Choices
from tinyclaw.state.transcript.prefixes import PrefixStore
from tinyclaw.state.transcript.sessions import find_session, list_sessions
from tinyclaw.state.workspace import TRANSCRIPTS, Workspace
from tinyclaw.types import Interrupt


def next_request(directory: str | None, session: str | None) -> Preview:
    """What would be sent next: in the session that was named, else in the last one, else in a new one."""
    folder = here(directory).root / TRANSCRIPTS
    wanted = session or ("last" if list_sessions(folder) else None)
    return preview(_options(directory, wanted))


def past_view(directory: str | None, rebuilt: Rebuilt) -> View:
    """How a request looks that was sent."""
    return recorded_view(_options(directory, None), rebuilt)


def scene(directory: str | None, session: str | None, number: int | None) -> tuple[str, Scene]:
    """A request with what it was made from, and its name: the Nth of a session or, without a number, the next one.

    Raises: UsageError, StateError.
    """
    options = _options(directory, None)
    if number is None:
        found = next_request(directory, session)
        return f"the next request of {f'session {found.session.id}' if found.session else 'a new session'}", found.scene
    recorded = recording(options.workspace, session or "last")
    rebuilt = recorded.request(number, PrefixStore(options.workspace.root / TRANSCRIPTS, options.workspace.user_dir))
    return f"request {number} of session {recorded.session}", recorded_scene(options, recorded, rebuilt)


def _options(directory: str | None, session: str | None) -> Options:
    return Choices(directory, resume=session).options(interrupt=Interrupt(), ask=None)


def recorded_request(workspace: Workspace, session: str, number: int) -> Rebuilt:
    """Request ``number`` of a session as it was sent. Raises: UsageError, StateError."""
    prefixes = PrefixStore(workspace.root / TRANSCRIPTS, workspace.user_dir)
    return recording(workspace, session).request(number, prefixes)


def recording(workspace: Workspace, session: str) -> Recording:
    """A session's transcript as it stands. Raises: UsageError, StateError."""
    found = find_session(workspace.root / TRANSCRIPTS, session)
    return Recording.read(found.path, image_loader(workspace))
