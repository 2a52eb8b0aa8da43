"""A limit of processor time: what works is interrupted, what waits is not."""

import threading
import time

from wcet_probe.analyzer.deduction.processor_time import limited


def test_what_works_is_interrupted():
    stop = threading.Event()
    with limited(stop.set, 0.2):
        while not stop.is_set():
            pass
    assert stop.is_set()


def test_what_waits_is_not():
    stop = threading.Event()
    with limited(stop.set, 60):
        time.sleep(1.2)
    assert not stop.is_set()


def test_what_comes_behind_is_not():
    stop = threading.Event()
    with limited(stop.set, 0.0):
        pass
    time.sleep(1.2)
    assert not stop.is_set()
