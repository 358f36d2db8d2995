"""The reference in float64, the interpreter of loop nests, and inputs for them; in numpy."""
