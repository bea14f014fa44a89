"""The paper's roles, one module each: reviewer, planner, optimizer, diagnoser."""
