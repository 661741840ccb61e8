# SPDX-License-Identifier: Apache-2.0
"""An OCI image with nothing but the files, below /opt/beeline: to be copied into another image or a volume."""
import hashlib
import json
import time

import contents
import tarball


def write(release, package, folder):
    blobs = {}

    def blob(data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = contents.File(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def document(value, media_type):
        return blob(json.dumps(value, sort_keys=True).encode(), media_type)

    packed = tarball.packed(package.files, "opt/beeline/", release.epoch)
    plain = tarball.packed(package.files, "opt/beeline/", release.epoch, compressed=False)
    layer = blob(packed, "application/vnd.oci.image.layer.v1.tar+gzip")
    config = document({
        "architecture": release.architecture,
        "os": "linux",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)),
        "config": {"Labels": {"org.opencontainers.image.title": "beeline",
                              "org.opencontainers.image.version": release.version,
                              "org.opencontainers.image.revision": release.revision or "unknown",
                              "org.opencontainers.image.licenses": "Apache-2.0"}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]},
    }, "application/vnd.oci.image.config.v1+json")
    manifest = document({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    }, "application/vnd.oci.image.manifest.v1+json")
    tag = release.python_version.replace("+", "-")  # has only characters that a tag may have
    manifest["annotations"] = {"org.opencontainers.image.ref.name": tag}
    index = {"schemaVersion": 2, "manifests": [manifest]}
    blobs["index.json"] = contents.File(json.dumps(index, sort_keys=True).encode())
    blobs["oci-layout"] = contents.File(b'{"imageLayoutVersion": "1.0.0"}')

    path = folder / f"{release.stem(package)}-image.tar"
    path.write_bytes(tarball.packed(blobs, "", release.epoch, compressed=False))
    return path
