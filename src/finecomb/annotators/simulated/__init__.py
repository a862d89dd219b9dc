"""Simulated annotators with known recall, precision, jitter and confusion, for the demo and for tests of statistics."""

from finecomb.annotators.simulated.simulated_annotators import (
    SimulatedAnnotator,
    make_crowd,
    plant_errors,
    simulate_annotations,
)

__all__ = ["SimulatedAnnotator", "make_crowd", "plant_errors", "simulate_annotations"]
