"""A model of scale: the speed of searches with more workers, devices and machines than available
here.

`model.py` is the simulation, `real.py` makes the runs that it is compared with, `cases.py` has its
use cases, and `__main__.py` is the command. docs/scale.md has the results.
"""
