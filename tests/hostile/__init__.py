"""Sources edited to do harm: refused by admission, or contained when they run."""
