"""Shared fixtures. `pytest --renew` writes the golden outputs anew instead of comparing them.

Where torch is not installed (`make test-pythons`), what needs it is skipped: files that import it
or what comes with it, and tests marked `torch`, whose child processes do.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is slow, which is no failure.
settings.register_profile("memfit", deadline=None)
settings.load_profile("memfit")
# A shell starts what runs in the background with Ctrl-C ignored, nohup ignores SIGHUP, and children
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


HAS_TORCH = find_spec("torch") is not None
WITH_TORCH = {
    *("cloudpickle", "gymnasium", "optuna", "pyboy", "pygame"),
    *("skrl", "stable_baselines3", "torch"),
}


@pytest.fixture(autouse=True)
def _no_told_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is as wide as in a pipe: Textual sets these for the whole process, and leaves them."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


class BareModule(pytest.Module):
    """A file of tests where torch is missing."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Skip the file if it imports what is not there."""
        try:
            return super().collect()
        except self.CollectError as error:
            missing = error.__cause__
            if isinstance(missing, ModuleNotFoundError) and missing.name in WITH_TORCH:
                pytest.skip(f"needs {missing.name}", allow_module_level=True)
            raise


if not HAS_TORCH:

    def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
        return BareModule.from_parent(parent, path=module_path)

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("torch"):
                item.add_marker(pytest.mark.skip(reason="its child needs torch"))

    def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
        passed = terminalreporter.stats.get("passed", [])
        rooms = Counter(Path(report.nodeid.split("::")[0]).parts[1] for report in passed)
        told = ", ".join(f"{room} {count}" for room, count in sorted(rooms.items()))
        terminalreporter.write_line(f"{len(passed)} tests ran without torch: {told}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="write the golden outputs anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file of that name in the test's `golden` directory."""
    directory = Path(str(request.path)).parent / "golden"

    def compare(name: str, text: str) -> None:
        file = directory / name
        if request.config.getoption("--renew"):
            directory.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"{name} is missing: run pytest --renew"
        assert text == file.read_text(encoding="utf-8"), f"{name} changed: run pytest --renew"

    return compare
