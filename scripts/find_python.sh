#!/bin/sh
# Prints a Python that can run Veriscope: $PYTHON where it is set, else the first that works.
set -eu

usable() {
    # A version manager's shim exists for versions that are not active, so it has to be run.
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    if usable "$PYTHON"; then
        echo "$PYTHON"
        exit 0
    fi
    echo "PYTHON=$PYTHON is not a working Python 3.11 or newer." >&2
    echo "Name another, e.g. make run PYTHON=python3.12, or leave PYTHON out." >&2
    exit 1
fi

for candidate in python3.11 python3.12 python3.13 python3; do
    if usable "$candidate"; then
        echo "$candidate"
        exit 0
    fi
done

echo "Veriscope needs Python 3.11 or newer, and none was found on the PATH." >&2
echo "Install one, or name it: make run PYTHON=/path/to/python3.12" >&2
exit 1
