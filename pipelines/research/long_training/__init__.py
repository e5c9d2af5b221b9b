"""Training that goes on for days: a mixture of pairs, a trainer with checkpoints, a calibration."""
