"""Our reading of start scripts against bash itself, which runs them with a `vllm` that notes what it gets."""

from pathlib import Path

from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.words import CommandLine, command_line
from start_scripts import GIVEN, Bash, ScriptWriter, StartScript

SCRIPTS = 400
ADDED = "--added=1"


def read(script: StartScript) -> CommandLine:
    """Read a container that runs the script."""
    return command_line(["bash", "-c", script.text], script.parameters, Surroundings(dict(GIVEN)))


def known_words(line: CommandLine) -> list[str] | None:
    """Return the words where all of them are known."""
    if not line.readable or any(word.unresolved for word in line.words):
        return None
    return [word.text for word in line.words]


def test_words_that_are_said_to_be_known_are_those_that_bash_gives(tmp_path: Path) -> None:
    """And a word that is added to the parameters comes out where it is said to, with all others as they were."""
    bash, writer = Bash(tmp_path), ScriptWriter(seed=7)
    wrong, compared, added = [], 0, 0
    for script in (writer.script() for _ in range(SCRIPTS)):
        line = read(script)
        words = known_words(line)
        started = bash.servers(script, GIVEN) if words is not None else []
        if words is None or len(started) != 1:  # more than one, or none, where bash ends before
            continue
        compared += 1
        if started[0] != ["serve", *words]:
            wrong.append((script, words, started[0]))
        if line.args_end is not None:
            added += 1
            more = StartScript(script.text, [*script.parameters, ADDED])
            with_it = ["serve", *words[: line.args_end], ADDED, *words[line.args_end :]]
            wrong += [(more, with_it, one) for one in bash.servers(more, GIVEN) if one != with_it]
    assert wrong == []
    assert compared > SCRIPTS / 4
    assert added
