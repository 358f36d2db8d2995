"""What the languages of GPUs share: a loop nest as a tile program, decided and not yet spelled."""
