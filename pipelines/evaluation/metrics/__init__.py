"""Metrics of answers, lists, detectors and cost, and the table of them."""

from pipelines.evaluation.metrics.reliability import (
    ReliabilityBin,
    brier,
    calibration_error,
    reliability_bins,
)
from pipelines.evaluation.metrics.separation import (
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    best_accuracy,
    best_balanced_accuracy,
    best_cut,
    precision_recall_f1,
    youden,
)
from pipelines.evaluation.metrics.spans import SpanCounts, count_spans, sum_counts
from pipelines.evaluation.metrics.table import METRICS, Metric, MetricAnswer

__all__ = [
    "METRICS",
    "Metric",
    "MetricAnswer",
    "ReliabilityBin",
    "SpanCounts",
    "accuracy",
    "auroc",
    "average_precision",
    "balanced_accuracy",
    "best_accuracy",
    "best_balanced_accuracy",
    "best_cut",
    "brier",
    "calibration_error",
    "count_spans",
    "precision_recall_f1",
    "reliability_bins",
    "sum_counts",
    "youden",
]
