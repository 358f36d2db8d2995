"""What the languages of GPUs share: tile programs, and in folders the time model, the analysis of
compiled code, and devices."""
