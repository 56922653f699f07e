"""Runs what stands in the blocks of a page, in a folder that has the examples in it.

Files that pages take for granted are made when a command names them. `4711` stands for the PID of
a training that runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.blocks import EXAMPLES, Block, Line

PID = re.compile(r"\b4711\b")
TRAINING = ["dqn_images.py", "--steps", "100_000_000"]
TRAINS_ABOVE = 300 * 2**20  # it has imported all, and learns
# How files are made that a page names and does not make itself.
GIVEN = {
    "night.db": "memfit run -q -o night.db -- python train.py",
    "plan.json": "memfit plan train.py --format json -o plan.json",
}
# What would change the machine that tests, or run the tests again: tests/docs/test_blocks.py looks
# at what it names.
NOT_HERE = ("pip install", "make ")
# What a command of memfit says of its target is no failure of the command.
ANSWERS = {0, 3, 4, 5}
# Commands that depend on their words and the examples alone, and make at most the file after -o:
# run once, however many pages show them.
ALONE = re.compile(r"memfit (?:plan|check|profile|sweep|explain \d|run .*-o )(?!.*baseline)")
PATIENCE = 400


def environment() -> dict[str, str]:
    """This interpreter's programs first, and one thread, since others compute as well."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}


def run(command: str, folder: Path) -> tuple[int, str]:
    """Exit code and all output; whatever is left running is ended."""
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


@dataclass(kw_only=True)
class Runner:
    """Runs blocks of pages; what is costly is shared by all pages."""

    store: Path
    told: dict[str, tuple[int, str]] = field(default_factory=dict)
    made: dict[str, Path] = field(default_factory=dict)
    training: subprocess.Popen[bytes] | None = None

    def folder(self, place: Path) -> Path:
        """A folder for a page, with the examples."""
        return Path(shutil.copytree(EXAMPLES, place / "ex"))

    def failures(self, block: Block, folder: Path) -> Iterator[str]:
        """What is wrong with the commands of a block and what they print."""
        for line in block.lines:
            if line.command.startswith(NOT_HERE):
                continue
            for name, made in GIVEN.items():
                makes_it = f"-o {name}" in line.command
                if name in line.command and not makes_it and not (folder / name).exists():
                    self.asked(made, folder)
            yield from _wrong(block, line, *self.asked(self._with_pid(line.command), folder))

    def asked(self, command: str, folder: Path) -> tuple[int, str]:
        """Exit code and output of a command; what was asked before is not asked again."""
        command = re.sub(r"\s+#.*", "", command)
        if not ALONE.match(command):
            return run(command, folder)
        output_file = re.search(r" -o (\S+)", command.split(" -- ", maxsplit=1)[0])
        if command not in self.told:
            self.told[command] = run(command, folder)
            if output_file and (folder / output_file[1]).exists():
                self.made[command] = self.store / f"{len(self.made)}-{output_file[1]}"
                shutil.copy(folder / output_file[1], self.made[command])
        elif output_file and command in self.made:
            shutil.copy(self.made[command], folder / output_file[1])
        return self.told[command]

    def _with_pid(self, text: str) -> str:
        if not PID.search(text):
            return text
        if self.training is None:
            command = [sys.executable, *TRAINING]
            self.training = subprocess.Popen(command, cwd=EXAMPLES, env=environment())
            patience = time.monotonic() + 120
            while _resident(self.training.pid) < TRAINS_ABOVE and time.monotonic() < patience:
                time.sleep(0.5)
        return PID.sub(str(self.training.pid), text)

    def python_failure(self, found: list[Block], folder: Path) -> str:
        """What is wrong with the Python of a page, all blocks in one process; empty if nothing."""
        parts = [(str(block), self._with_pid(f"{block.given}\n{block.text}")) for block in found]
        (folder / "blocks_of_page.json").write_text(json.dumps(parts), encoding="utf-8")
        (folder / "blocks_of_page.py").write_text(PYTHON, encoding="utf-8")
        code, output = run("python blocks_of_page.py", folder)
        return f"exit code {code}:\n{output[-3000:]}" if code else ""

    def close(self) -> None:
        """End the training of `4711`."""
        if self.training is not None:
            self.training.kill()
            self.training.wait()


PYTHON = """
import json
import linecache

if __name__ == "__main__":
    for place, text in json.load(open("blocks_of_page.json")):
        print(place, flush=True)
        linecache.cache[place] = (len(text), None, text.splitlines(True), place)
        exec(compile(text, place, "exec"), globals())
"""


def _resident(pid: int) -> int:
    told = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8")
    return int(told.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _wrong(block: Block, line: Line, code: int, output: str) -> Iterator[str]:
    told = f"{block}: {line.command}\n"
    expected = re.search(r"#.*exit code (\d+)", line.command)
    if code not in ({int(expected[1])} if expected else ANSWERS):
        yield f"{told}exit code {code}:\n{output[-3000:]}"
    other = set(line.shown.splitlines()) - {"...", ""} - set(output.splitlines())
    if other and line.command.startswith("memfit check "):  # the same on every machine
        yield f"{told}shows {other}, which it does not say:\n{output[-3000:]}"
    missing = _words(line.shown) - _words(output)
    if len(missing) > 0.1 * len(_words(line.shown)):
        yield f"{told}shows {sorted(missing)}, which it does not say:\n{output[-3000:]}"


def _words(text: str) -> set[str]:
    """Words without figures, which differ from machine to machine."""
    return set(re.findall(r"[A-Za-z][A-Za-z_]{2,}", text))
