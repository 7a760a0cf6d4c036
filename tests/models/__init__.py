"""Real exporters' graphs, and what is known about each of them."""
