"""PLAN.md: what is to be done, how far it is agreed, and for which goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from tinyclaw.state.documents import Document
from tinyclaw.state.todo import Item, Todo
from tinyclaw.types import Diagnostic

Status = Literal["draft", "approved", "done"]


@dataclass(frozen=True)
class Plan:
    """A plan as it stands in the file. ``steps`` are its task-list items, if it has any."""

    document: Document
    status: Status
    goal: str
    steps: tuple[Item, ...]

    @classmethod
    def parse(cls, data: bytes, name: str = "PLAN.md") -> Plan:
        """Read a plan. Never raises; without a readable status it is a draft."""
        document = Document.parse(data, name)
        status = document.choice("status", get_args(Status), "draft")
        goal = document.string("goal") if document.fields.get("goal") else ""
        return cls(document, cast(Status, status), goal, Todo.of(document).items)

    @property
    def body(self) -> str:
        return self.document.body

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return self.document.diagnostics

    def set_status(self, status: Status) -> bytes:
        """The file's bytes with another status. Raises: StateError as ``Document.set_field``."""
        return self.document.set_field("status", status)

    def set_goal(self, goal: str) -> bytes:
        """The file's bytes with another goal; "" takes it back. Raises: StateError as ``Document.set_field``."""
        if not goal and "goal" not in self.document.fields:
            return self.document.data
        return self.document.set_field("goal", goal)
