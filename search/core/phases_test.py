"""Each second counts once, for the innermost phase."""

from threading import Thread

from search.core.phases import phase, recorded, went_to


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_phase_within_another_counts_for_itself_alone():
    clock = Clock()
    with recorded(clock) as found:
        clock.now = 1.0  # outside any phase
        with phase("search"):
            clock.now = 3.0
            with phase("open"):
                clock.now = 7.0
            clock.now = 8.0
        with phase("open"):
            clock.now = 8.5
    assert found.seconds == {"search": 3.0, "open": 4.5}
    assert found.rounded() == {"search": 3.0, "open": 4.5}


def test_what_another_process_tells_is_taken_off_the_phase_that_waits_for_it():
    clock = Clock()
    with recorded(clock) as found, phase("wait"):
        clock.now = 5.0
        went_to("build", 3.0)
        went_to("time", 9.0)  # more than the phase took
    assert found.seconds == {"wait": 0.0, "build": 3.0, "time": 2.0}


def test_without_a_record_and_in_other_threads_nothing_is_counted():
    with phase("lost"):
        went_to("build", 1.0)

    def other():
        with phase("elsewhere"):
            pass

    with recorded() as found:
        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert found.seconds == {}


def test_a_phase_that_fails_has_ended():
    clock = Clock()
    with recorded(clock) as found:
        try:
            with phase("build"):
                clock.now = 2.0
                raise ValueError
        except ValueError:
            clock.now = 9.0
    assert found.seconds == {"build": 2.0}
