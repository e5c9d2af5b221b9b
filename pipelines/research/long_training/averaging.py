"""`python -m pipelines.research.long_training.averaging`: one judge of several, with a calibration.

The weights are the mean of those of judges that began with the same ones (a uniform model soup:
Wortsman et al., ICML 2022); of one judge they are its own. How the judge reads may be another way
than theirs. Its probabilities are calibrated on the held-out pairs of a long training.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.errors import exit_status, failure
from pipelines.models.judges.inputs import EvidenceReading
from pipelines.models.judges.network import read_network, save_weights
from pipelines.models.judges.trained import JudgeReader, encoder_folder, near_for
from pipelines.research.long_training.calibrating import calibrated
from pipelines.research.long_training.mixture import CARD, read_examples
from pipelines.research.long_training.options import add_options, given
from pipelines.research.long_training.stages import TrainingPlan
from pipelines.research.training.examples import TrainingPair
from pipelines.research.training.fit import average


def averaged(
    judges: Sequence[Path],
    kept: Sequence[TrainingPair],
    to: Path,
    encoder: Path,
    reading: EvidenceReading,
    *,
    balance: float = TrainingPlan().balance,
) -> dict[str, Any]:
    """Write the judge that is the mean of `judges` into the folder `to`; returns its card.

    `judges` are folders of judges or of the weights of fits; `encoder` is the folder of the encoder
    that all of them began with. Raises InvalidInputError where there is no record of a training,
    and UnknownModelError where there are no weights.
    """
    cards = [_card(one) for one in judges]
    save_weights(average([read_network(one, encoder) for one in judges]), to, encoder)
    # Calibrated as it is shipped, which is rounded.
    reader = JudgeReader(read_network(to, encoder), encoder, {}, reading, near_for(reading))
    card = {
        "scaling": calibrated(reader, kept, balance=balance),
        "reading": reading._asdict(),
        "averaged": cards,
    }
    (to / "judge.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return card


def _card(folder: Path) -> dict[str, Any]:
    """Return the record of a judge; of the weights of a fit that of the fit, with that of
    its pairs.
    """
    judge, fit = folder / "judge.json", folder.parent / "done.json"
    if judge.is_file():
        return json.loads(judge.read_text(encoding="utf-8"))
    if fit.is_file():
        pairs = fit.parents[1] / CARD
        known = {"pairs": json.loads(pairs.read_text(encoding="utf-8"))} if pairs.is_file() else {}
        return json.loads(fit.read_text(encoding="utf-8")) | known
    raise failure("research.no_training", folder=folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the judge; 1 when it failed, 2 for unusable input."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.long_training.averaging",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--judges", type=Path, nargs="+", required=True, help="folders of judges or of weights"
    )
    parser.add_argument("--pairs", type=Path, required=True, help="held-out pairs: kept.jsonl")
    parser.add_argument("--to", type=Path, required=True, help="folder of the new judge")
    parser.add_argument(
        "--balance", type=float, default=TrainingPlan().balance, help="as in the long training"
    )
    add_options(parser, "reading", TrainingPlan().reading)
    return exit_status(partial(_run, parser.parse_args(arguments)))


def _run(options: argparse.Namespace) -> None:
    card = averaged(
        options.judges,
        read_examples(options.pairs),
        options.to,
        encoder_folder(),
        given(options, "reading", TrainingPlan().reading),
        balance=options.balance,
    )
    print(json.dumps(card["scaling"], indent=2))


if __name__ == "__main__":
    sys.exit(main())
