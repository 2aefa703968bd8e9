"""Scripts that start a server as people write them, and the bash that runs them with a `vllm` that notes its words."""

import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

GIVEN = {"A": "0.5", "B": "x y", "MODEL": "org/m", "EMPTY": "", "QUOTED": "--k '1 2'"}
"""Variables of the container."""
_NAMES = [*GIVEN, "ARGS", "UTIL", "UNSET"]
_SET = ["A", "B", "ARGS", "UTIL", "NEW"]
_PIECES = Path(__file__).resolve().parents[1] / "fixtures" / "start_scripts.yaml"
_NOTES = 'for word in "$@"; do printf "%s\\0" "$word"; done >> "$NOTED"; printf "\\1" >> "$NOTED"\n'
_HANDS_ON = 'while ! [ "$1" = bash -o "$1" = vllm ]; do shift; done; exec "$@"\n'


@dataclass(frozen=True)
class StartScript:
    """A script, and the words behind it: the shell's `$0`, `$1` and so on."""

    text: str
    parameters: Sequence[str]


class ScriptWriter:
    """Writes scripts; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same scripts in every run
        self._pieces: dict[str, list[str]] = yaml.safe_load(_PIECES.read_text())

    def script(self) -> StartScript:
        """Return one."""
        blocks = [self._block() for _ in range(self._random.randint(0, 4))]
        text = self._one("starts").replace("BEFORE", self._one("before")).replace("BEHIND", self._one("behind"))
        text = "\n".join([*blocks, text.replace("WORDS", self._words())])
        return StartScript(text, self._random.choice([[], ["zero"], ["zero", "one"], ["zero", "one", "t w", "--z=1"]]))

    def _one(self, kind: str) -> str:
        return self._random.choice(self._pieces[kind])

    def _block(self) -> str:
        first, *parts = self._one("blocks").split("STEP")
        return first + "".join(self._step() + part for part in parts)

    def _step(self) -> str:
        step = self._one("assignments" if self._random.random() < 0.7 else "others")
        return step.replace("NAME", self._random.choice(_SET))

    def _words(self) -> str:
        kinds = ["words" if self._random.random() < 0.7 else "expressions" for _ in range(self._random.randint(0, 6))]
        return " ".join(self._one(kind).replace("NAME", self._random.choice(_NAMES)) for kind in kinds)


class Bash:
    """A real bash that finds a `vllm` and a `sudo` of ours in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._noted = folder, folder / "noted"
        for name, text in (("vllm", _NOTES), ("sudo", _HANDS_ON)):
            (folder / name).write_text(f"#!/bin/bash\n{text}")
            (folder / name).chmod(0o755)

    def servers(self, script: StartScript, variables: Mapping[str, str]) -> list[list[str]]:
        """Run a script and return the words of each `vllm` that it started."""
        self._noted.write_text("")
        subprocess.run(
            ["/bin/bash", "-c", script.text, *script.parameters],
            env={"PATH": f"{self._folder}:/usr/bin:/bin", "NOTED": str(self._noted), **variables},
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,  # ends when all that was started in the background has ended
            timeout=60,
            check=False,
        )
        return [one.split("\0")[:-1] for one in self._noted.read_text().split("\1")[:-1]]
