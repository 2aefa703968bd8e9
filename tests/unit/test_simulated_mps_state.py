"""The simulated daemon keeps NVIDIA's rules about whom a limit reaches."""

import pytest

from cta_group_plugin.simulated.mps_state import MAX_CLIENTS, ClientRefused, DaemonState, Limits
from mps_dialogue import BEFORE_A_SERVER, WITH_A_SERVER


def test_defaults_reach_only_the_next_server() -> None:
    """A default that changes after the server started changes nothing for its clients."""
    daemon = DaemonState(server_pid=7)
    daemon.command("set_default_active_thread_percentage 25")
    assert daemon.connect(1, pid=100).sm_percent == 25
    daemon.command("set_default_active_thread_percentage 50")
    assert daemon.connect(2, pid=101).sm_percent == 25
    assert daemon.command("get_default_active_thread_percentage") == "50.0"
    assert daemon.command("get_active_thread_percentage 7") == "25.0"


def test_a_servers_own_limits_reach_its_later_clients() -> None:
    """Percentage and memory set on a server hold for whoever connects afterwards."""
    daemon = DaemonState(server_pid=7)
    daemon.connect(1, pid=100)
    daemon.command("set_active_thread_percentage 7 50")
    daemon.command("set_device_pinned_mem_limit 7 0 2G")
    assert daemon.connect(2, pid=101) == Limits(sm_percent=50.0, memory_mib=2048)


def test_there_is_no_server_before_the_first_client() -> None:
    """The server list is empty until a client comes, and the server stays when it has gone."""
    daemon = DaemonState(server_pid=7)
    assert daemon.command("get_server_list") == ""
    daemon.connect(1, pid=100)
    assert daemon.command("get_client_list 7") == "100"
    daemon.disconnect(1)
    assert (daemon.command("get_server_list"), daemon.command("get_client_list 7")) == ("7", "")


def test_the_table_of_clients_has_an_end() -> None:
    """The 49th client is refused, and taken when another has gone."""
    daemon = DaemonState(server_pid=7)
    for connection in range(MAX_CLIENTS):
        daemon.connect(connection, pid=connection)
    with pytest.raises(ClientRefused, match="48 clients"):
        daemon.connect(MAX_CLIENTS, pid=MAX_CLIENTS)
    daemon.disconnect(0)
    daemon.connect(MAX_CLIENTS, pid=MAX_CLIENTS)


def test_it_answers_as_nvidias_daemon_does() -> None:
    """Every answer that was recorded of a real daemon is given, in the same order, to nonsense too."""
    daemon = DaemonState(server_pid=7)
    for turn in (*BEFORE_A_SERVER, *WITH_A_SERVER):
        asked, answer = (text.replace("{server}", "7") for text in (turn.command, turn.answer))
        assert daemon.command(asked) == answer.removesuffix("\n"), asked


def test_a_limit_holds_to_the_mebibyte_that_is_not_printed() -> None:
    """A client gets the limit that was set, though the daemon prints whole GiB."""
    daemon = DaemonState(server_pid=7)
    daemon.command("set_default_device_pinned_mem_limit 0 17766M")
    assert daemon.connect(1, pid=100).memory_mib == 17766
