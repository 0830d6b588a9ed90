"""Every public module of a package is an extension: import them all, sorted, and fail loudly.

This is what makes a tool, a source or a command one new file and no list elsewhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from tinyclaw.errors import TinyclawError


def module_names(package: ModuleType) -> list[str]:
    """Names of the package's modules that do not start with an underscore, sorted; nothing is imported."""
    return sorted(info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_"))


def import_modules(package: ModuleType) -> dict[str, ModuleType]:
    """Import every public module of ``package``; maps the short name to the module.

    Raises: TinyclawError naming the module's file when one does not import.
    """
    modules: dict[str, ModuleType] = {}
    for name in module_names(package):
        try:
            modules[name] = importlib.import_module(f"{package.__name__}.{name}")
        except ImportError as error:
            raise TinyclawError(f"{package.__path__[0]}/{name}.py cannot be imported: {error}") from error
    return modules
