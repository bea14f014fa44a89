"""`python -m kernelskill` is the `kernelskill` command."""

from kernelskill.cli import main

main()
