"""Assembly: what compiled code of a GPU holds, counted by class of instruction."""
