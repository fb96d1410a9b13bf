"""What is remembered: operands, segments, and the windows made of them."""
