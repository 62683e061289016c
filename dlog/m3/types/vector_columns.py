"""Owns what M3's functions of vectors compute on whole columns: three columns are one vector."""

from __future__ import annotations

import itertools

import numpy as np


def length(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.sqrt(dot(x, y, z, x, y, z))


def dot(*columns: np.ndarray) -> np.ndarray:
    """
    >>> dot(*(np.array([float(v)]) for v in (1, 2, 3, 4, 5, 6))).tolist()
    [32.0]
    """
    first, second = _vectors(columns)
    return (first * second).sum(axis=0)


def angle(*columns: np.ndarray) -> np.ndarray:
    """Between two vectors, in radians; 0 if one of them is 0."""
    first, second = _vectors(columns)
    lengths = np.sqrt((first * first).sum(axis=0) * (second * second).sum(axis=0))
    cosine = np.divide((first * second).sum(axis=0), lengths, out=np.ones_like(lengths), where=lengths != 0)
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def dihedral_angle(*columns: np.ndarray) -> np.ndarray:
    """Of four points: between the plane of the first three and that of the last three, in radians."""
    points = _vectors(columns)
    first, middle, last = (b - a for a, b in itertools.pairwise(points))
    normal, other = np.cross(first, middle, axis=0), np.cross(middle, last, axis=0)
    lengths = np.sqrt((middle * middle).sum(axis=0))
    return np.arctan2(lengths * (first * other).sum(axis=0), (normal * other).sum(axis=0))


def _vectors(columns: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [np.asarray(columns[i : i + 3], np.float64) for i in range(0, len(columns), 3)]
