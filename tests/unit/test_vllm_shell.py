"""vLLM's arguments inside shell strings, scripts, and behind variables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.words import Form
from read_scripts import script, share

UTILIZATION = Flag.GPU_MEMORY_UTILIZATION


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m --gpu-memory-utilization 0.5",
        "exec vllm serve m --gpu-memory-utilization=0.5",
        "pip install x && exec vllm serve m --gpu-memory-utilization '0.5'",
        "ulimit -n 65535; vllm serve m \\\n  --port 1 \\\n  --gpu-memory-util 0.5\n",
        "# vllm serve old --gpu-memory-utilization 0.9\nvllm serve m --gpu-memory-utilization 0.5 # a quarter",
        "set -ex\ncd /work\n\nvllm serve m \\\n\t--gpu_memory_utilization=0.5 2>&1 | tee /log/vllm",
        'vllm serve "m" --gpu-memory-utilization "0.5" > /log 2>&1',
        "A=0.5\nvllm serve m --gpu-memory-utilization $A",
        "export A=0.5 B; vllm serve m --gpu-memory-utilization=${A}",
        "A=0.5 B=1 vllm serve m --gpu-memory-utilization ${UTIL:-0.5}",
        "vllm serve m --gpu-memory-utilization ${UTIL-0.5}",
        "vllm serve m --gpu-memory-utilization ${NOT:-$GIVEN}",
        "vllm serve m --gpu-memory-utilization ${GIVEN:-0.9}",
        "vllm serve m ${GIVEN:+--gpu-memory-utilization=$GIVEN}",
        'ARGS=(--port 1 "--gpu-memory-utilization" 0.5)\nvllm serve m "${ARGS[@]}"',
        'ARGS=(--port 1)\nARGS+=(\n  --gpu-memory-utilization=0.5\n)\nexec vllm serve m "${ARGS[@]}"',
        'ARGS="--port 1"\nARGS="$ARGS --gpu-memory-utilization 0.5"\nvllm serve m $ARGS',
        'ARGS="--port 1"; ARGS+=" --gpu-memory-utilization 0.5"; vllm serve m $ARGS',
        'eval "exec vllm serve m --gpu-memory-utilization ${GIVEN}"',
        'eval exec vllm serve m --tokenizer \\"x y\\" --gpu-memory-utilization $GIVEN',
        "cat > x <<EOF\nvllm serve n --gpu-memory-utilization 0.9\nEOF\nvllm serve m --gpu-memory-utilization 0.5",
        "bash -c 'vllm serve m --gpu-memory-utilization $GIVEN'",
        "env A=b nohup /opt/venv/bin/vllm serve m --gpu-memory-utilization 0.5 &\nwait",
        "echo vllm serve x --gpu-memory-utilization 0.9; vllm serve m --gpu-memory-utilization 0.5",
        "python3 -m vllm.entrypoints.openai.api_server --model m --gpu-memory-utilization .5",
        'if [ -z "$A" ]; then echo no; fi; vllm serve m --gpu-memory-utilization 0.5',
        "uv run vllm serve m --gpu-memory-utilization 0.5",
        "bash -euo pipefail -c 'vllm serve m --gpu-memory-utilization 0.5'",
        "f() { A=0.9; echo $1; }\nA=0.5\nvllm serve m --gpu-memory-utilization $A",
        "/scripts/known.sh",
        ". /scripts/variables.sh; vllm serve m --gpu-memory-utilization $SOURCED",
        "bash /scripts/known.sh",
    ],
)
def test_what_a_shell_makes_of_a_script_is_read(text: str) -> None:
    """Quotes, continued lines, comments, chains, variables, defaults, arrays, eval, scripts that are at hand."""
    files = {
        "/scripts/known.sh": "#!/bin/bash\nvllm serve m --gpu-memory-utilization 0.5\n",
        "/scripts/variables.sh": "export SOURCED=0.5",
    }
    found = read_arguments(["sh", "-c", text], None, Surroundings({"GIVEN": "0.5"}, files=files))
    assert (share(found), found.model, found.form, found.problems) == ("0.5", "m", Form.SHELL, ())


@pytest.mark.parametrize(
    "value",
    [
        "$NOT_GIVEN",
        "${NOT_GIVEN}",
        "$(cat /share)",
        "`cat /share`",
        "${SECRET:-0.5}",
        "$SECRET",
        "${X%%.*}",
        "$((1 / 2))",
        "$BRANCH",
        "$MAYBE",
        "${LIST[1]}",
        "$(UTIL)",
    ],
)
def test_what_only_a_running_shell_knows_is_not_guessed(value: str) -> None:
    """The flag is given and its value is not known; the other flags are read."""
    text = (
        "if true; then BRANCH=0.5; fi\n[ -e x ] || MAYBE=0.5\nLIST=(0.1 0.2)\n"
        f"vllm serve m --gpu-memory-utilization {value} --port 1"
    )
    found = script(text, SECRET=None)
    reading = found.utilization()
    assert reading.given is not None
    assert (reading.value, bool(reading.unreadable)) == (None, True)
    assert found.whole_number(Flag.PORT).value == 1


@pytest.mark.parametrize("start", ["run() {", "run () {", "function run {", "run()\n{"])
def test_the_parameters_of_a_function_are_its_own(start: str) -> None:
    """What it is called with is not followed."""
    found = script(f'{start} vllm serve --port 1 --gpu-memory-utilization $1 "$@"; }}\nrun 0.5 m', "0.9")
    assert found.utilization().given is not None
    assert (share(found), found.model_known, found.line.args_end) == (None, False, None)


def test_variables_with_unknown_names_leave_defaults_unknown() -> None:
    """`${X:-0.5}` is 0.5 only when nothing can have set X."""
    text = "vllm serve m --gpu-memory-utilization ${X:-0.5}"
    hidden = read_arguments(["sh", "-c", text], None, Surroundings(more_variables=True))
    assert (share(script(text)), share(hidden)) == ("0.5", None)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ('vllm serve m "$@"', ("--gpu-memory-utilization", "0.5")),
        ("exec vllm serve m $@", ("--gpu-memory-utilization=0.5",)),
        ('exec "$@"', ("vllm", "serve", "m", "--gpu-memory-utilization", "0.5")),
        ('eval "exec vllm serve m ${NOTHING:-} $@"', ("--gpu-memory-utilization=0.5",)),
        ("vllm serve $1 --gpu-memory-utilization $2", ("m", "0.5")),
    ],
)
def test_parameters_of_a_script_are_put_in(text: str, parameters: tuple[str, ...]) -> None:
    """`$@` and `$1` are the words after the script's name; in `$@` they keep their place in `args`."""
    found = script(text, *parameters)
    assert (share(found), found.model) == ("0.5", "m")
    given = found.utilization().given
    assert given is not None
    assert (given.word.place is not None) is ("@" in text)


