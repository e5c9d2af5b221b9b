# Either front end in one container, as a user without rights:
#   docker build -t veriscope .
#   docker run -p 127.0.0.1:7860:7860 veriscope    the workbench, for people at this machine
#   docker run -p 7860:7860 veriscope space        the page for everybody, its API and MCP server
# At the first start it fetches the weights of the default models into /data (0.6 GB; -e MODEL=small
# leaves the language model out, -e MODEL=large adds a larger one), and starts without them where it
# cannot. Runs are kept in /data too: give it a volume to keep them, or name a PostgreSQL database with
# -e VERISCOPE_DATABASE_URL=postgresql://user:password@host/name. From inside it cannot be seen who
# reaches the workbench, so it is held to be everybody: -e VERISCOPE_ALLOW_ANY_ADDRESS=1 lets its users
# name models at any address and in any folder.
FROM python:3.12-slim

RUN useradd --create-home --uid 1000 veriscope && mkdir -m 700 /data && chown veriscope /data
WORKDIR /home/veriscope/app

# The packages take 2.3 GB: torch is for processors alone, unless the image is built with
# --build-arg GPU=1 (then run it with --gpus all). Everything else is installed by its checksum, also uv,
# which knows where that build of torch is.
ARG GPU=
COPY requirements.txt requirements*.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-uv.lock \
    && if [ -n "$GPU" ]; then \
        pip install --no-cache-dir --no-deps --require-hashes -r requirements-torch.lock; \
    else \
        uv pip install --system --no-cache --no-deps --torch-backend cpu \
            "$(grep '^torch==' requirements.txt)+cpu"; \
    fi \
    && pip install --no-cache-dir --no-deps --require-hashes \
        -r requirements.lock -r requirements-embedded.lock -r requirements-postgres.lock
COPY --chown=veriscope . .

USER veriscope
ENV PORT=7860 \
    VERISCOPE_DATA=/data \
    GRADIO_ANALYTICS_ENABLED=False \
    HF_HUB_DISABLE_TELEMETRY=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1
EXPOSE 7860
VOLUME /data

HEALTHCHECK --interval=30s --timeout=10s --start-period=900s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/health', timeout=8)"]

ENTRYPOINT ["sh", "scripts/serve.sh"]
CMD ["workbench"]
