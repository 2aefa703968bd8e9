"""Reading a whole list of the API server, page by page."""

from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

from cta_group_operator.ports import Json

_PAGE: Final = "200"
"""A page is decoded in one step during which no thread of the process does anything else."""


class Reader(Protocol):
    """What a list is read through."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return one page; raises ApiError."""


async def items(api: Reader, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[Json]:
    """Yield the members of the list at ``path``; raises what ``api`` raises, also in the middle of it."""
    pages = {**(query or {}), "limit": _PAGE}
    while True:
        page = await api.get(path, pages)
        for item in page.get("items") or ():
            yield item
        if not (more := page["metadata"].get("continue")):
            return
        pages = {**pages, "continue": more}
