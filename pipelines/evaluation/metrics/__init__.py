"""Metrics of answers, lists, detectors and cost, and the table of them."""

from pipelines.evaluation.metrics.answers import SpanCounts, count_spans, sum_counts
from pipelines.evaluation.metrics.detection import (
    ReliabilityBin,
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    best_accuracy,
    best_balanced_accuracy,
    best_cut,
    brier,
    calibration_error,
    precision_recall_f1,
    reliability_bins,
    youden,
)
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
