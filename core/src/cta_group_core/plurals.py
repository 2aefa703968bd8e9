"""Numbers of things in sentences."""


def counted(number: int, thing: str) -> str:
    """Return a number of things in words, such as ``1 pod`` and ``2 pods``; ``thing`` has a regular plural."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
