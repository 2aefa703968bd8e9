"""What ``kubectl cta`` makes of answers that no API server gives."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from cta_group_cli.cli import main

QUESTIONS = (["top"], ["quota"], ["explain", "pod/web"], ["explain", "deployment/web"], ["doctor"])


@contextmanager
def kubeconfig_of(body: str, folder: Path, *, missing: str | None = None) -> Iterator[str]:
    """Answer everything with ``body``, paths with ``missing`` in them by 404, and return the kubeconfig of that."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if missing and missing in self.path else 200)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET  # noqa: N815 - the base class finds methods by these names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "me", "user": {}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    try:
        yield str(path)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "body",
    [
        "<html>sign in</html>",
        "[]",
        "null",
        "1",
        "",
        "{}",
        '{"metadata": null, "items": []}',
        '{"metadata": {}, "items": 3}',
        '{"metadata": {}, "items": [1]}',
        '{"metadata": {}, "items": [{"status": {"gpus": []}}]}',
    ],
)
def test_what_is_no_kubernetes_api_is_told_in_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, body: str
) -> None:
    """A sign-in page, a proxy or another service at that address: exit status 2 and a sentence that says where."""
    with kubeconfig_of(body, tmp_path) as kubeconfig:
        for question in QUESTIONS:
            assert main([*question, "--kubeconfig", kubeconfig]) == 2, question
            said = capsys.readouterr()
            assert said.out == ""
            assert said.err.startswith(f"kubectl cta {question[0]}: ")
            assert "Traceback" not in said.err


def test_a_quota_without_a_spec_does_not_hide_the_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One object of another form is named; the rest is shown."""
    items = [{"metadata": {"name": "odd"}}, {"metadata": {"name": "team"}, "spec": {"groups": 8, "namespaces": ["a"]}}]
    with kubeconfig_of(json.dumps({"metadata": {}, "items": items}), tmp_path) as kubeconfig:
        assert main(["quota", "--kubeconfig", kubeconfig]) == 1
    said = capsys.readouterr()
    assert "team" in said.out
    assert said.err.startswith("CTAQuota odd cannot be read by this version")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e400", "soon"])
def test_timeouts_that_are_none(capsys: pytest.CaptureFixture[str], seconds: str) -> None:
    """A timeout that no connection could have is refused when it is typed."""
    with pytest.raises(SystemExit) as ended:
        main(["top", f"--request-timeout={seconds}"])
    assert ended.value.code == 2
    assert "is no number above 0" in capsys.readouterr().err


def test_a_cluster_without_the_kinds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Commands about them say so and end; the doctor has that as a finding and looks at everything else."""
    with kubeconfig_of('{"metadata": {}, "items": []}', tmp_path, missing="ctagroup.dev") as kubeconfig:
        assert main(["top", "--kubeconfig", kubeconfig]) == 2
        assert "this cluster knows no CTANodes" in capsys.readouterr().err
        assert main(["doctor", "--kubeconfig", kubeconfig]) == 1
        said = capsys.readouterr().out
        assert "crds.enabled=true" in said
        assert "helm install" in said
