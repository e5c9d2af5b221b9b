#!/bin/sh
# Serves one of the two front ends on every address of this machine: serve.sh [workbench|space].
# PORT says on which port, else 7860. Weights that are missing are fetched first: MODEL says which.
set -eu
fetch() {
    python -m pipelines.models.fetch --optional "${MODEL:-default}"
}
port="${PORT:-7860}"
case "${1:-workbench}" in
workbench)
    fetch
    exec python -m streamlit run app/workbench.py --server.address 0.0.0.0 \
        --server.port "$port" --server.headless true --browser.gatherUsageStats false
    ;;
space)
    fetch
    export GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT="$port"
    exec python app/space.py
    ;;
*)
    echo "There is no front end '$1'. Say workbench or space." >&2
    exit 2
    ;;
esac
