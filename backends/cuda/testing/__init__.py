"""What tests of this backend share: emitted kernels run on the CPU, thread by thread."""