@pytest.mark.parametrize(
    ("command", "args", "end"),
    [
        (["bash", "-c", 'vllm serve m "$@"', "--"], [], 1),
        (["bash", "-c", 'vllm serve m "$@" --port 1', "--"], ["-tp=1"], 2),
        (["bash", "-c", 'vllm serve m "$@"'], [], None),
        (["bash", "-c", "vllm serve m"], ["--", "x"], None),
        (["bash", "-c", "vllm serve m $1", "--"], [], 1),
        (["vllm", "serve", "m"], [], 1),
    ],
)
def test_it_is_known_where_a_word_added_to_the_arguments_comes_out(
    command: list[str], args: list[str], end: int | None
) -> None:
    """Only what comes to vLLM can be edited."""
    assert read_arguments(command, args).line.args_end == end


@pytest.mark.parametrize(
    ("text", "value", "end"),
    [
        ("vllm serve m ${VLLM_ADDITIONAL_ARGS} --port 1", "", 1),
        ("vllm serve m --port 1 $VLLM_ADDITIONAL_ARGS", "-tp 1", 5),
        ("vllm serve m --port 1 $VLLM_ADDITIONAL_ARGS", None, None),
        ('vllm serve m "$VLLM_ADDITIONAL_ARGS"', "", None),
        ("vllm serve m", "", None),
    ],
)
def test_it_is_known_where_the_additional_arguments_come_out(text: str, value: str | None, end: int | None) -> None:
    """KServe's variable is a way in where the script uses it without quotes."""
    assert script(text, VLLM_ADDITIONAL_ARGS=value).line.variable_end == end


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve 'm",
        "vllm serve m; vllm serve n",
        "if a; then vllm serve m; else vllm serve n; fi",
        "ARGS=(--port 1",
        'vllm serve "m',
        "vllm serve m $(cat",
    ],
)
def test_a_script_that_cannot_be_followed_only_says_that_it_starts_vllm(text: str) -> None:
    """Two servers, or a quote without an end: nothing is read from it."""
    found = script(text)
    assert (found.form, found.line.readable, found.occurrences) == (Form.SHELL, False, ())


