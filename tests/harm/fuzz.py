"""Specs and command lines of a generator: each is taken as it is written or refused in words."""

from __future__ import annotations

import contextlib
import io
import random
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from memfit.cli.app import main
from memfit.errors import UsageError, visible
from memfit.sources import spec
from tests.cli.test_bad_spec import SPEC
from tests.measure.record import crafted_recordings

ODD_VALUES = (
    *("0", "-1", "1", "7", "1e9", "2.5", "nan", "inf", "9" * 18, "9" * 30, "true", '""', '"x"'),
    *("[]", "[[]]", "[0]", "[-1, 2]", "{}", "{ a = 1 }", "1979-05-27", '"\\u001b[2J"', "''"),
    *('"n_envs * "', '"n_envs ** 9 ** 9"', '"__import__(1)"', '"99TiB"', "[1, 'x', {}]"),
    f"[{'[' * 60}{']' * 60}]",
)
ODD_WORDS = (
    *("", " ", "-", "--", "-x", "--nonsense", "x", "0", "-1", "1e9", "9" * 30, "nan", "16GiB"),
    *(
        "10s",
        "0s",
        "\x1b[2J\x1b]0;title\x07",
        "\u202egnp",
        "\ud800",
        "a\nb",
        "x" * 300,
        "y/" * 3000,
    ),
    *(
        "/",
        ".",
        "..",
        "/dev/null",
        "/dev/full",
        "none.py",
        "none.toml",
        "none.db",
        "m:f",
        "%s{}{0}",
    ),
    *("n=1..3", "n=1,2", "n=3..1", "n=1..99999999999", "json", "md", "--format", "~", "*", "$(x)"),
)
_OPTIONS = {
    "plan": ("--format", "--limit", "--set", "--per", "--timeout", "--probe", "-o", "-q", "--no"),
    "sweep": ("--over", "--limit", "--format", "--timeout", "-o", "-q"),
    "run": ("--limit", "--grace", "-o", "--no-file", "-q"),
    "explain": ("--no-inside", "--no-children", "--for", "--limit", "--format", "-o", "--attach"),
    "watch": ("--every", "--limit", "--ram", "--threads", "--total", "--format", "-o"),
    "compare": ("--format", "-o"),
    "demo": ("--steps", "-q"),
    "nonsense": (),
}
_GOOD_WORDS = ("--no-inside", "--format=json", "--format=md", "--limit=16GiB", "--no-file", "-q")
_CODES = range(6)


def fuzzed_spec(seed: int) -> bytes:
    """A spec of memfit's own with other values, keys, lines or bytes."""
    draw = random.Random(seed)
    shipped = sorted(spec.SHIPPED.glob("*.toml"))
    texts = [SPEC, *(file.read_text() for file in shipped)]
    lines = [line for line in draw.choice(texts).splitlines() if line.strip()]
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        _change_line(lines, draw)
    data = "\n".join(lines).encode()
    if draw.random() < 0.1:
        at = draw.randrange(len(data))
        data = data[:at] + bytes([draw.randrange(256)]) + data[at + draw.choice((0, 1, 30)) :]
    return data


def _change_line(lines: list[str], draw: random.Random) -> None:
    at, way = draw.randrange(len(lines)), draw.random()
    name, equal, value = lines[at].partition("=")
    if way < 0.1 and len(lines) > 1:
        del lines[at]
    elif way < 0.2:
        lines.insert(draw.randrange(len(lines)), lines[at])
    elif way < 0.3:
        lines[at] = f"{name.strip()[1:] or 'x'} {equal} {value}"
    elif way < 0.4:
        lines.insert(
            at, f"{draw.choice(('colour', 'n_envs', 'schema'))} = {draw.choice(ODD_VALUES)}"
        )
    elif way < 0.7 and (numbers := list(re.finditer(r"\d+", value))):
        found = draw.choice(numbers)
        other = int(found.group()) * draw.choice((0, 2, 10, 10**6, 10**12)) + draw.randrange(2)
        lines[at] = f"{name}={value[: found.start()]}{other}{value[found.end() :]}"
    else:
        lines[at] = f"{name}= {draw.choice(ODD_VALUES)}"


def specs(seeds: range, folder: Path) -> Counter[str]:
    """How the specs of these seeds are taken."""
    outcomes: Counter[str] = Counter()
    path = folder / "run.toml"
    for seed in seeds:
        path.write_bytes(fuzzed_spec(seed))
        try:
            facts = spec.load(path)
        except UsageError:
            code, said = told(["plan", str(path)], folder)
            assert code == 2 and said.startswith("memfit: "), (seed, said)
            assert "Traceback" not in said and visible(said) == said, (seed, said)
            outcomes["refused"] += 1
            continue
        knobs = tomllib.loads(path.read_text())["knobs"]
        assert {name: facts["knobs"][name] for name in knobs} == knobs, seed
        outcomes["taken"] += 1
    return outcomes


def command_line(seed: int, known: Sequence[str]) -> list[str]:
    """Words as somebody could type them; `known` are targets that are there."""
    draw = random.Random(seed)
    command = draw.choice(sorted(_OPTIONS))
    words = [command]
    odd = ODD_WORDS if draw.random() < 0.7 else _GOOD_WORDS
    for _ in range(draw.randrange(4)):
        words.append(draw.choice((*_OPTIONS[command], draw.choice(odd))))
        if draw.random() < 0.6:
            words.append(draw.choice((*known, *odd)))
    for _ in range(draw.choice((0, 1, 1, 2))):
        words.insert(1, draw.choice((*known, draw.choice(odd))))
    if command in ("watch", "nonsense"):
        words.append("--once")
    if command == "demo":  # not a whole training
        words.insert(1, "nonsense")
    if command in ("run", "sweep"):
        words = [word for word in words if word != "--"]
        words += ["--", *draw.choice((("true",), ("false",), ("no such program",), (), ("",)))]
    return [word for word in words if word.isascii() or draw.random() < 0.9]


def command_lines(seeds: range, folder: Path) -> Counter[int]:
    """How memfit ends with the words of these seeds."""
    outcomes: Counter[int] = Counter()
    crafted_recordings.good(folder / "good.db")
    (folder / "empty.py").touch()
    with contextlib.chdir(folder), subprocess.Popen(["sleep", "10000"]) as sleeping:
        known = (str(sleeping.pid), "good.db", "good.db", "run.toml")
        try:
            for seed in seeds:
                words = command_line(seed, known)
                code, said = told(words, folder)
                assert code in _CODES or words[0] == "run", (seed, words, code)
                assert visible(said) == said and "Traceback" not in said, (seed, words, said)
                assert code != 2 or said, (seed, words)
                outcomes[code] += 1
        finally:
            sleeping.kill()
    return outcomes


def told(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """The exit code of a command line, and what it says on standard error."""
    with (
        open(folder / "stderr", "w+", errors="surrogateescape") as err,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(err),
    ):
        code = main(list(words))
        err.seek(0)
        return code, err.read()
