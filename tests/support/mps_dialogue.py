"""What NVIDIA's MPS control daemon answers, as driver 580.159.04 did on an H200 (CUDA MPS control binary 13000).

The simulated daemon has to give these answers, and so has a real one: a test does each. Every question is asked of a
fresh client, ``nvidia-cuda-mps-control`` with one line on its standard input. Whatever is asked, it ends with exit
code 0 as long as a daemon answers.
"""

from dataclasses import dataclass
from typing import Final

NO_DAEMON: Final = "Cannot find MPS control daemon process\n"
"""Printed on standard error, with exit code 1, where no daemon serves the pipe folder."""

SECOND_DAEMON: Final = "An instance of this daemon is already running\n"
"""Printed by a daemon, with exit code 1, whose pipe folder has another."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer. ``{server}`` stands for the process id of the server."""

    command: str
    answer: str = ""


BEFORE_A_SERVER: Final = (
    Turn("get_server_list"),
    Turn("get_default_active_thread_percentage", "100.0\n"),
    Turn("set_default_active_thread_percentage 7", "7.0\n"),
    Turn("get_default_active_thread_percentage", "7.0\n"),
    Turn("set_default_active_thread_percentage 24.2425", "24.2\n"),
    Turn("set_default_active_thread_percentage 101", "24.2\n"),
    Turn("set_default_active_thread_percentage 0", "24.2\n"),
    Turn("set_default_active_thread_percentage abc", "24.2\n"),
    Turn("set_default_active_thread_percentage 25", "25.0\n"),
    Turn("get_default_device_pinned_mem_limit 0"),
    Turn("get_default_device_pinned_mem_limit"),
    Turn("get_default_device_pinned_mem_limit 1"),
    Turn("set_default_device_pinned_mem_limit 0 2G"),
    Turn("get_default_device_pinned_mem_limit 0", "2G\n"),
    Turn("set_default_device_pinned_mem_limit 0 1048576M"),
    Turn("get_default_device_pinned_mem_limit 0", "1024G\n"),
    Turn("set_default_device_pinned_mem_limit 0 0M"),
    Turn("get_default_device_pinned_mem_limit 0"),
    Turn("set_default_device_pinned_mem_limit 0 512M"),
    Turn("get_default_device_pinned_mem_limit 0", "512M\n"),
    Turn("set_default_device_pinned_mem_limit 0"),
    Turn("get_default_device_pinned_mem_limit 0", "512M\n"),
    Turn("set_default_device_pinned_mem_limit 0 abc"),
    Turn("get_default_device_pinned_mem_limit 0"),
    Turn("set_default_device_pinned_mem_limit 0 4096"),
    Turn("get_default_device_pinned_mem_limit 0", "4G\n"),
    Turn("set_default_device_pinned_mem_limit 0 1.5G"),
    Turn("get_default_device_pinned_mem_limit 0", "1M\n"),
    Turn("set_default_device_pinned_mem_limit 0 17766M"),
    Turn("get_default_device_pinned_mem_limit 0", "17G\n"),
    Turn("get_server_status 1", "Server 1 not found\n"),
    Turn("get_client_list 1", "Server 1 not found\n"),
    Turn("get_active_thread_percentage 1", "Server 1 not found\n"),
    Turn("set_active_thread_percentage 1 20", "Server 1 not found\n"),
    Turn("get_device_pinned_mem_limit 1 0", "Server 1 not found\n"),
    Turn("get_server_status", "A server PID is required\n"),
    Turn("make_coffee", 'Unknown command "make_coffee"\n'),
    Turn("start_server -uid 0"),
)

WITH_A_SERVER: Final = (
    Turn("get_server_list", "{server}\n"),
    Turn("get_server_status {server}", "ACTIVE\n"),
    Turn("get_client_list {server}"),
    Turn("get_active_thread_percentage {server}", "25.0\n"),
    Turn("get_device_pinned_mem_limit {server} 0", "17G\n"),
    Turn("set_active_thread_percentage {server} 50", "50.0\n"),
    Turn("get_active_thread_percentage {server}", "50.0\n"),
    Turn("get_default_active_thread_percentage", "25.0\n"),
    Turn("set_device_pinned_mem_limit {server} 0 35532M"),
    Turn("get_device_pinned_mem_limit {server} 0", "34G\n"),
    Turn("set_device_pinned_mem_limit {server} 0 1048576M"),
    Turn("get_device_pinned_mem_limit {server} 0", "1024G\n"),
    Turn("set_device_pinned_mem_limit {server} 0 0M"),
    Turn("get_device_pinned_mem_limit {server} 0"),
    Turn("get_default_device_pinned_mem_limit 0", "17G\n"),
)
"""Once the server is ACTIVE, some 0.2 s after it was started."""
