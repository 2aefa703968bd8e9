"""The command line inside a container: which words are vLLM's arguments, and whether they may be edited."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cta_group_core.vllm.launchers import after_launcher, file_name, is_offline, names_vllm
from cta_group_core.vllm.shell import SHELLS, Script, is_shell, run_through, shell_behind, shell_script
from cta_group_core.vllm.surroundings import NOTHING, Surroundings, expand_references
from cta_group_core.vllm.word import Place, Word

# Programs that hand the rest of their words on as they are.
_WRAPPERS = frozenset({"tini", "dumb-init", "env", "nice", "numactl", "nsys", "stdbuf", "catchsegv", "busybox"})
ADDITIONAL_ARGS = "VLLM_ADDITIONAL_ARGS"
"""The variable that KServe's script puts behind the arguments of its own."""
_ADDED = "--added-to-see-where-it-comes-out"
_MOST_WORDS = 2000
_PRINTING = frozenset({"echo", "printf", "test", "[", "[["})
_ADDING = frozenset({"xargs", "parallel"})
"""Programs that put more words behind those of their own."""


class Form(StrEnum):
    """How vLLM's arguments are written."""

    LIST = "list"
    """Each argument is a word of its own in ``command`` or ``args``: can be read and edited."""
    SHELL = "shell"
    """A string that a shell reads: never edited."""
    SCRIPT = "script"
    """A file that a shell runs: never edited, and read only where its text is at hand."""
    VARIABLES = "env"
    """An image that makes its arguments from variables: read, never edited."""
    UNKNOWN = "unknown"
    """The image's own command, or a program of which nothing is known: neither read nor edited."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """vLLM's arguments in a container, after ``vllm serve``."""

    form: Form
    words: tuple[Word, ...] = ()
    """Empty when they cannot be told."""
    readable: bool = True
    """False: there may be arguments that ``words`` does not show."""
    names_vllm: bool = False
    """The command line itself says that this is vLLM; otherwise the image's entrypoint is taken for it."""
    serves: bool = False
    """It is ``vllm serve`` for certain; otherwise perhaps the older API server, which takes no model without flag."""
    offline: bool = False
    """It works on a file and ends, and takes flags of its own that are not looked at."""
    reason: str = ""
    """Why it cannot be edited; empty for the list form."""
    args_end: int | None = None
    """The index in ``words`` that a word has which is added at the end of ``args``; None when vLLM never sees it."""
    variable_end: int | None = None
    """The same for what is added to the variable :data:`ADDITIONAL_ARGS`."""


def command_line(
    command: Sequence[str] | None, args: Sequence[str] | None, surroundings: Surroundings = NOTHING
) -> CommandLine:
    """Find vLLM's arguments in a container's ``command`` and ``args``.

    Without ``command`` the image's entrypoint runs; it is taken for ``vllm serve``, as in the official image.
    """
    count = len(command or ()) + len(args or ())
    if not 0 < count <= _MOST_WORDS:
        none = "the image's own command runs; setting args would replace it"
        return CommandLine(
            Form.UNKNOWN, readable=False, reason=f"there are more than {_MOST_WORDS} words" if count else none
        )
    words = [*_placed("command", command, surroundings), *_placed("args", args, surroundings)]
    shell = _shell_at(words, surroundings)
    if shell is not None:
        return _shell_line(words[shell:], surroundings)
    start = after_launcher(words)
    if start is not None:
        return CommandLine(
            Form.LIST,
            tuple(words[start:]),
            names_vllm=True,
            serves=words[start - 1].text == "serve",
            offline=is_offline(words, start),
            args_end=len(words) - start,
        )
    if words[0].text == "serve":  # below an entrypoint `vllm`, or that of another server which has such a command
        return CommandLine(Form.LIST, tuple(words[1:]), serves=True, args_end=len(words) - 1)
    if command:
        return CommandLine(
            Form.UNKNOWN, readable=False, reason=f"command {command[0]!r} is a program whose arguments are not known"
        )
    return CommandLine(Form.LIST, tuple(words), args_end=len(words))


def _placed(field: str, texts: Sequence[str] | None, surroundings: Surroundings) -> list[Word]:
    found = []
    for index, text in enumerate(texts or ()):
        expanded = expand_references(text, surroundings.variables)
        place = Place("command" if field == "command" else "args", index)
        found.append(Word(expanded.text, place, expanded.unresolved))
    return found


def _shell_at(words: Sequence[Word], surroundings: Surroundings) -> int | None:
    """Return the index of the shell or the known script that runs, below programs that only hand on."""
    if _is_whole_command(words[0]):
        return 0
    behind = None if is_shell(words[0]) else shell_behind(words)
    if behind is not None:
        return behind
    for index, word in enumerate(words):
        if is_shell(word) or word.text in surroundings.files:
            return index
        wraps = file_name(word.text) in _WRAPPERS
        if not wraps and (index == 0 or not (word.text.startswith("-") or "=" in word.text)):
            return None
    return None


