"""Algorithm variants: the equations that the algebraic decisions of a schedule rewrite."""
