# The command line with COLMAP's Python package, so that `sync` and verification run in one image:
#   docker build -t stiefelsync .
#   docker run --rm -v "$PWD:/data" stiefelsync sync database.db -o clean.db --report report.html
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS build
# The kernels need a C compiler.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
COPY --from=build /wheels /wheels
# pycolmap's wheel needs these two of the system's libraries.
# The wheel is the one built above; the system's libraries follow the base image.
# hadolint ignore=DL3008,DL3013
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgl1 libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && wheel=$(ls /wheels/*.whl) \
    && pip install --no-cache-dir "${wheel}[report,hloc,colmap]" \
    && useradd --create-home --uid 1000 user
USER 1000
WORKDIR /data
ENTRYPOINT ["stiefelsync"]
CMD ["--help"]
