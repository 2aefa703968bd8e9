"""Start scripts around the server: what is read of them, and what is not known for certain."""

import pytest

from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.words import Form
from read_scripts import script, share


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m --gpu-memory-utilization 0.5 > >(tee /log) 2> >(tee /err >&2)",
        "exec > >(tee -a /log) 2>&1; vllm serve m --gpu-memory-utilization 0.5",
        ': "${UTIL:=0.5}"\nvllm serve m --gpu-memory-utilization $UTIL',
        "vllm serve m --gpu-memory-utilization ${GIVEN:?a share is needed}",
        "vllm serve m --gpu-memory-utilization $'0.5'",
        "sudo -E -u llm bash -c 'vllm serve m --gpu-memory-utilization 0.5'",
        "cd /work && UTIL=0.5 && vllm serve m --gpu-memory-utilization $UTIL",
        "{ UTIL=0.5; }; vllm serve m --gpu-memory-utilization $UTIL",
        "set -- 0.5 x; vllm serve m --gpu-memory-utilization $1",
        "set -- a b 0.5; shift 2; vllm serve m --gpu-memory-utilization $1",
    ],
)
def test_more_of_what_start_scripts_do_is_read(text: str) -> None:
    """Output handed to programs, variables that are set where they are missing, parameters that are shifted."""
    found = read_arguments(["sh", "-c", text], None, Surroundings({"GIVEN": "0.5"}))
    assert (share(found), found.model, found.form, found.problems) == ("0.5", "m", Form.SHELL, ())


@pytest.mark.parametrize(
    "text",
    [
        '[ -n "$X" ] && UTIL=0.9',
        "! [[ -n $X ]] && UTIL=0.9",
        "test -e /x && { echo; UTIL=0.9; }",
        "command -v nvidia-smi && UTIL=0.9",
        "false || { echo; UTIL=0.9; }",
        'if [ -n "$X" ]; then : "${UTIL:=0.9}"; fi',
    ],
)
def test_what_only_runs_after_a_test_leaves_a_variable_unknown(text: str) -> None:
    """Whichever way it went, the value is not the one of before for certain, nor the one of after."""
    found = script(f"UTIL=\n{text}\nvllm serve m --gpu-memory-utilization $UTIL")
    assert found.utilization().given is not None
    assert share(found) is None


@pytest.mark.parametrize(
    "text",
    [
        'if [ -n "$X" ]; then set -- --gpu-memory-utilization 0.9; fi; vllm serve m "$@"',
        '[ -n "$X" ] && shift; vllm serve m "$@"',
        'shift $((OPTIND - 1)); vllm serve m "$@"',
    ],
)
def test_parameters_that_may_be_others_are_not_taken_for_what_was_given(text: str) -> None:
    """They may hold any flag, so nothing is written behind them either."""
    found = script(text, "--gpu-memory-utilization=0.5")
    assert (found.utilization().given, found.hidden, found.line.args_end) == (None, ("$@",), None)


def test_nothing_is_written_before_a_list_that_is_not_known() -> None:
    """A list in quotes is as many words as it has, and one of them may be the flag."""
    text = 'if [ -n "$X" ]; then MORE=(--gpu-memory-utilization 0.9); fi; vllm serve m "$@" "${MORE[@]}"'
    assert script(text).line.args_end is None
    assert script(text.replace('"$@" "${MORE[@]}"', '"${MORE[@]}" "$@"')).line.args_end == 2


def test_a_shell_s_own_name_is_put_in() -> None:
    """`bash -c 'exec "$0" "$@"' vllm serve m`: the word after the text is `$0`."""
    found = read_arguments(["bash", "-c", 'exec "$0" "$@"', "vllm", "serve"], ["m", "--port=1"])
    assert (found.model, found.whole_number(Flag.PORT).value, found.line.args_end) == ("m", 1, 2)


@pytest.mark.parametrize(
    "before",
    [
        ["gosu", "vllm"],
        ["nice", "-n", "5"],
        ["numactl", "-N", "0", "-m", "0"],
        ["nsys", "profile", "-o", "/out"],
        ["timeout", "3600"],
        ["/bin/su-exec", "llm", "tini", "-g", "--"],
        ["env", "-u", "X", "A=b"],
    ],
)
def test_a_shell_behind_any_program_is_read(before: list[str]) -> None:
    """Whatever hands the rest on, with values of its own that are no options."""
    found = read_arguments([*before, "bash", "-ec", "vllm serve m --gpu-memory-utilization 0.5"], None)
    assert (share(found), found.form) == ("0.5", Form.SHELL)


def test_words_that_come_from_elsewhere_are_not_taken_for_all() -> None:
    """`xargs` adds what it reads."""
    found = script("xargs vllm serve m --port 1 < /args")
    assert (found.line.names_vllm, found.line.readable, found.occurrences) == (True, False, ())


@pytest.mark.parametrize(
    ("line", "utilization", "port"),
    [
        (". /etc/server/env", None, None),
        ("set -a; source ./env; set +a", None, None),
        (". /etc/server/env; UTIL=0.4", "0.4", None),
        ("source /opt/venv/bin/activate", "0.5", 1),
        (". /dev/null", "0.5", 1),
    ],
)
def test_a_file_that_is_not_at_hand_may_set_any_variable(line: str, utilization: str | None, port: int | None) -> None:
    """What is set behind it is known again; a virtual environment sets nothing that a server is started with."""
    found = script(f"{line}\nvllm serve m --gpu-memory-utilization $UTIL ${{MORE:---port 1}}", UTIL="0.5")
    assert (share(found), found.whole_number(Flag.PORT).value) == (utilization, port)
