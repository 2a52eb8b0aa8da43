"""Messages: of an unknown name the nearest one, or what is known, and not thousands of names."""

from wcet_probe.errors import unknown_name


def test_an_unknown_name_is_told_with_the_nearest_or_with_some_that_are_known():
    assert str(unknown_name("core", "cortex-m5", ["cortex-m4", "mpc603e"])).endswith("did you mean 'cortex-m4'?")
    assert str(unknown_name("core", "z", ["b", "a"])) == "unknown core 'z': known are: a, b."
    message = str(unknown_name("symbol", "z", [f"name_{number:04}" for number in range(5000)]))
    assert message.endswith("name_0039 and 4960 more.")
    assert len(message) < 600
