# The images of the project, one a target: plugin, operator, and vllm-stand-in (tests and demo only).
#
#   docker build --target plugin --tag cta-group-plugin .
#
# BASE_IMAGE may be any Debian 12 with apt. `make images` puts a root made by debootstrap there and needs no registry.
# Two secrets are optional and never reach a layer: apt.conf and pip.conf, for a build machine that gets its packages
# from elsewhere.
#
# Layers go from what changes least to what changes most: Python, the pinned dependencies, this project. What dpkg and
# pip record stays in the images, so that a scanner can list all of it.
ARG BASE_IMAGE=debian:bookworm-20260824-slim

FROM ${BASE_IMAGE} AS python
ENV LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=sources.list \
    APT_CONFIG=/run/secrets/apt.conf apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive APT_CONFIG=/run/secrets/apt.conf \
       apt-get install -qq --no-install-recommends python3 >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/*.log /var/log/apt

# ---------------------------------------------------------------- stages that no image contains
FROM python AS build
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=sources.list \
    APT_CONFIG=/run/secrets/apt.conf apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive APT_CONFIG=/run/secrets/apt.conf \
       apt-get install -qq --no-install-recommends ca-certificates python3-venv >/dev/null
ENV PIP_CONFIG_FILE=/run/secrets/pip.conf PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
    PIP_NO_COMPILE=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements/build.txt /requirements/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    python3 -m venv /opt/build \
    && /opt/build/bin/pip install -q --require-hashes -r /requirements/build.txt \
    && python3 -m venv --without-pip /opt/cta-group

# Compiled files are found by hash and not compared with their source: a container with a read-only root cannot write
# them, and times of files differ between builders.
FROM build AS plugin-dependencies
COPY requirements/plugin.txt /requirements/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    /opt/build/bin/pip --python /opt/cta-group/bin/python install -q --require-hashes --no-deps --only-binary :all: \
        -r /requirements/plugin.txt \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/cta-group/lib

FROM build AS operator-dependencies
COPY requirements/operator.txt /requirements/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.pem \
    /opt/build/bin/pip --python /opt/cta-group/bin/python install -q --require-hashes --no-deps --only-binary :all: \
        -r /requirements/operator.txt \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/cta-group/lib

FROM build AS project
WORKDIR /source
COPY LICENSE README.md pyproject.toml ./
COPY core/src core/src
COPY plugin/src plugin/src
COPY operator/src operator/src
COPY cli/src cli/src
RUN /opt/build/bin/pip wheel -q --no-index --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/build/bin/pip --python /opt/cta-group/bin/python install -q --no-index --no-deps --root /project /wheels/*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash -s /project -p / /project/opt/cta-group/lib

# ---------------------------------------------------------------- the images
FROM python AS plugin
COPY --from=plugin-dependencies /opt/cta-group /opt/cta-group
COPY --from=project /project/opt/cta-group /opt/cta-group
ENV PATH=/opt/cta-group/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# An arena of memory for each of grpcio's threads is half a MiB that a node has no use for.
ENV MALLOC_ARENA_MAX=1
ARG VERSION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="cta-group-plugin" \
      org.opencontainers.image.description="Kubernetes device plugin and MPS supervisor for nvidia.com/cta-group" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0"
# Root by need: the kubelet's device-plugins folder belongs to root with mode 0750, and MPS daemons serve every user's
# clients only when root runs them.
USER 0
ENTRYPOINT ["cta-group-plugin"]
CMD ["run"]

FROM python AS operator
COPY --from=operator-dependencies /opt/cta-group /opt/cta-group
COPY --from=project /project/opt/cta-group /opt/cta-group
ENV PATH=/opt/cta-group/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ARG VERSION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="cta-group-operator" \
      org.opencontainers.image.description="Kubernetes operator for nvidia.com/cta-group: quota, placement, vLLM" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0"
# Any other number works too (OpenShift chooses its own): nothing in the image belongs to this one.
USER 65532:65532
ENTRYPOINT ["cta-group-operator"]
CMD ["run"]

# Not vLLM: a program that reads vLLM's arguments and answers like it, for tests and the demo.
FROM python AS vllm-stand-in
RUN printf '#!/bin/sh\nexec python3 /opt/vllm-stand-in/vllm_stand_in.py "$@"\n' >/usr/local/bin/vllm \
    && chmod 0755 /usr/local/bin/vllm
COPY tests/stand_in /opt/vllm-stand-in
ARG VERSION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="cta-group-vllm-stand-in" \
      org.opencontainers.image.description="A stand-in for vLLM in tests and the demo; it serves no model" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
# As vLLM's own image: a pod's args alone are arguments of `vllm serve`.
ENTRYPOINT ["vllm", "serve"]
