"""A model of scale: how fast searches go with more workers, devices and machines than there are here.

`model.py` is the simulation, `real.py` makes the runs that it is compared with, `cases.py` says what it is
used for, and `__main__.py` is the command. docs/scale.md has the results.
"""
