"""The paper's roles, one module each: reviewer, optimizer, diagnoser."""
