from __future__ import annotations

import pytest
from cpu_session import HONEST

from evaluator.runner import Ended
from evaluator.types import Status
from evaluator.wall_clock import check_reported

SLOW = HONEST.replace("        return", "        import time; time.sleep(0.004)\n        return")


def test_a_time_that_the_judges_clock_contradicts_is_refused(stage):
    made = stage()
    session = made.session()
    runner = made.ready(session, SLOW)
    session.sample(runner)
    with pytest.raises(Ended, match="reports 10 us a call, the judge's clock says") as caught:
        check_reported(runner, 10.0)
    assert caught.value.failure.status is Status.REJECTED
    assert check_reported(runner, 4000.0) >= 4000.0