def test_a_script_that_is_at_hand_is_read() -> None:
    """A ConfigMap's script, run by a shell or by itself."""
    files = {"/scripts/start.sh": 'set -e\nvllm serve m --port 1 --gpu-memory-utilization "$1"\n'}
    for command in (["bash", "/scripts/start.sh", "0.5"], ["/scripts/start.sh", "0.5"]):
        found = read_arguments(command, None, Surroundings(files=files))
        assert (found.form, share(found)) == (Form.SCRIPT, "0.5")


def test_scripts_that_call_each_other_have_an_end() -> None:
    """A script that runs itself is given up."""
    files = {"/a.sh": "bash /a.sh"}
    assert not read_arguments(["bash", "/a.sh"], None, Surroundings(files=files)).line.readable


_OPERATORS = [
    "'",
    '"',
    "$",
    "${",
    "}",
    "$(",
    ")",
    "(",
    "`",
    "\\",
    "\n",
    ";",
    "&&",
    "|",
    "#",
    "<<E",
    "<",
    ">",
    "=",
    "\0",
]
_WORDS = ["vllm serve m ", "A=", "A=(", "$A", "$@", "--port ", "1", " ", "eval ", "if ", "fi", "bash -c ", "exec ", "é"]
_PIECES = st.sampled_from(_OPERATORS) | st.sampled_from(_WORDS)


@given(st.lists(_PIECES, max_size=14).map("".join) | st.text(max_size=30))
def test_reading_a_script_is_total(text: str) -> None:
    """Any text has an answer."""
    read_arguments(["sh", "-c", text, "--"], ["x"], Surroundings({"A": "b c", "B": None}))
    read_arguments([text], [text])


@pytest.mark.parametrize(
    "text",
    [
        "A=xxxxxxxxxxxxxxxx\n" + "A=$A$A\n" * 40 + "vllm serve m --port $A",
        "A=(x y)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 40 + 'vllm serve m --port "${A[@]}"',
        "bash /again.sh;" * 50,
        "A=" + "x" * 10_000 + "\n" + "vllm serve m --port $A" + " $A" * 5_000,
        "vllm serve m --port 1" + " --x=1" * 10_000,
        'vllm serve m --port "' + "1" * 100_000 + '"',
    ],
)
def test_a_script_that_grows_without_end_is_given_up(text: str) -> None:
    """Admission reads what anybody writes: neither memory nor time may grow with what a script would become."""
    found = read_arguments(["sh", "-c", text], None, Surroundings(files={"/again.sh": "bash /again.sh;" * 50}))
    assert found.whole_number(Flag.PORT).value is None
