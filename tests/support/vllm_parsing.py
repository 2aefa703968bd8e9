"""Asks vLLM's own parser, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import vllm_own_parser
from cluster_harness.vllm_sources import Release, parser_folder
from vllm_command_lines import Line

_TIMEOUT_SECONDS = 300


def answers_of(release: Release, lines: list[Line]) -> list[dict[str, Any]]:
    """Return what vLLM reads from each line."""
    found: list[dict[str, Any]] = json.loads(_told(release, json.dumps(lines)))
    return found


def options_of(release: Release) -> dict[str, str]:
    """Return every spelling of an option, and how many words it takes."""
    found: dict[str, str] = json.loads(_told(release, "", "options"))
    return found


def _told(release: Release, text: str, *words: str) -> str:
    program = str(Path(vllm_own_parser.__file__))
    ended = subprocess.run(
        [sys.executable, program, str(parser_folder(release)), release.parser_module, *words],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
