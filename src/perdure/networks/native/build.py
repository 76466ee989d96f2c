"""Compile the C sweeps to a shared library next to this file: python -m perdure.networks.native.build.

The installation does the same (hatch_build.py). Every sweep is compiled for two precisions and several
instruction sets; which of them runs is decided when the library is loaded, by the processor's capabilities.
Only the standard library is imported here, since nothing else is available while perdure is being installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parent
CELLS = FOLDER.parent / "cells"
"""Each cell may have a header with its sweeps."""
SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
LIBRARY = FOLDER / f"_sweeps{SUFFIX}"

FLAGS = (
    "-std=gnu11", "-O3", "-g0", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-sanitize=undefined",
    "-ffp-contract=off",  # products and sums are fused only where the source says so
)  # fmt: skip
LEVELS: dict[str, tuple[str, ...]] = {
    "baseline": (),
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx2", "-mfma"),
}
"""Compiler flags of each instruction set, from the lowest; other than on x86-64 there is only the first."""
PRECISIONS: dict[str, tuple[str, ...]] = {"f32": (), "f64": ("-DPERDURE_DOUBLE",)}


def x86() -> bool:
    """Whether this is an x86-64 processor, which has several levels."""
    return platform.machine().lower() in ("x86_64", "amd64")


def levels() -> list[str]:
    """The instruction sets to compile for, from the lowest."""
    return list(LEVELS) if x86() else ["baseline"]


def sources() -> list[Path]:
    """All C files, in a fixed order."""
    return [*sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h")]), *cell_headers()]


def cell_headers() -> list[Path]:
    """The headers with the sweeps of the cells."""
    return sorted(CELLS.glob("*.h"))


def fingerprint() -> str:
    """A hash of the C files; the library contains the one it was built from."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:16]


def compiler() -> list[str] | None:
    """The command that compiles C: the system's own, else zig's from the package registry, else None."""
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name) is not None:
            return [name, *(["-march=x86-64"] if x86() else [])]  # whatever the compiler's default is
    if importlib.util.find_spec("ziglang") is not None:
        # Without this, zig compiles for the processor it runs on.
        return [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]
    return None


def compile_library(command: Sequence[str], target: Path = LIBRARY) -> None:
    """Build the library; it is put in place atomically."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = [
            ["-c", *_dispatch(), "-o", str(folder / "dispatch.o")],
            ["-c", str(FOLDER / "rows.c"), "-o", str(folder / "rows.o")],
        ]
        included = [f"-I{FOLDER}", *(word for path in cell_headers() for word in ("-include", str(path)))]
        for level in levels():
            for precision, define in PRECISIONS.items():
                flags = [*LEVELS[level], f"-DPERDURE_LEVEL={level}", *define]
                out = str(folder / f"{level}_{precision}.o")
                jobs.append(["-c", *flags, *included, str(FOLDER / "sweeps.c"), "-o", out])
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda job: _run([*command, *FLAGS, *job]), jobs))
        made = folder / LIBRARY.name
        objects = sorted(str(path) for path in folder.glob("*.o"))
        mathematics = [] if sys.platform == "win32" else ["-lm"]
        _run([*command, "-shared", *objects, *mathematics, "-o", str(made)])
        beside = target.with_name(f".{target.name}.new")
        shutil.copyfile(made, beside)
        beside.replace(target)


def _dispatch() -> list[str]:
    """Flags and source of the part that runs on any processor."""
    define = ["-DPERDURE_X86"] if x86() else []
    return [*define, f'-DPERDURE_SOURCES="{fingerprint()}"', str(FOLDER / "dispatch.c")]


def _run(command: Sequence[str]) -> None:
    """Run one command; its error output becomes the error."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


def main() -> int:
    """Compile, and report the result in one line."""
    command = compiler()
    if command is None:
        print("perdure: Nothing compiled: found no C compiler (cc, gcc, clang, or the package ziglang).")
        return 1
    compile_library(command)
    print(f"perdure: Compiled {LIBRARY.name} with {' '.join(command)}: {', '.join(levels())}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
