"""Algorithm variants: rewrites equations by the algebraic decisions of a schedule."""
