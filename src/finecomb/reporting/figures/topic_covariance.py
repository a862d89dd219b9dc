"""Covariances of topic strengths side by side (Deng et al. 2022, Figures 6, 8 and 9), as SVG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy

Floats = NDArray[np.float64]
Pixels = NDArray[np.uint8]  # (rows, columns, 3)

MAX_COVARIANCE = 5.0
_LOW_COLOUR, _MIDDLE_COLOUR, _HIGH_COLOUR = np.array([[33, 75, 127], [247, 247, 245], [150, 43, 26]], float)
_PANEL_SIDE, _PANEL_GAP, _TOP_MARGIN, _COLOUR_BAR_WIDTH = 260, 18, 30, 14


def covariance_figure(points: Mapping[str, Floats]) -> str:
    """One panel for each named (documents, topics) array; the first one's clustering orders the topics of all.

    Values are cut at -5 and 5, as in the paper.
    """
    matrices = {name: np.cov(values, rowvar=False) for name, values in points.items()}
    order = cluster_order(next(iter(matrices.values())))
    panels = [
        _panel(at * (_PANEL_SIDE + _PANEL_GAP), name, map_colours(matrix[np.ix_(order, order)]))
        for at, (name, matrix) in enumerate(matrices.items())
    ]
    width = len(panels) * (_PANEL_SIDE + _PANEL_GAP) + 60
    scale = _colour_bar(width - 60)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_PANEL_SIDE + _TOP_MARGIN + 6}" '
        f'width="{width}" '
        f'font-family="sans-serif" font-size="13" fill="#14161a">{"".join(panels)}{scale}</svg>'
    )


def cluster_order(covariance: Floats) -> NDArray[np.intp]:
    """The topics in the order of the leaves of their hierarchical clustering, rows of the matrix being compared."""
    if len(covariance) < 3:
        return np.arange(len(covariance))
    tree = hierarchy.linkage(covariance, method="average", optimal_ordering=True)
    return np.asarray(hierarchy.leaves_list(tree), np.intp)


def map_colours(matrix: Floats) -> Pixels:
    """Blue below zero, white at zero, red above, full at the clamp."""
    share = (np.clip(matrix, -MAX_COVARIANCE, MAX_COVARIANCE) / MAX_COVARIANCE)[..., None]
    mixed = (
        _MIDDLE_COLOUR
        + np.maximum(share, 0) * (_HIGH_COLOUR - _MIDDLE_COLOUR)
        + np.maximum(-share, 0) * (_LOW_COLOUR - _MIDDLE_COLOUR)
    )
    return np.asarray(np.round(mixed), np.uint8)


def encode_png(pixels: Pixels) -> bytes:
    """An image as PNG."""
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    )


def _panel(left: int, name: str, pixels: Pixels) -> str:
    title = f'<text x="{left}" y="18">{escape(name)}</text>'
    return title + _image(left, _TOP_MARGIN, _PANEL_SIDE, _PANEL_SIDE, pixels)


def _image(left: int, top: int, width: int, height: int, pixels: Pixels) -> str:
    data = base64.b64encode(encode_png(pixels)).decode()
    return (
        f'<image x="{left}" y="{top}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def _colour_bar(left: int) -> str:
    strip = map_colours(np.linspace(MAX_COVARIANCE, -MAX_COVARIANCE, 64)[:, None])
    labels = [(f"≥{MAX_COVARIANCE:g}", 10), ("0", _PANEL_SIDE // 2 + 4), (f"≤−{MAX_COVARIANCE:g}", _PANEL_SIDE - 2)]
    texts = "".join(
        f'<text x="{left + _COLOUR_BAR_WIDTH + 5}" y="{_TOP_MARGIN + y}" font-size="11">{text}</text>'
        for text, y in labels
    )
    return _image(left, _TOP_MARGIN, _COLOUR_BAR_WIDTH, _PANEL_SIDE, strip) + texts
