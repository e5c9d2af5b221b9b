"""Makes the judge that ships: pairs, training, the mean of several fits and its calibration."""
