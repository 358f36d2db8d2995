"""Matrix instructions on fragments: the register layouts of each thread, and the multiplication."""
