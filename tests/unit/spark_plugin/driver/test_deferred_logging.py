"""Log records of work for which another thread waits: they are written after its answer, because that thread may hold a lock of
logging.
"""

from __future__ import annotations

import logging
import re
import threading
from pathlib import Path

import pytest

from delta_py.errors import LOGGERS
from spark_plugin.driver_channel.deferred_logging import LogThread, deferred_logging
from spark_plugin.driver_channel.frames import Status
from spark_plugin.driver_channel.server import ChannelServer
from tests.support.spark.channel_client import SECRET, ask

ROOT = Path(__file__).parents[4]


def emit_all(*batches: list[logging.LogRecord]) -> None:
    thread = LogThread()
    for records in batches:
        thread.emit(records)
    thread.stop()
    assert thread._thread is not None
    thread._thread.join(10)
    assert not thread._thread.is_alive()


def test_filter_that_fails_keeps_no_other_record(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("delta_py")

    def failing(record: logging.LogRecord) -> bool:
        if record.msg == "first":
            raise ValueError("a filter's own")
        return True

    log.addFilter(failing)
    try:
        emit_all(*([log.makeRecord("delta_py", logging.WARNING, "", 0, text, (), None)] for text in ("first", "second")))
    finally:
        log.removeFilter(failing)
    assert caplog.messages == ["second"]
    assert "ValueError: a filter's own" in capsys.readouterr().err


@pytest.mark.parametrize("name", LOGGERS)
def test_records_of_a_thread_wait_and_those_of_others_do_not(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=name)
    log = logging.getLogger(name)
    with deferred_logging() as records:
        log.info("mine %d", 1)
        try:
            raise ValueError("mine too")
        except ValueError:
            log.warning("mine", exc_info=True)
        other = threading.Thread(target=log.info, args=("another's",))
        other.start()
        other.join()
        assert caplog.messages == ["another's"]
    log.info("behind it")
    emit_all(records)
    assert caplog.messages == ["another's", "behind it", "mine 1", "mine"]
    assert caplog.records[-1].exc_info is not None
    with deferred_logging() as records:
        pass
    assert records == []


def test_error_inside_is_raised_and_later_records_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="delta_py")
    with pytest.raises(ValueError, match="within"), deferred_logging():
        raise ValueError("within")
    logging.getLogger("delta_py").info("behind it")
    assert caplog.messages == ["behind it"]


def test_handler_that_waits_for_work_which_logs_gets_its_answer() -> None:
    """As in a handler that saves its records."""

    class Saving(logging.Handler):
        answer: tuple[Status, bytes]

        def emit(self, record: logging.LogRecord) -> None:
            if record.msg == "save":
                self.answer = ask(server, 1)

    def work(body: bytes) -> bytes:
        logging.getLogger("delta_py").warning("a record of the work")
        return b"saved"

    server, handler = ChannelServer(SECRET), Saving()
    server.handle({1: work})
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        root.error("save")
    finally:
        root.removeHandler(handler)
        server.close()
    assert handler.answer == (Status.DONE, b"saved")


def test_all_loggers_of_the_project_are_known() -> None:
    files = [*(ROOT / "delta_py").rglob("*.py"), *(ROOT / "spark_plugin").rglob("*.py")]
    logger_names = {
        name for file in files for name in re.findall(r"^_log = logging\.getLogger\((.*)\)", file.read_text(), re.MULTILINE)
    }
    assert logger_names == {f'"{name}"' for name in LOGGERS}
