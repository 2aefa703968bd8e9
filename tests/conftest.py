"""What holds for every test: hypothesis does not judge speed, since the machine may be busy with something else.

Tests run on several workers, most of which wait for a cluster at any time. A file stays on one worker, and so do all
files that share a cluster.
"""

import zlib
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from evidence import evidence_of
from own_logs import own_logs

settings.register_profile("cta-group", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cta-group")

_WITH_CLUSTERS: Final = ("node", "api")
_SLOWEST_FIRST: Final = (*_WITH_CLUSTERS, "component")
_STARTS: Final = ("Cluster.start(", "ControlPlane.start(", "running_cluster(")
"""How a file says that it has a cluster of its own."""
_API_CLUSTERS: Final = 4
"""How many workers share the tests of the folder ``api``, each with a control plane of its own: they take longest."""
_HERE: Final = Path(__file__).parent


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    with own_logs():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take long."""
    items.sort(key=_turn)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that failed what the programs said that it was about: their logs go with its folders."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        try:
            report.sections += evidence_of(item.funcargs)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the failure itself must be told
            report.sections.append(("evidence", f"none: {problem!r}"))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Give each worker one cluster after another."""
    return _ByCluster(config, log)


class _ByCluster(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
    def _split_scope(self, nodeid: str) -> str:
        return _cluster(nodeid.partition("::")[0])


@cache
def _cluster(file: str) -> str:
    """Return what the tests of a file share; ``file`` is relative to the root of the project."""
    folder = file.split("/")[1]
    text = (_HERE.parent / file).read_text(encoding="utf-8") if folder in _WITH_CLUSTERS else ""
    if folder not in _WITH_CLUSTERS or any(call in text for call in _STARTS):
        return file
    if folder == "api":
        return f"api {zlib.crc32(file.encode()) % _API_CLUSTERS}"
    return f"{folder}, plain programs" if "PlainNode" in text else folder


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(_HERE).parts[0]
    return _SLOWEST_FIRST.index(folder) if folder in _SLOWEST_FIRST else len(_SLOWEST_FIRST)
