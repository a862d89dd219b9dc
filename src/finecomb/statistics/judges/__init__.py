"""Judges compared with people: agreement tests, calibration, and estimates from judges and people together."""
