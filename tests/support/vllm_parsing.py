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
    program = str(Path(vllm_own_parser.__file__))
    ended = subprocess.run(
        [sys.executable, program, str(parser_folder(release)), release.parser_module],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found
