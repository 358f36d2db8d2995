"""The float64 reference, the interpreter of loop nests, and inputs for both, in numpy."""
