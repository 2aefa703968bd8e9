"""Who the clients of a daemon are, who of them lives, and which processes are meant at all."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from cta_group_plugin.mps.clients import ClientTable
from cta_group_plugin.mps.processes import Process, in_session_of, kill

NOBODY = 2**22 - 1  # the highest process id that Linux gives, and it has not come that far


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the block ends or it is killed."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_process_is_told_from_its_successor() -> None:
    """The same number with another start is another process, and is neither alive nor killed as this one."""
    with sleeping() as process:
        this = Process.with_pid(process.pid)
        assert this is not None
        other = Process(pid=process.pid, started_ticks=this.started_ticks - 1)
        assert (this.is_alive(), other.is_alive()) == (True, False)
        kill([other])
        assert process.poll() is None
        kill([this])
        process.wait(20)
        assert not this.is_alive()
        kill([this])


def test_a_process_that_nobody_waited_for_is_not_alive() -> None:
    """A zombie holds no memory and no connection."""
    with sleeping() as process:
        this = Process.with_pid(process.pid)
        assert this is not None
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not this.is_alive()


def test_a_session_is_its_leader_and_all_that_came_of_it() -> None:
    """Servers that a daemon starts are ended with it; a leader that has ended leads nothing."""
    with subprocess.Popen(
        ["sh", "-c", "sleep 600 & echo; wait"], start_new_session=True, stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        leader = Process.with_pid(shell.pid)
        assert leader is not None
        members = in_session_of(leader)
        assert members[0] == leader
        assert len(members) == 2
        kill(members)
        shell.wait(20)
        assert in_session_of(leader) == []


def test_clients_that_cannot_be_seen_count_as_alive() -> None:
    """Without the host's process ids nobody can say that a client has ended, so nothing is done to its daemon."""
    table = ClientTable()
    table.learn({10: [NOBODY]})
    assert (table.pids, table.living()) == ((NOBODY,), 1)


def test_clients_that_end_are_counted_without_asking_the_daemon() -> None:
    """The table is right while the daemon is silent."""
    table = ClientTable()
    with sleeping() as first, sleeping() as second:
        table.learn({10: [first.pid], 11: [second.pid, first.pid]})
        assert table.living() == 2
        first.kill()
        first.wait(20)
        assert table.living() == 1
        assert table.pids == tuple(sorted((first.pid, second.pid)))


def test_a_server_that_goes_takes_its_clients_along() -> None:
    """Each server that is not told any more is named with the clients it had; one without clients is not."""
    table = ClientTable()
    table.learn({10: [1, 2], 11: [3], 12: []})
    assert table.learn({11: [3]}) == {10: (1, 2)}
    assert table.forget() == (3,)
    assert not table.pids
