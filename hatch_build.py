"""Compile the C sweeps while perdure is being installed.

Uses the machine's compiler if it has one, otherwise the one in the package ziglang, which is required only
then. If neither is available, perdure is installed without the library and uses its Python sweeps.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ZIG_SYSTEMS = {"linux", "darwin", "win32"}
ZIG_MACHINES = {"x86_64", "amd64", "aarch64", "arm64"}
"""Platforms for which the registry has ziglang: requiring it elsewhere would abort the installation."""


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the library, and the platform's tag, to a wheel or an editable installation."""

    def dependencies(self) -> list[str]:
        """A compiler from the registry if the machine has none."""
        if self._builder().compiler() is not None or not _zig_exists():
            return []
        return ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile next to the sources, where an editable installation looks as well."""
        del version
        builder = self._builder()
        try:
            command = builder.compiler()
            if command is None:
                raise RuntimeError("there is no C compiler (cc, gcc or clang)")
            builder.compile_library(command)
        except (RuntimeError, OSError) as error:
            self.app.display_warning(f"perdure: installed without native kernels, which is slower: {error}")
            builder.LIBRARY.unlink(missing_ok=True)  # an older library may not fit these sources
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"  # the library does not depend on Python's version
        build_data["artifacts"].append(str(builder.LIBRARY.relative_to(self.root)))

    def _builder(self) -> ModuleType:
        """The module that compiles; perdure itself is not yet installed."""
        path = Path(self.root) / "src" / "perdure" / "networks" / "native" / "build.py"
        spec = importlib.util.spec_from_file_location("perdure_native_build", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def _zig_exists() -> bool:
    return sys.platform in ZIG_SYSTEMS and platform.machine().lower() in ZIG_MACHINES


def _platform_tag() -> str:
    """The plain tag of this platform: the library is linked with this machine's own system libraries."""
    from packaging.tags import platform_tags

    return next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
