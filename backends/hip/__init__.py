"""HIP C++ for AMD GPUs: emission, builds without ROCm, an emulator of work-items, and runs."""
