"""The reviewer: compile, verify, profile and time one solution. Stand-alone; imports nothing from kernelskill."""
