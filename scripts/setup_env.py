# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Makes `.venv`: pinned packages and this package, built and installed editable.

`make setup` runs it. It uses nothing beyond the standard library and does only what is out of date.
Two fingerprints, kept in the environment, decide that: `environment` covers the pins and the
interpreter, `native` covers the C++ sources as well. A fingerprint is erased before its work starts
and written once that has succeeded, so an interrupted run is taken up again.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "setup-stamp.json"
REQUIREMENTS = ROOT / "requirements"
MINIMUM_PYTHON = (3, 10)
# The interpreter below any active environment, which may be the very one to be made anew.
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
# Packages that go with one build of torch: the system's torch brings the system's versions of them.
TORCH_COMPANIONS = ("torch", "triton", "nvidia-", "cuda-")


def main() -> int:
    """Brings `.venv` up to date and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--system-site",
        action="store_true",
        help="let the environment see the packages of the base Python, and use its torch",
    )
    parser.add_argument(
        "--torch-index",
        metavar="URL",
        help="an extra package index to take torch from (for example one that has CPU builds)",
    )
    options = parser.parse_args()
    if sys.version_info < MINIMUM_PYTHON:
        return _fail(
            f"Python {sys.version.split()[0]} is too old, 3.10 is the oldest that works; "
            "name another one: make setup PYTHON=python3.11"
        )
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / ".setup-lock", "w") as lock:
        # Two makes at once take turns; the second then finds everything done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            # An environment that sees the base Python's packages goes on seeing them.
            system_site = options.system_site or _sees_system_packages()
            _bring_up_to_date(system_site, options.torch_index)
        except subprocess.CalledProcessError as error:
            return _fail(f"this command failed with status {error.returncode}: {_shown(error.cmd)}")
    return 0


def _bring_up_to_date(system_site: bool, torch_index: str | None) -> None:
    constraints = REQUIREMENTS / (
        "constraints.txt" if sys.version_info >= (3, 11) else "constraints-py310.txt"
    )
    # The path is part of it: an environment holds absolute paths, so a moved copy starts afresh.
    identity = f"{sys.version} {os.path.realpath(BASE_PYTHON)} {ROOT} {system_site} {_has_gpu()}"
    environment = _fingerprint(
        identity,
        [
            constraints,
            REQUIREMENTS / "build.txt",
            REQUIREMENTS / "dev.txt",
            ROOT / "pyproject.toml",
            Path(__file__),
        ],
    )
    native = _fingerprint(environment, _native_sources())
    done = _read_stamp()
    environment_stands = done.get("environment") == environment and PYTHON.exists()
    if environment_stands and done.get("native") == native and _extension_loads():
        return

    started = time.monotonic()
    if not environment_stands:
        _make_venv(done, system_site)
        STAMP.unlink(missing_ok=True)
        if system_site:
            constraints = _constraints_for_system_torch(constraints)
        _install_packages(constraints, torch_index, system_site)
        _install_self("-c", str(constraints))
    else:
        _write_stamp(environment=environment)
        _install_self("--no-deps")
    if not _extension_loads():
        raise subprocess.CalledProcessError(1, [str(PYTHON), "-c", "import tensorrt_llm.bindings"])
    _write_stamp(environment=environment, native=native, root=str(ROOT))
    _say(f"ready in {time.monotonic() - started:.0f} s: {PYTHON.relative_to(ROOT)}")


def _fingerprint(seed: str, files: Iterable[Path]) -> str:
    """Digest over a text and the names and contents of files."""
    digest = hashlib.sha256(seed.encode())
    for file in files:
        content = file.read_bytes()
        digest.update(f"\n{file.relative_to(ROOT)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _native_sources() -> list[Path]:
    """Everything the extension module is built from, which the C++ tests are not."""
    tests = ROOT / "cpp" / "tests"
    sources = [p for p in (ROOT / "cpp").rglob("*") if p.is_file() and tests not in p.parents]
    return sorted([ROOT / "CMakeLists.txt", *sources])


def _read_stamp() -> dict[str, str]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _write_stamp(**entries: str) -> None:
    STAMP.write_text(json.dumps(entries, indent=2) + "\n")


def _has_gpu() -> bool:
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def _extension_loads() -> bool:
    command = [str(PYTHON), "-c", "import tensorrt_llm.bindings"]
    # Outside the source folder, so that only an installed package counts.
    return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0


def _sees_system_packages() -> bool:
    try:
        return "include-system-site-packages = true" in (VENV / "pyvenv.cfg").read_text()
    except OSError:
        return False


def _venv_is_usable(done: dict[str, str], system_site: bool) -> bool:
    """Whether the present environment can be brought up to date rather than made anew."""
    if done.get("root", str(ROOT)) != str(ROOT) or not PYTHON.exists():
        return False
    question = "import sys, pip; print(sys.version, sys.prefix)"
    answer = subprocess.run(
        [str(PYTHON), "-c", question], capture_output=True, text=True, check=False
    )
    same_python = answer.stdout.strip() == f"{sys.version} {VENV}"
    return same_python and _sees_system_packages() == system_site


def _make_venv(done: dict[str, str], system_site: bool) -> None:
    if _venv_is_usable(done, system_site):
        return
    _say(f"making {VENV.relative_to(ROOT)} with Python {sys.version.split()[0]}")
    shutil.rmtree(VENV, ignore_errors=True)
    command = [BASE_PYTHON, "-m", "venv", str(VENV)]
    if system_site:
        command.append("--system-site-packages")
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode != 0:
        # Some systems ship venv without ensurepip; the base Python's own pip can then put pip in.
        _run([*command, "--without-pip", "--clear"])
        _run([BASE_PYTHON, "-m", "pip", "--python", str(PYTHON), "install", "-qq", "pip"])


def _install_packages(constraints: Path, torch_index: str | None, system_site: bool) -> None:
    build, dev = (str(REQUIREMENTS / name) for name in ("build.txt", "dev.txt"))
    _say("installing build and test packages")
    _pip("install", "-c", str(constraints), "-r", build, "-r", dev)
    if system_site:
        return
    extra = ["--extra-index-url", torch_index] if torch_index else []
    wanted = f"torch=={_pin(constraints, 'torch')}"
    if not _has_gpu() and sys.platform == "linux":
        _say(f"installing {wanted}, the CPU build (no NVIDIA GPU on this machine)")
        if _pip("install", "-c", str(constraints), *extra, f"{wanted}+cpu", check=False):
            return
        _say(
            "the package index has no CPU build of torch; taking its default build, which works "
            "but is larger (TORCH_INDEX=URL names an index that has a CPU build)"
        )
    _say(f"installing {wanted}")
    _pip("install", "-c", str(constraints), *extra, wanted)


def _constraints_for_system_torch(constraints: Path) -> Path:
    """Writes a copy of the constraints that keeps the base Python's torch and its companions."""
    question = "import torch; print(torch.__version__)"
    answer = subprocess.run(
        [BASE_PYTHON, "-c", question], capture_output=True, text=True, check=True
    )
    kept = [
        line
        for line in constraints.read_text().splitlines()
        if not line.startswith(TORCH_COMPANIONS)
    ]
    version = answer.stdout.strip()
    _say(f"using the base Python's torch {version}")
    copy = VENV / "constraints.txt"
    copy.write_text("\n".join([*kept, f"torch=={version}"]) + "\n")
    return copy


