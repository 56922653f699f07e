"""The full-screen live view, on Textual."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from rich.text import Text as RichText
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from memfit.errors import MemfitError, visible_line
from memfit.model import Frame
from memfit.render.blocks import Block
from memfit.render.chart import chart
from memfit.render.terminal import to_text
from memfit.render.watch import frame_now, outlook_text, row_bars, rows_age
from memfit.units import format_bytes, shortened

_BAR = 30
_CURVE, _HIGHEST = 5, 14  # lines of the curve: at least, at most
_PROCESSES, _LEAST_ROWS = 4, 2  # lines of processes with their head, and of rows
_FIXED = 3  # lines: of the time below the curve, between panels, and of keys
_BESIDE_NAME = 32  # columns of everything but a process's name
ORDERS = ("memory", "threads", "PID")


class Explained(ModalScreen[None]):
    """An explanation over the live view; any key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,e,enter", "dismiss", "back")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self.text, markup=False)
        yield Footer()


class WatchApp(App[None]):
    """Frames, one after the other, until the user or the target ends it."""

    CSS = """
    Static { height: auto; padding: 0 1; }
    #line { text-style: bold; }
    #curve { color: $accent; }
    #rows { padding: 0 1 1 1; }
    DataTable { height: 1fr; min-height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("s", "sort", "sort"),
        Binding("f,space", "freeze", "freeze"),
        Binding("e,enter", "explain", "explain"),
    ]

    def __init__(
        self,
        frame: Callable[[], Frame],
        explain: Callable[[int], list[Block]] | None,
        *,
        seconds: float = 1.0,
    ) -> None:
        super().__init__()
        self.next_frame = frame
        self.explanation = explain
        self.seconds = seconds
        self.order = 0
        self.frozen = False
        self.latest: Frame | None = None
        self.failure: MemfitError | None = None  # why nothing can be read any more
        self._reading = False

    def compose(self) -> ComposeResult:
        for panel in ("line", "forecast", "curve", "targets", "rows"):
            yield Static("reading ..." if panel == "line" else "", id=panel, markup=False)
        table: DataTable[Any] = DataTable(id="processes", cursor_type="row")
        yield table
        yield Footer()

    def on_mount(self) -> None:
        self.title = "memfit watch"
        self.query_one(DataTable).add_columns("PID", "memory", "threads", "command")
        self.refresh_frame()
        self.set_interval(self.seconds, self.refresh_frame)

    def refresh_frame(self) -> None:
        """Read what there is now, unless frozen; keys are answered meanwhile."""
        if not self.frozen and not self._reading and not (self.latest and self.latest.ended):
            self._reading = True
            self._beside(self._read)

    def _beside(self, work: Callable[[], None]) -> None:
        """Do this in a thread that nobody waits for, also not where the view is left meanwhile."""
        threading.Thread(target=work, daemon=True).start()

    def _tell(self, what: Callable[..., Any], *told: Any) -> None:
        with suppress(RuntimeError):  # the view is left
            self.call_from_thread(what, *told)

    def _read(self) -> None:
        try:
            frame = self.next_frame()
        except MemfitError as error:  # a recording that is gone
            self.failure = error
            self._tell(self.exit)
        else:
            self._tell(self._take, frame)
        finally:
            self._reading = False

    def _take(self, frame: Frame) -> None:
        if not self.frozen:
            self.latest = frame
            self.show(frame)

    def on_resize(self) -> None:
        """Draw what is there in the new size."""
        if self.latest is not None:  # its panels have their new sizes only then
            self.call_after_refresh(self.show, self.latest)

    def show(self, frame: Frame) -> None:
        """Fill the panels: the curve takes what the others leave."""
        width, room = max(10, self.size.width - 2), self.size.height - _FIXED - _PROCESSES
        texts = {
            "line": ("ended; " if frame.ended else "") + frame_now(frame),
            "forecast": "\n".join([outlook_text(frame), *frame.notes[:1]]),
            "targets": "   ".join(
                f"{t.name}: {t.found} of {t.wanted} {'met' if t.met else 'MISSED'}"
                for t in frame.targets
            ),
        }
        for panel, text in texts.items():
            shown = self.query_one(f"#{panel}", Static)
            shown.display = bool(text)
            shown.update(text)
            room -= sum(-(-len(line) // width) for line in text.splitlines())
        height = max(_CURVE if room >= _CURVE + _LEAST_ROWS else 3, min(_HIGHEST, room // 3))
        drawn = chart(frame.readings, width, height, frame.limit.bytes)
        self.query_one("#curve", Static).update("\n".join(drawn))
        most = max(_LEAST_ROWS, (room - height) // 2)  # as much for processes
        rows = row_bars(frame).bars[:most]
        wide = max((len(bar.label) for bar in rows), default=0)
        lines = [
            f"{bar.label:<{wide}}  {bar.amount:>9}  {'█' * max(1, round(_BAR * bar.share))}"
            for bar in rows
        ]
        if lines:
            lines[0] += rows_age(frame)
        self.query_one("#rows", Static).update("\n".join(lines))
        self._fill(frame)

    def _fill(self, frame: Frame) -> None:
        table = self.query_one(DataTable)
        at, name = table.cursor_row, max(20, self.size.width - _BESIDE_NAME)
        table.clear()
        keys: list[Callable[[Any], Any]] = [
            lambda p: -p.bytes,
            lambda p: -p.threads,
            lambda p: p.pid,
        ]
        for process in sorted(frame.processes, key=keys[self.order]):
            table.add_row(
                str(process.pid),
                format_bytes(process.bytes),
                str(process.threads or ""),  # they are not recorded
                RichText(shortened(visible_line(process.name), name)),  # a text would be markup
                key=str(process.pid),
            )
        if table.row_count:
            table.move_cursor(row=min(at, table.row_count - 1))

    def action_sort(self) -> None:
        """Sort by memory, then by threads, then by PID."""
        self.order = (self.order + 1) % len(ORDERS)
        self.notify(f"sorted by {ORDERS[self.order]}")
        if self.latest is not None:
            self.show(self.latest)

    def action_freeze(self) -> None:
        """Hold the picture, or let it go on."""
        self.frozen = not self.frozen
        self.notify("frozen" if self.frozen else "live")

    def action_explain(self) -> None:
        """Explain the process under the cursor."""
        table = self.query_one(DataTable)
        if self.explanation is None or not table.row_count:
            return
        pid = int(table.get_row_at(table.cursor_row)[0])
        self.notify(f"explaining {pid}")
        self._beside(lambda: self._explain(pid))

    def _explain(self, pid: int) -> None:
        """What is said of a process; where nothing can be, why."""
        assert self.explanation is not None
        try:
            text = to_text(self.explanation(pid), width=max(60, self.size.width - 4))
        except MemfitError as error:  # it has ended meanwhile
            text = str(error)
        self._tell(self.push_screen, Explained(text))

    def on_data_table_row_selected(self) -> None:
        """Enter on a row."""
        self.action_explain()
