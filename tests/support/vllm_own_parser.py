"""vLLM's own argument parser, out of its source distribution, without a GPU, CUDA or torch.

A program: `python vllm_own_parser.py FOLDER MODULE [options]` reads a JSON list of command lines (each a list of words
after ``vllm serve``) from its input and prints for each what vLLM reads, or how it refuses. FOLDER holds the files of
vLLM that make the parser; every other import, of vLLM's own parts too, is answered with something empty. It takes no
part in what the parser does: the options, their types and the reading of the words are vLLM's code.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import re
import sys
import types
from collections.abc import Iterator, MutableSequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic_core import core_schema

_EMPTY_IN_REAL = ("vllm.config.quantization",)
"""A part of vLLM's own that wants more of its parts, and says nothing about options."""
_INSTALLED = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection", "yaml", "_yaml"}


class _Empty(type):
    """A class that has every attribute and does nothing."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _empty(name)

    def __or__(cls, _: object) -> Any:
        return Any

    __ror__ = __or__

    def __getitem__(cls, _: object) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __contains__(cls, _: object) -> bool:
        return False

    def __call__(cls, *_: object, **__: object) -> Any:
        return _empty("called")

    def __enter__(cls) -> Any:
        return cls

    def __exit__(cls, *_: object) -> None:
        return None


def _empty(name: str) -> _Empty:
    return _Empty(
        name,
        (),
        {
            "__init_subclass__": classmethod(lambda _, **__: None),
            "__get_pydantic_core_schema__": classmethod(lambda *_: core_schema.any_schema()),
        },
    )


class _EmptyModule(types.ModuleType):
    __path__: MutableSequence[str] = []  # noqa: RUF012 - a package for the import system, never changed
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _empty(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers for everything but what is installed, and vLLM's files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        del path, target
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in _INSTALLED:
            return None
        place = self._folder.joinpath(*name.split("."))
        if name not in _EMPTY_IN_REAL and (place.is_dir() or place.with_suffix(".py").is_file()):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _EmptyModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        del module


class Refused(Exception):
    """vLLM would end with this message."""


def make_parser(folder: Path, module: str) -> Any:
    """Return the parser of ``vllm`` with its command ``serve``; ``module`` defines ``make_arg_parser``."""
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, _Finder(folder))
    sys.modules["regex"] = re
    flexible = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser

    class Parser(flexible):  # type: ignore[misc, valid-type]
        def error(self, message: str) -> NoReturn:
            raise Refused(message)

    parser = Parser(prog="vllm")
    commands = parser.add_subparsers(required=False, dest="subparser")
    importlib.import_module(module).make_arg_parser(commands.add_parser("serve", usage="vllm serve"))
    return parser


def read(parser: Any, words: list[str]) -> dict[str, Any]:
    """Return the values of a command line by their names in vLLM, or ``{"refused": ...}``."""
    try:
        found = vars(parser.parse_args(["serve", *words]))
    # Every way in which the parser ends is a refusal: it checks with asserts, and exits after --help.
    except (Refused, ValueError, AssertionError, IndexError, OSError, SystemExit) as refused:
        return {"refused": f"{type(refused).__name__}: {refused}"}
    if found["model_tag"] is not None:
        found["model"] = found["model_tag"]
    return {key: value for key, value in found.items() if isinstance(value, (str, int, float, bool, list, type(None)))}


def options_of(parser: Any) -> dict[str, str]:
    """Return every spelling of an option of ``vllm serve``, and how many words it takes: 0, 1, ? or +."""
    (serve,) = [action.choices["serve"] for action in parser._actions if isinstance(action.choices, dict)]
    return {
        spelling: "1" if action.nargs is None else str(action.nargs)
        for spelling, action in serve._option_string_actions.items()
    }


def main() -> None:
    """Read and answer all lines; with the word ``options`` for a line, tell what options there are."""
    parser = make_parser(Path(sys.argv[1]), sys.argv[2])
    if sys.argv[3:] == ["options"]:
        json.dump(options_of(parser), sys.stdout)
        return
    lines: list[list[str]] = json.load(sys.stdin)
    json.dump([read(parser, words) for words in lines], sys.stdout, default=str)


if __name__ == "__main__":
    main()
