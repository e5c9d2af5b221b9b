"""Training, calibration and measurements. Nothing in the product imports it."""
