"""`python -m pipelines`: the command line, which is a front end of its own (`app.cli`)."""

from runpy import run_module

if __name__ == "__main__":
    run_module("app.cli", run_name="__main__")
