"""Packages are found, and two data folders join them; everything else is in setup.cfg."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["kernelskill", "kernelskill.*", "evaluator", "evaluator.*"]),
                "kernelskill.rules", "kernelskill.knowledge"])
