"""What a thread logs that somebody waits for: behind the answer, as the waiting one may hold a lock of logging's."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_plugin.driver_planning.held_log import LOGGERS, held
from spark_plugin.driver_planning.planner import PLAN, Planner
from tests.support.driver_requests import SECRET, plan_request

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", LOGGERS)
def test_records_of_a_thread_wait_and_those_of_others_do_not(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=name)
    log = logging.getLogger(name)
    with held() as emit:
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
    emit()
    assert caplog.messages == ["another's", "behind it", "mine 1", "mine"]
    assert caplog.records[-1].exc_info is not None
    emit_nothing: Callable[[], None]
    with held() as emit_nothing:
        pass
    emit_nothing()
    assert len(caplog.messages) == 4


def test_error_within_is_raised_and_the_next_records_go_their_way(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="delta_py")
    with pytest.raises(ValueError, match="within"), held():
        raise ValueError("within")
    logging.getLogger("delta_py").info("behind it")
    assert caplog.messages == ["behind it"]


def test_handler_that_waits_for_work_which_logs_gets_its_answer() -> None:
    """As a handler does that saves what it is given."""

    class Saving(logging.Handler):
        answers: list[bytes]

        def emit(self, record: logging.LogRecord) -> None:
            if record.msg == "save":
                self.answers = [planner.apply(plan_request(b"", patience_ms=10_000))]

    def work(body: bytes) -> bytes:
        logging.getLogger("delta_py").warning("a record of the work")
        return b"saved"

    planner, handler = Planner(SECRET, {PLAN: work}), Saving()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        root.error("save")
    finally:
        root.removeHandler(handler)
    assert handler.answers == [b"\0saved"]


def test_all_loggers_of_the_project_are_known() -> None:
    files = [*(ROOT / "delta_py").rglob("*.py"), *(ROOT / "spark_plugin").rglob("*.py")]
    asked = {name for file in files for name in re.findall(r"^_log = logging\.getLogger\((.*)\)", file.read_text(), re.MULTILINE)}
    assert asked == {f'"{name}"' for name in LOGGERS}
