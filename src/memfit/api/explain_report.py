"""`explain` of a report: the result that a page carries, to be shown again in any format."""

from __future__ import annotations

from pathlib import Path

from memfit.errors import UsageError
from memfit.render import Report, check_data, is_report, read_report
from memfit.render.result_json import SCHEMA
from memfit.units import format_bytes

_MOST_BYTES = 2**26  # of a page; memfit's own stay below 6 MB


def is_report_file(path: Path | str) -> bool:
    """Whether a file is a page."""
    try:
        with Path(path).open("rb") as file:
            return is_report(file.read(100))
    except OSError:
        return False


def report(path: Path | str) -> Report:
    """Read the result that a page carries; nothing of the page is run."""
    size = Path(path).stat().st_size
    if size > _MOST_BYTES:
        raise UsageError(
            f"{path} has {format_bytes(size)}, which no report has: give a file that was written "
            "with --format html"
        )
    try:
        found = read_report(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}. Choose another file") from error
    schema = found.data.get("schema")
    if type(schema) is int and schema > SCHEMA:
        raise UsageError(f"{path} was written by a newer memfit (schema {schema}): update memfit")
    try:
        check_data(found.data)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise UsageError(
            f"{path} carries a result that memfit did not write so: give a page as it was written"
        ) from None
    return found
