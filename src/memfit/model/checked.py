"""What a check of files or of a run came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from memfit.model.finding import Advice, Finding, Severity
from memfit.model.notebook import ShownInNotebooks

_ORDER = (Severity.INFO, Severity.WARNING, Severity.ERROR)


@dataclass(frozen=True, kw_only=True)
class Checked(ShownInNotebooks):
    """Findings of targets, in the order of the text.

    `files` were read, `ignored` findings were left out by comments. `advice` is only there for a
    run. `titles` says in a line what each code is about.
    """

    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    files: int
    ignored: int = 0
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity, the worst first."""
        found = Counter(finding.severity for finding in self.findings)
        return {str(s): found[s] for s in reversed(_ORDER) if found[s]}

    def reaches(self, severity: Severity) -> bool:
        """Whether any finding is as bad as this, or worse."""
        return any(_ORDER.index(f.severity) >= _ORDER.index(severity) for f in self.findings)
