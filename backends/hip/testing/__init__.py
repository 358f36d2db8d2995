"""What tests of this backend share: library kernels with schedules, and sources written by hand."""