def _is_whole_command(word: Word) -> bool:
    """Tell whether a command is written as one word: a common mistake, and no argument of vLLM either."""
    parts = word.text.split()
    return len(parts) > 1 and (file_name(parts[0]) in SHELLS or names_vllm(word.text))


def _shell_line(words: Sequence[Word], surroundings: Surroundings) -> CommandLine:
    """Read what a shell runs. ``words`` begin with the shell, or with the file that it is to run."""
    text, file, parameters = _what_runs(words, surroundings)
    if text is not None:
        reason = "the arguments are inside a shell string, which is never edited"
        if len(parameters or ()) > 1 and "$" not in text.text:
            reason += "; the words behind it are its parameters, which it does not use"
        if text == words[0]:
            reason = "the whole command is one word, which no program is called: write each part as an item of its own"
        return _script_line(_Run(Form.SHELL, text.text, parameters, surroundings, reason))
    if file is None:
        return CommandLine(Form.SCRIPT, readable=False, reason="a shell reads a script; it is never edited")
    reason = f"the script {file.text} runs; it is never edited"
    content = surroundings.files.get(file.text)
    if content is None:
        # What is handed to a script that is not at hand may or may not reach vLLM.
        return CommandLine(Form.SCRIPT, readable=False, reason=reason)
    return _script_line(_Run(Form.SCRIPT, content, parameters, surroundings, reason))


def _what_runs(
    words: Sequence[Word], surroundings: Surroundings
) -> tuple[Word | None, Word | None, Sequence[Word] | None]:
    """Return the text or the file that runs, and its ``$0`` and parameters: None where a word more is not seen."""
    if words[0].text in surroundings.files:
        return None, words[0], words
    if not is_shell(words[0]):
        return words[0], None, None
    text, file, parameters = shell_script(words)
    if text is not None and not parameters:
        return text, None, None  # the next word would be $0
    return text, file, parameters


@dataclass(frozen=True, slots=True)
class _Run:
    """A script and what it is run with."""

    form: Form
    text: str
    parameters: Sequence[Word] | None
    surroundings: Surroundings
    reason: str

    def around(self) -> Surroundings:
        """Return what surrounds it; no image brings the variable that is there for its users."""
        known = self.surroundings
        if known.more_variables or ADDITIONAL_ARGS in known.variables:
            return known
        return replace(known, variables={**known.variables, ADDITIONAL_ARGS: ""})

    def commands(self) -> Script:
        """Return what it starts."""
        return run_through(self.text, self.around(), self.parameters or ())

    def end_of_args(self, words: Sequence[Word]) -> int | None:
        """Return where a further parameter comes out among vLLM's words."""
        if self.parameters is None or "$" not in self.text:
            return None
        return _added_at(run_through(self.text, self.around(), [*self.parameters, Word(_ADDED, None)]), words)

    def end_of_variable(self, words: Sequence[Word]) -> int | None:
        """Return where a further word of the variable comes out among vLLM's words."""
        around = self.surroundings
        if ADDITIONAL_ARGS not in self.text or (ADDITIONAL_ARGS not in around.variables and around.more_variables):
            return None
        value = around.variables.get(ADDITIONAL_ARGS, "")
        if value is None:
            return None
        variables = {**around.variables, ADDITIONAL_ARGS: f"{value} {_ADDED}"}
        return _added_at(run_through(self.text, replace(around, variables=variables), self.parameters or ()), words)


def _added_at(script: Script, before: Sequence[Word]) -> int | None:
    """Return where the word that was added stands; None where it is not one word more among those of before."""
    starts = _starts(script)
    if len(starts) != 1:
        return None
    words = starts[0][0][starts[0][1] :]
    at = next((index for index, word in enumerate(words) if word.text == _ADDED), len(words))
    others = [word.text for word in (*words[:at], *words[at + 1 :])]
    if len(words) != len(before) + 1 or others != [word.text for word in before]:
        return None  # in place of another word, such as `${1:-model}`, or more than once
    if any(word.unresolved and not word.quoted for word in words[at:]):
        return None  # before something that may hold any flag
    return at


def _starts(script: Script) -> list[tuple[tuple[Word, ...], int]]:
    """Return the commands that start vLLM, each with the index of its first argument."""
    return [
        (command, start)
        for command in script.commands
        if file_name(command[0].text) not in _PRINTING | _ADDING
        if (start := after_launcher(command)) is not None
    ]


def _script_line(run: _Run) -> CommandLine:
    """Pick the command that starts vLLM among those of a script."""
    script = run.commands()
    starts = _starts(script)
    if len(starts) != 1:
        why = script.trouble or ("it starts vLLM in several ways" if starts else "")
        told = f"{run.reason}; {why}" if why else run.reason
        return CommandLine(run.form, readable=False, names_vllm=names_vllm(run.text), reason=told)
    command, start = starts[0]
    return CommandLine(
        run.form,
        command[start:],
        names_vllm=True,
        serves=command[start - 1].text == "serve",
        offline=is_offline(command, start),
        reason=run.reason,
        args_end=run.end_of_args(command[start:]),
        variable_end=run.end_of_variable(command[start:]),
    )
