"""Who works tells what is done, not what is about to be; who listens hears nothing of what others do."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from crowdveil.progress import ProgressFile, Step, count_progress, progress_listener, report_progress


def test_an_item_is_told_when_it_is_done_and_not_when_it_is_begun() -> None:
    events: list[str] = []
    with progress_listener(lambda step: events.append(str(step))):
        for item in count_progress("ab", "letters"):
            events.append(item)
    assert events == ["a", "1 of 2 letters", "b", "2 of 2 letters"]


def test_the_share_is_known_only_where_the_end_is() -> None:
    assert Step("rows", 3, 12).share == 0.25
    assert Step("rows", 3, 12, at_most=True).share is None
    assert Step("rows", 3).share is None
    assert Step("rows", 0, 0).share is None


def test_whoever_listened_before_listens_again_even_after_a_failure() -> None:
    outer: list[Step] = []
    with progress_listener(outer.append):
        with progress_listener(None):
            report_progress("parts", 1)
        with pytest.raises(ZeroDivisionError), progress_listener(None):
            raise ZeroDivisionError
        report_progress("whole", 1)
    report_progress("nobody", 1)
    assert outer == [Step("whole", 1)]


def test_a_file_tells_how_far_it_was_read_whatever_thread_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(b"x" * 3_000_000)
    steps: list[Step] = []
    with progress_listener(steps.append), ProgressFile(path) as file:
        reading = Thread(target=lambda: [file.read(2_000_000), file.read(), file.read()])
        reading.start()
        reading.join()
    assert steps == [Step("MB read", 2.0, 3.0), Step("MB read", 3.0, 3.0)]
