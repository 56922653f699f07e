"""The full-screen live view, on Textual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from rich.text import Text as RichText
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from memfit.errors import visible_line
from memfit.model import Frame
from memfit.render.blocks import Block
from memfit.render.terminal import to_text
from memfit.render.watch import curve, frame_line, row_bars, scale
from memfit.units import format_bytes

_BAR = 30
_LEAST_ROWS, _BESIDE = 3, 9  # lines of rows, and lines of everything but rows and processes
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
    #line { height: auto; padding: 0 1; text-style: bold; }
    #curve { height: auto; padding: 0 1; color: $accent; }
    #targets { height: auto; padding: 0 1; }
    #rows { height: auto; padding: 1 1; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
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

    def compose(self) -> ComposeResult:
        yield Static(id="line", markup=False)
        yield Static(id="curve", markup=False)
        yield Static(id="targets", markup=False)
        yield Static(id="rows", markup=False)
        table: DataTable[Any] = DataTable(id="processes", cursor_type="row")
        yield table
        yield Footer()

    def on_mount(self) -> None:
        self.title = "memfit watch"
        self.query_one(DataTable).add_columns("PID", "memory", "threads", "command")
        self.refresh_frame()
        self.set_interval(self.seconds, self.refresh_frame)

    def refresh_frame(self) -> None:
        """Show what there is now, unless frozen."""
        if self.frozen:
            return
        self.latest = self.next_frame()
        self.show(self.latest)

    def show(self, frame: Frame) -> None:
        """Fill the panels."""
        width = max(10, self.size.width - 2)
        self.query_one("#line", Static).update(frame_line(frame))
        drawn = f"{curve(frame.readings, width)}\n{scale(frame.readings)}"
        self.query_one("#curve", Static).update(drawn)
        self.query_one("#targets", Static).update(
            "   ".join(
                f"{t.name}: {t.found} of {t.wanted} {'met' if t.met else 'MISSED'}"
                for t in frame.targets
            )
        )
        most = max(_LEAST_ROWS, (self.size.height - _BESIDE) // 2)  # as much for processes
        rows = row_bars(frame).bars[:most]
        wide = max((len(bar.label) for bar in rows), default=0)
        self.query_one("#rows", Static).update(
            "\n".join(
                f"{bar.label:<{wide}}  {bar.amount:>9}  {'█' * max(1, round(_BAR * bar.share))}"
                for bar in rows
            )
        )
        self._fill(frame)

    def _fill(self, frame: Frame) -> None:
        table = self.query_one(DataTable)
        at = table.cursor_row
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
                str(process.threads),
                RichText(visible_line(process.name[:120])),  # a plain text would be markup
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
        blocks = self.explanation(pid)
        self.push_screen(Explained(to_text(blocks, width=max(60, self.size.width - 4))))

    def on_data_table_row_selected(self) -> None:
        """Enter on a row."""
        self.action_explain()
