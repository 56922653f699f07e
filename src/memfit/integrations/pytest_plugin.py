"""A pytest plugin: tests with a limit of memory, and tests that must not leak.

    @pytest.mark.memfit_limit("200 MiB")
    @pytest.mark.memfit_no_leak(calls=200)

It comes with memfit and does nothing unless asked: `pytest --memfit`, or `memfit = true` in the ini
file. Loading it loads nothing else.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

_MARKERS = (
    "memfit_limit(size): the test fails if it adds more memory than this, such as '200 MiB'",
    "memfit_no_leak(calls=200): the test is called again and again, and fails if that leaks",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option, and the same in the ini file."""
    group = parser.getgroup("memfit")
    group.addoption("--memfit", action="store_true", help="check memory: memfit_limit and _no_leak")
    parser.addini("memfit", "check memory as the markers memfit_... say", type="bool")


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, whether they do something or not."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)


def _is_on(config: pytest.Config) -> bool:
    return bool(config.getoption("memfit", False) or config.getini("memfit"))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Around each call of a test: nothing where it is not marked."""
    limit = pyfuncitem.get_closest_marker("memfit_limit")
    leak = pyfuncitem.get_closest_marker("memfit_no_leak")
    if not (limit or leak) or not _is_on(pyfuncitem.config):
        return (yield)
    from memfit.errors import MemfitError
    from memfit.integrations import checked_calls

    try:
        if limit is not None:
            most = checked_calls.limit_of(limit.args, limit.kwargs)
            meter = checked_calls.Added()
            result = yield
            problem = meter.problem(most)
        else:
            result = yield
            problem = ""
        if leak is not None and not problem:
            names = pyfuncitem._fixtureinfo.argnames
            given = {name: pyfuncitem.funcargs[name] for name in names}
            calls = checked_calls.calls_of(leak.args, leak.kwargs)
            problem = checked_calls.leak_of(lambda: pyfuncitem.obj(**given), calls)
    except MemfitError as error:
        pytest.fail(f"memfit: {error}", pytrace=False)
    if problem:
        pytest.fail(f"{pyfuncitem.name} {problem}", pytrace=False)
    return result
