"""How kopf is set: nothing that it asks for is waited for without end."""

import pytest

from cta_group_operator.handlers.kopf_operator import make_settings

LONGEST_SECONDS = 60


@pytest.mark.parametrize("watch_seconds", [5, 240])
def test_no_silent_connection_is_believed_in_for_long(watch_seconds: int) -> None:
    """Neither while kopf connects, nor in a list, nor in a watch after the moment at which the API server ends it."""
    settings = make_settings(watch_seconds)
    assert settings.networking.connect_timeout is not None
    assert settings.networking.connect_timeout <= LONGEST_SECONDS
    assert settings.networking.request_timeout is not None
    assert settings.networking.request_timeout <= LONGEST_SECONDS
    assert settings.watching.inactivity_timeout is not None
    assert settings.watching.inactivity_timeout <= watch_seconds + LONGEST_SECONDS
