"""Task lint: can a task tell right from wrong? Null candidates, ignored inputs, redundant work. No solution runs here."""
