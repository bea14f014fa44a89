"""Property-based checks of one solution: Hypothesis draws the examples, the smallest one that shows a fault comes back."""
