"""The parts of ../crawler.py: `model` and `job` are what a project would have, the rest is the stage around them."""
