"""KernelSkill: a rule engine picks one GPU optimisation method a round, a writer applies it, and the record says why."""

__version__ = "0.1.0"
