"""The loop nest that templates render, its single operations, and the memory that it takes."""
