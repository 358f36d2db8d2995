"""What backends share whose code objects a driver launches."""
