"""Many tasks at once: KernelBench and folders of tasks, their lint, runs over all of them, and the scores."""
