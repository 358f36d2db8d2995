"""The live display: one run on a terminal, redrawn repeatedly."""

from __future__ import annotations

import time
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from search.core import quantity
from search.core.events import Event, Stopped
from search.display.scoreboard import Scoreboard

TRYING = 4  # candidates shown
FRAMES = 8  # frames per second
BAR = 40


class Live:
    """A panel with progress, times, candidates in evaluation, and failures. Each ended run leaves a
    line above it."""

    def __init__(self, stream: TextIO):
        self.console = Console(file=stream, highlight=False)
        self.board = Scoreboard()
        self.title = ""
        self.since = time.monotonic()
        self._screen = Screen(
            console=self.console,
            get_renderable=self._panel,
            refresh_per_second=FRAMES,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Live:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.stop()

    def begin(self, number: int, count: int, title: str) -> None:
        """Starts a new panel."""
        self.board = Scoreboard()
        self.title = f"{title}  ({number} of {count})" if count > 1 else title
        self.since = time.monotonic()

    def on_event(self, event: Event) -> None:
        """Records an event for the next frame."""
        self.board.on_event(event)
        if isinstance(event, Stopped):
            self.console.print(self._ended(event))

    def say(self, text: str) -> None:
        """Prints a line above the panel."""
        self.console.print(Text(text))

    def _ended(self, event: Stopped) -> Text:
        board = self.board
        return Text.assemble(
            (f"{self.title}  ", "bold"),
            f"{quantity.time(board.first_us)} -> ",
            (quantity.time(board.best_us), "bold cyan"),
            f" {self._obtained()}  ",
            f"{quantity.factor(quantity.ratio(board.first_us, board.best_us))}, "
            f"{quantity.share(board.roofline_share)} of the roofline; {event.reason}",
        )

    def _panel(self) -> Panel:
        parts: list[RenderableType] = [
            self._progress(),
            self._times(),
            Text(""),
            self._trying(),
            self._failures(),
        ]
        return Panel(Group(*parts), title=Text(self.title, "bold"), title_align="left")

    def _progress(self) -> Table:
        most = self.board.started.settings.evaluations if self.board.started else None
        row = Table.grid(padding=(0, 2))
        row.add_row(
            ProgressBar(total=most or 1, completed=self.board.told, width=BAR, pulse=not most),
            f"{self.board.told}/{most}" if most else f"{self.board.told}",
            quantity.duration(time.monotonic() - self.since),
        )
        return row

    def _times(self) -> Table:
        board = self.board
        bound = board.started.roofline_us if board.started else None
        table = Table.grid(padding=(0, 2))
        over_first = quantity.factor(quantity.ratio(board.first_us, board.best_us))
        over_plain = quantity.factor(quantity.ratio(board.plain_us, board.best_us))
        share = quantity.share(board.roofline_share)
        best = Text(quantity.time(board.best_us), "bold cyan")
        table.add_row(Text("best", "bold"), best, self._obtained())
        kind = f"{board.kind}, " if board.kind else ""
        table.add_row("first", quantity.time(board.first_us), f"{kind}{over_first} to the best")
        table.add_row("plain", quantity.time(board.plain_us), f"{kind}{over_plain} to the best")
        table.add_row("roofline", quantity.time(bound), f"computed, {share} reached")
        return table

    def _obtained(self) -> str:
        """How the best was obtained: `simulated, correct by simulator`."""
        best = self.board.best
        return f"{self.board.kind}, correct by {best.evaluation.correct_by}" if best else ""

    def _trying(self) -> Table:
        trying = list(self.board.trying.items())
        # Only edits are cut: with minimum widths alone the other columns would leave them no space.
        operators = [candidate.origin.operator for _, candidate in trying[:TRYING]]
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(no_wrap=True, min_width=max((len(f"#{n}") for n, _ in trying), default=0))
        table.add_column(no_wrap=True, min_width=max(map(len, operators), default=0))
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        if self.board.started is None:
            table.add_row("", Text("computing references, starting workers", "dim"), "")
        for number, candidate in trying[:TRYING]:
            edits = Text(self.board.edits(candidate))
            table.add_row(Text(f"#{number}", "dim"), candidate.origin.operator, edits)
        while table.row_count < TRYING:
            table.add_row("", "", "")
        return table

    def _failures(self) -> Text:
        board = self.board
        if not board.failures:
            return Text("no failures", "dim", no_wrap=True, overflow="ellipsis")
        counts = ", ".join(f"{stage} {n}" for stage, n in board.failures.items())
        said = f"failed at {counts}; last: {board.last_failure}"
        return Text(said, "red", no_wrap=True, overflow="ellipsis")