def _pin(constraints: Path, package: str) -> str:
    for line in constraints.read_text().splitlines():
        name, separator, version = line.partition("==")
        if separator and name == package:
            return version
    raise SystemExit(f"{constraints.relative_to(ROOT)} has no pin for {package}")


def _install_self(*arguments: str) -> None:
    _say("building and installing the package")
    _pip("install", "--no-build-isolation", *arguments, "-e", str(ROOT))


def _pip(*arguments: str, check: bool = True) -> bool:
    """Runs the environment's pip and returns whether it succeeded."""
    # Twice quiet: errors only, among them the compiler's output when the build fails.
    command = [str(PYTHON), "-m", "pip", "-qq", "--disable-pip-version-check", "--no-input"]
    return _run([*command, *arguments], check=check)


def _run(command: list[str], *, check: bool = True) -> bool:
    # The environment's cmake and ninja come first, whatever else the machine has.
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(VENV)}
    environment.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    quiet = None if check else subprocess.DEVNULL
    finished = subprocess.run(command, env=environment, cwd=ROOT, stderr=quiet, check=check)
    return finished.returncode == 0


def _shown(command: list[str]) -> str:
    return " ".join(str(part).replace(f"{ROOT}/", "") for part in command)


def _say(line: str) -> None:
    print(f"setup: {line}", flush=True)


def _fail(line: str) -> int:
    print(f"setup: {line}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
