"""Runs served to a coding agent over the Model Context Protocol; needs the extra `mcp`."""
