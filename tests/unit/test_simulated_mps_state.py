"""The simulated daemon keeps NVIDIA's rules about whom a limit reaches."""

import pytest

from cta_group_plugin.simulated.mps_state import MAX_CLIENTS, CommandRefused, DaemonState, Limits


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
    with pytest.raises(CommandRefused, match="48 clients"):
        daemon.connect(MAX_CLIENTS, pid=MAX_CLIENTS)
    daemon.disconnect(0)
    daemon.connect(MAX_CLIENTS, pid=MAX_CLIENTS)


@pytest.mark.parametrize(
    "command",
    [
        "set_default_active_thread_percentage",
        "set_default_active_thread_percentage 0",
        "set_default_active_thread_percentage 101",
        "set_default_active_thread_percentage ten",
        "set_default_device_pinned_mem_limit 0 4096",
        "set_default_device_pinned_mem_limit 1 4096M",
        "get_active_thread_percentage 7",
        "get_server_status 7",
        "make_coffee",
    ],
)
def test_nonsense_is_refused(command: str) -> None:
    """A command with a missing or wrong word, for a server that is not there, or unknown, is refused."""
    with pytest.raises(CommandRefused):
        DaemonState(server_pid=7).command(command)
