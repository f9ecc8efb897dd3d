# The command line with COLMAP's Python package, so that `sync` and verification run in one image:
#   docker build -t stiefelsync .
#   docker run --rm -v "$PWD:/data" stiefelsync sync database.db -o clean.db --report report.html
# Not the slim image: this one has a C compiler for the kernels.
FROM python:3.12 AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
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
