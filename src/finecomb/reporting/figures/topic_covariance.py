"""Heat maps of topic covariances, one panel per corpus (Deng et al. 2022, Figures 6, 8 and 9)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy

from finecomb.reporting.figures.figure_model import Axis, Chart, PlotPanel, Raster

Floats = NDArray[np.float64]
Pixels = NDArray[np.uint8]  # (rows, columns, 3)

MAX_COVARIANCE = 5.0
_LOW_COLOUR, _MIDDLE_COLOUR, _HIGH_COLOUR = np.array([[33, 75, 127], [247, 247, 245], [150, 43, 26]], float)
_PANEL_SIDE = 260  # px


def topic_covariance_chart(points: Mapping[str, Floats]) -> Chart:
    """Draw one covariance panel per named (documents, topics) array, and the scale of colours.

    The hierarchical clustering of the first array orders the topics of all panels. Values are clipped to [-5, 5], as in
    the paper.
    """
    matrices = {name: np.cov(values, rowvar=False) for name, values in points.items()}
    order = clustered_topic_order(next(iter(matrices.values())))
    side = Axis(0, 1, (), length=_PANEL_SIDE, hidden=True)
    panels = [
        PlotPanel(side, side, (Raster(encode_png(covariance_colours(matrix[np.ix_(order, order)]))),), name)
        for name, matrix in matrices.items()
    ]
    strip = covariance_colours(np.linspace(MAX_COVARIANCE, -MAX_COVARIANCE, 64)[:, None])
    scale = Axis(-MAX_COVARIANCE, MAX_COVARIANCE, (-MAX_COVARIANCE, 0, MAX_COVARIANCE), length=_PANEL_SIDE)
    panels.append(PlotPanel(Axis(0, 1, (), length=14, hidden=True), scale, (Raster(encode_png(strip)),), ""))
    note = f"Blue: negative, red: positive; values beyond ±{MAX_COVARIANCE:g} have the colour of the limit."
    title = "Covariances of topics"
    return Chart("covariances", title, panels=tuple(panels), columns=len(panels), notes=(note,))


def clustered_topic_order(covariance: Floats) -> NDArray[np.intp]:
    """Return the topics in the leaf order of a hierarchical clustering of the rows of the covariance matrix."""
    if len(covariance) < 3:
        return np.arange(len(covariance))
    tree = hierarchy.linkage(covariance, method="average", optimal_ordering=True)
    return np.asarray(hierarchy.leaves_list(tree), np.intp)


def covariance_colours(matrix: Floats) -> Pixels:
    """Map covariances to colours: blue below zero, white at zero, red above, saturated at the clipping limits."""
    share = (np.clip(matrix, -MAX_COVARIANCE, MAX_COVARIANCE) / MAX_COVARIANCE)[..., None]
    mixed = (
        _MIDDLE_COLOUR
        + np.maximum(share, 0) * (_HIGH_COLOUR - _MIDDLE_COLOUR)
        + np.maximum(-share, 0) * (_LOW_COLOUR - _MIDDLE_COLOUR)
    )
    return np.asarray(np.round(mixed), np.uint8)


def encode_png(pixels: Pixels) -> bytes:
    """Encode an RGB image as PNG."""
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    )
