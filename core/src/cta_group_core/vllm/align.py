"""Which of vLLM's arguments do not fit a slice, and what to change: decided here, applied by who owns the pod.

A user's lower value stays, a higher one is lowered, an absent one is added. Only arguments in list form and lossless
ways in are edited; for every other form the result says the exact flags to add by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.edit import ways_in
from cta_group_core.vllm.plan import Server, Setting, plan
from cta_group_core.vllm.shown import shown
from cta_group_core.vllm.words import Form


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one flag. ``before`` is None when the flag was not given."""

    flag: str
    before: str | None
    after: str
    why: str

    def as_json(self) -> dict[str, str | None]:
        """Return the form that the pod's annotation has."""
        return {"flag": self.flag, "from": self.before, "to": self.after, "why": self.why}


@dataclass(frozen=True, slots=True)
class Alignment:
    """What to do with the arguments of one container."""

    edits: tuple[Edit, ...] = ()
    """Changes that are in ``command``, ``args`` and ``variable``, or that would be (see ``not_patchable``)."""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    variable: str = ""
    """What to add to the variable :data:`~cta_group_core.vllm.words.ADDITIONAL_ARGS`; empty for nothing."""
    not_patchable: str = ""
    """Why nothing was changed although ``edits`` says what fits, with the flags to add by hand; empty otherwise."""
    warnings: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Tell whether ``command``, ``args`` or the variable differ from what was given."""
        return bool(self.edits) and not self.not_patchable


def align(command: Sequence[str], args: Sequence[str], server: Server) -> Alignment:
    """Decide the edits for a container whose arguments were read from ``command`` and ``args``.

    The values chosen start in all of the server's slices. Raises :class:`~cta_group_core.errors.SliceTooSmall` when
    vLLM cannot start in one of them.
    """
    arguments = server.arguments
    settings = plan(server)
    warnings = _warnings(arguments)
    edited = ways_in(command, args)
    obstacle = _obstacle(arguments) if settings else ""
    if not obstacle and not all(edited.write(setting, arguments) for setting in settings):
        obstacle = arguments.line.reason or "a flag cannot be added behind what is not known"
    if obstacle:
        return _by_hand(command, args, settings, obstacle, warnings)
    return Alignment(
        tuple(map(_edit, settings)),
        tuple(edited.command),
        tuple(edited.args),
        " ".join(edited.variable),
        warnings=warnings,
    )


def _by_hand(
    command: Sequence[str], args: Sequence[str], settings: Sequence[Setting], obstacle: str, warnings: tuple[str, ...]
) -> Alignment:
    """Say what to add, where a server cannot start without it; settings that only serve it better are left out then."""
    wanted = settings if any(one.necessary for one in settings) else ()
    flags = " ".join(f"{one.flag.value}={one.value}" for one in wanted)
    return Alignment(
        tuple(map(_edit, wanted)),
        tuple(command),
        tuple(args),
        not_patchable=f"{shown(obstacle)}; add {flags} to vLLM's arguments" if wanted else "",
        warnings=warnings,
    )


def _edit(setting: Setting) -> Edit:
    given = setting.given.text if setting.given is not None else None
    return Edit(setting.flag.value, None if given is None else shown(given), setting.value, setting.why)


def _warnings(arguments: Arguments) -> tuple[str, ...]:
    hidden = [
        f"values from {shown(source)} are not seen; flags on the command line win over it"
        for source in arguments.hidden
    ]
    return (*hidden, *(f"vLLM arguments: {problem}" for problem in arguments.problems))


def _obstacle(arguments: Arguments) -> str:
    """Say why the arguments may not be edited; empty when they may."""
    if not arguments.line.readable or arguments.form is Form.VARIABLES:
        return arguments.line.reason
    rejected = [str(problem) for problem in arguments.problems if problem.rejected]
    if rejected:
        return f"vLLM will not accept these arguments ({rejected[0]})"
    if arguments.unseen_file and arguments.utilization().given is None:
        return f"values from --config {arguments.unseen_file} are not seen here and may fit already"
    return arguments.utilization().unreadable
