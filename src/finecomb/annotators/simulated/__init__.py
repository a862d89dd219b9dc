"""Annotators with known recall, precision, jitter and confusion: for the demo, for load, for tests of recovery."""

from finecomb.annotators.simulated.simulated_annotators import Simulated, crowd, plant, simulate

__all__ = ["Simulated", "crowd", "plant", "simulate"]
