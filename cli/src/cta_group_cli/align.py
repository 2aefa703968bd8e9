"""``kubectl cta align``: what admission would do to the workloads of a manifest. Needs no cluster."""

import json
import sys
from pathlib import Path

import yaml

from cta_group_cli.align_rules import WorkloadAnswer, answers
from cta_group_cli.errors import BadInput
from cta_group_cli.exits import Exit
from cta_group_cli.manifests import read_manifests
from cta_group_cli.terminal import say
from cta_group_core.errors import InvalidText
from cta_group_core.profiles import GpuProfile, profile_named
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.reading import Value

_INPUT = "-"


def show_alignment(file: str, gpu: str, *, reserve_mib: int, resource: str, output: str | None) -> Exit:
    """Print an answer for each workload of a file; raise BadInput where the file or the GPU cannot be meant."""
    try:
        profile = profile_named(gpu)
    except InvalidText as unknown:
        raise BadInput(str(unknown)) from unknown
    found = answers(
        read_manifests(_text_of(file), _source(file)),
        _kind_of(profile, reserve_mib),
        str(profile.capability),
        resource=resource,
    )
    facts = [one.as_json() for one in found]
    if output == "json":
        say(json.dumps(facts))
    elif output == "yaml":
        say(yaml.safe_dump(facts, sort_keys=False, allow_unicode=True).rstrip())
    else:
        say("\n\n".join(map(_told, found)) if found else f"{_source(file)} describes no pods")
    return Exit.FINDINGS if any(one.refused for one in found) else Exit.FINE


def _kind_of(profile: GpuProfile, reserve_mib: int) -> GpuKind:
    return GpuKind(
        product=profile.product,
        memory_mib=profile.memory_total_mib,
        reserve_mib=reserve_mib,
        units=profile.units,
        limits_memory=True,
    )


def _source(file: str) -> str:
    return "standard input" if file == _INPUT else file


def _text_of(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == _INPUT else Path(file).read_bytes()
        return content.decode()
    except OSError as unread:
        raise BadInput(f"{_source(file)} cannot be read: {unread.strerror}") from unread
    except UnicodeDecodeError as undecoded:
        raise BadInput(f"{_source(file)} is no text in UTF-8") from undecoded


def _told(answer: WorkloadAnswer) -> str:
    place = f"{answer.kind.lower()}/{answer.name} in {answer.namespace}"
    groups = "no groups" if answer.groups is None else f"{answer.groups} groups"
    if not answer.describes_pods:
        lines = [f"{place}: no pod is described"]
    elif answer.engine is None:
        lines = [f"{place}: {groups}, no vLLM"]
    else:
        version = answer.version or "of an unknown release"
        lines = [f"{place}: container {answer.container}, vLLM {version}, arguments as {answer.argv_form}, {groups}"]
        lines += [_line("read", " ".join(_word(flag, value) for flag, value in answer.read.items()) or "nothing")]
    lines += [
        _line("set", f"{edit['flag']}={edit['to']} (was {edit['from'] or 'not given'}): {edit['why']}")
        for edit in answer.edits
    ]
    lines += [_line("refused", text) for text in answer.refused]
    return "\n".join([*lines, *(_line("warning", text) for text in answer.warnings)])


def _line(what: str, text: str) -> str:
    return f"  {what:<9}{text}"


def _word(flag: str, value: Value) -> str:
    if value is True:
        return flag
    if value is None:
        return f"{flag}=(not known)"
    return f"{flag}={' '.join(value) if isinstance(value, list) else value}"
