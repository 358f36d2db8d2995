"""Matrix instructions on fragments: where each thread's registers lie, and the multiplication."""
