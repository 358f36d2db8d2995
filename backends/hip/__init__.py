"""HIP C++ for AMD GPUs: emission, building without ROCm, an emulator of work-items, and running."""
