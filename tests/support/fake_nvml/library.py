"""Builds the fake libnvidia-ml.so.1 with the C compiler."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

LIBRARY_NAME = "libnvidia-ml.so.1"
_HERE = Path(__file__).parent


def build_library(folder: Path, without: Sequence[str] = ()) -> Path:
    """Compile the library into ``folder``, which then is what LD_LIBRARY_PATH has to name.

    ``without``: calls that the library shall not have, as with a driver that is older than they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{LIBRARY_NAME}"]
    if without:
        script = folder / "symbols.map"
        script.write_text("{ local: " + "; ".join(without) + "; };\n", encoding="ascii")
        command.append(f"-Wl,--version-script={script}")
    sources = [str(_HERE / name) for name in ("answers.c", "links.c", "modes.c", "vitals.c", "world.c")]
    subprocess.run([*command, "-o", str(folder / LIBRARY_NAME), *sources], check=True)
    return folder
