"""What a build machine knows about its package mirrors, handed to an image build without reaching a layer.

The Dockerfile mounts these files as secrets while apt or pip runs; a public build goes without any of them.
"""

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from cluster_harness.debian_root import package_sources

_SECRETS = "/run/secrets"
# What says where packages are and how they are reached; folders of this machine mean nothing inside a build.
_PIP_SETTINGS = ("default-timeout", "extra-index-url", "index-url", "proxy", "retries", "timeout", "trusted-host")
_DEBIAN_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def write_build_secrets(folder: Path, environment: Mapping[str, str]) -> dict[str, Path]:
    """Write one file a secret into ``folder`` and return them by the id that the Dockerfile uses."""
    pip_settings = _pip_settings()
    certificates = Path(pip_settings.get("cert") or environment.get("SSL_CERT_FILE") or _DEBIAN_CERTIFICATES)
    contents = {"apt.conf": _apt_configuration(), "pip.conf": _pip_configuration(pip_settings, certificates)}
    if sources := package_sources():
        contents["sources.list"] = sources
    if certificates.is_file():
        contents["ca.pem"] = certificates.read_text()
    for name, content in contents.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_text(content)
    return {name: folder / name for name in contents}


def _apt_configuration() -> str:
    argv = ["apt-config", "dump", "Acquire"]
    acquire = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    sources = f'Dir::Etc::sourcelist "{_SECRETS}/sources.list";\nDir::Etc::sourceparts "-";\n'
    return f"{acquire}{sources}" if package_sources() else acquire


def _pip_settings() -> dict[str, str]:
    """Read pip's settings from its files and environment; the environment, listed under ``:env:``, wins."""
    argv = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    listed.sort(key=lambda line: line.startswith(":env:"))
    settings: dict[str, str] = {}
    for line in listed:
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    return settings


def _pip_configuration(settings: Mapping[str, str], certificates: Path) -> str:
    lines = [f"{name} = {value}".replace("\n", "\n  ") for name, value in settings.items() if name in _PIP_SETTINGS]
    if certificates.is_file():
        lines.append(f"cert = {_SECRETS}/ca.pem")
    return "\n".join(["[global]", *lines, ""])
