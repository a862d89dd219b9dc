"""Annotators with known recall, precision, jitter and confusion: for the demo, for load, for tests of recovery."""

from finecomb.annotators.simulated.simulated_annotators import (
    SimulatedAnnotator,
    make_crowd,
    plant_errors,
    simulate_annotations,
)

__all__ = ["SimulatedAnnotator", "make_crowd", "plant_errors", "simulate_annotations"]
