"""A tool is one function: its name, docstring and signature are what the model is told.

``@tool(effect=...)`` turns the function into a ``Tool``. Parameters after the context are the
input; ``Annotated[type, "text"]`` describes one, a default makes it optional. The schema is made
once, at import.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tinyclaw._discover import import_modules
from tinyclaw.errors import ToolError
from tinyclaw.types import Domain, Effect, Interrupt, Json, ToolOutput, ToolSpec

if TYPE_CHECKING:
    from tinyclaw.state.ledger import Ledger
    from tinyclaw.state.memory.store import Memory
    from tinyclaw.state.outputs import Outputs
    from tinyclaw.state.workspace import Workspace
    from tinyclaw.tools._jobs import Jobs


@dataclass
class ToolContext:
    """All that a tool may touch. One is made for each call.

    ``emit`` takes pieces of output as they appear, for the person's eyes; it never raises and may
    be called from any thread. ``ledger`` knows which revision of which file the model has seen.
    ``jobs`` holds background commands of the session. ``ask_summary`` has the conversation summarized
    before the next request. ``memory`` holds the records, ``mask`` hides secrets, ``session`` is the session's id.
    """

    workspace: Workspace
    ledger: Ledger
    outputs: Outputs
    jobs: Jobs
    memory: Memory
    interrupt: Interrupt
    emit: Callable[[str], None] = lambda text: None
    ask_summary: Callable[[], None] = lambda: None
    mask: Callable[[str], str] = str
    session: str = ""


_JSON_TYPES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True)
class Tool:
    """A function and what it declares.

    ``effect`` decides on permission (read and state run freely), ``domain`` on plan mode.
    ``shows`` names the argument that stands for the call in one line. ``diff`` takes what the function takes
    and gives the change that it would make, for the person who is asked to allow it.
    """

    function: Callable[..., str | ToolOutput]
    effect: Effect
    domain: Domain = "local"
    shows: str = ""
    diff: Callable[..., str] | None = None

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, inspect.getdoc(self.function) or "", _schema(self.function))

    def headline(self, arguments: Mapping[str, Any]) -> str:
        """The call in one line, for headings and terminals: ``read src/a.py``."""
        shown = arguments.get(self.shows, "")
        return f"{self.name} {shown}".split("\n", 1)[0].strip() if isinstance(shown, str) else self.name

    def run(self, context: ToolContext, arguments: Json) -> ToolOutput:
        """Check the arguments against the schema and call the function.

        Raises: ToolError for wrong arguments and for whatever the function refuses.
        """
        self._check(arguments)
        result = self.function(context, **arguments)
        return result if isinstance(result, ToolOutput) else ToolOutput(result)

    def preview(self, context: ToolContext, arguments: Json) -> str | None:
        """The change that a call would make, as a diff; None when the tool cannot tell. Nothing is changed.

        Raises: ToolError for a call that would be refused anyway, so that nobody is asked to allow it.
        """
        self._check(arguments)
        return self.diff(context, **arguments) if self.diff else None

    def _check(self, arguments: Json) -> None:
        problems = check_arguments(arguments, self.spec.schema)
        if problems:
            raise ToolError(
                f"{self.name}: {'; '.join(problems)}. Call it again with the arguments its schema asks for."
            )


def tool(
    *, effect: Effect, domain: Domain = "local", shows: str = "", diff: Callable[..., str] | None = None
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a tool. ``shows`` is the parameter that names the call in headings, the first one by default."""

    def declare(function: Callable[..., Any]) -> Tool:
        parameters = list(inspect.signature(function).parameters)[1:]
        return Tool(function, effect, domain, shows or (parameters[0] if parameters else ""), diff)

    return declare


@dataclass(frozen=True)
class Registry:
    """All tools by name, in the order of their names, which is the order on the wire."""

    tools: Mapping[str, Tool] = field(default_factory=dict)

    def get(self, name: str) -> Tool | None:
        return self.tools.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(self.tools[name].spec for name in sorted(self.tools))


def load_tools() -> Registry:
    """Import every tool module of this package; the tool is the module's attribute of the module's name."""
    import tinyclaw.tools as package

    found: dict[str, Tool] = {}
    for name, module in import_modules(package).items():
        candidate = getattr(module, name, None)
        if not isinstance(candidate, Tool):
            raise ToolError(f"{module.__file__} defines no tool called {name}")
        found[name] = candidate
    return Registry(found)


def check_arguments(arguments: Json, schema: Json) -> list[str]:
    """Every way in which ``arguments`` do not fit ``schema``, as sentences; empty when they fit."""
    properties: Json = schema["properties"]
    problems = [f"{name} is missing" for name in schema["required"] if name not in arguments]
    for name, value in arguments.items():
        if name not in properties:
            problems.append(f"{name} is not an argument (known: {', '.join(properties) or 'none'})")
        elif not _fits(value, properties[name]):
            problems.append(f"{name} is {_kind(value)}, not {_wanted(properties[name])}")
    return problems


def _wanted(schema: Json) -> str:
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    return f"an array of {_wanted(schema['items'])}" if schema["type"] == "array" else str(schema["type"])


def _kind(value: object) -> str:
    """A value as JSON calls it."""
    if isinstance(value, list):
        return f"an array of {', '.join(sorted({_kind(item) for item in value}))}" if value else "an empty array"
    return _JSON_TYPES.get(type(value), "null" if value is None else "an object")


def _fits(value: object, schema: Json) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if schema["type"] == "array":
        return isinstance(value, list) and all(_fits(item, schema["items"]) for item in value)
    if schema["type"] == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if schema["type"] == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool, "object": dict}[schema["type"]])


def _schema(function: Callable[..., Any]) -> Json:
    hints = get_type_hints(function, include_extras=True, localns=_hint_names())
    properties: Json = {}
    required: list[str] = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        properties[parameter.name] = _property(hints[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _hint_names() -> dict[str, Any]:
    return dict.fromkeys(("Ledger", "Memory", "Outputs", "Workspace", "Jobs"), Any)


def _property(hint: Any) -> Json:
    description = ""
    if get_origin(hint) is Annotated:
        hint, description = get_args(hint)[:2]
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    schema: Json
    if get_origin(hint) is Literal:
        schema = {"type": "string", "enum": list(get_args(hint))}
    elif get_origin(hint) is list:
        schema = {"type": "array", "items": _property(get_args(hint)[0])}
    elif hint is dict or typing.is_typeddict(hint):
        schema = {"type": "object"}
    else:
        schema = {"type": _JSON_TYPES[hint]}
    return {**schema, "description": description} if description else schema
