import io

from jaxaudit import progress
from jaxaudit.progress import BarReporter, LineReporter, SilentReporter, default_reporter


def test_lines_tell_how_far_it_is(monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", -1.0)
    stream = io.StringIO()
    with LineReporter(stream).task("train", 4) as advance:
        advance(1)
        advance(3)
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["train: 25 %", "train: 100 %"]
    assert lines[2].startswith("train: done in ")


def test_a_fast_task_writes_only_its_end():
    stream = io.StringIO()
    with LineReporter(stream).task("train", 1000) as advance:
        for _ in range(1000):
            advance(1)
    assert len(stream.getvalue().splitlines()) == 1


def test_a_silent_reporter_is_silent(capsys):
    reporter = SilentReporter()
    with reporter.task("train", 2) as advance:
        advance(2)
    reporter.say("nothing")
    assert capsys.readouterr() == ("", "")


def test_bars_go_to_stderr_and_show_markup_as_it_is(capsys):
    reporter = BarReporter()
    with reporter.task("train", 2) as advance:
        advance(2)
    reporter.say("[bold]as it is[/bold]")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "[bold]as it is[/bold]" in captured.err


def test_default_follows_the_terminal():
    assert isinstance(default_reporter(quiet=True), SilentReporter)
    assert isinstance(default_reporter(), LineReporter)  # pytest captures stderr, so it is no terminal
