"""Container images without a registry: archives in the OCI layout, made from a folder in one layer.

``ctr images import`` and every other tool that reads an OCI archive takes them.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_INDEX = "application/vnd.oci.image.index.v1+json"


def write_archive(root: Path, name: str, archive: Path, config: Mapping[str, Any]) -> Path:
    """Write the image ``name`` with the content of the folder ``root`` and return the archive's path.

    ``config`` is the image's ``config`` object (``Cmd``, ``Env``, ``User``, ...). The same folder gives the same
    archive, byte for byte; everything in it belongs to root.
    """
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False, filter=_of_nobody_in_particular)
    blobs = dict[str, bytes]()

    def blob(data: bytes, media_type: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    layer_blob = blob(layer.getvalue(), _LAYER)
    image = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": dict(config),
        "rootfs": {"type": "layers", "diff_ids": [layer_blob["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": blob(_json(image), _CONFIG),
        "layers": [layer_blob],
    }
    named = blob(_json(manifest), _MANIFEST) | {"annotations": {"io.containerd.image.name": name}}
    blobs["index.json"] = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [named]})
    blobs["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    _write_tar(archive, blobs)
    return archive


def _of_nobody_in_particular(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = 0
    return member


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _write_tar(archive: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(archive, "w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
