#!/usr/bin/env python3
"""Finds the minimax polynomials of include/sinter/math/packet_functions.hpp and packet_trigonometry.hpp (needs mpmath).

Remez exchange in 60 digits; prints each polynomial's largest weighted error and its coefficients, rounded to float.
"""
import struct

import mpmath as mp

mp.mp.dps = 60


def remez(f, weight, degree, low, high):
    """The polynomial p that minimises max |weight (f - p)| on [low, high]: its coefficients and that maximum."""
    low, high = mp.mpf(low), mp.mpf(high)
    count = degree + 2
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    for _ in range(30):
        system, values = mp.matrix(count, count), mp.matrix(count, 1)
        for i, x in enumerate(points):
            for k in range(degree + 1):
                system[i, k] = x**k
            system[i, degree + 1] = (-1) ** i / weight(x)
            values[i] = f(x)
        solution = mp.lu_solve(system, values)
        coefficients = [solution[k] for k in range(degree + 1)]

        def error(x):
            return weight(x) * (f(x) - mp.polyval(coefficients[::-1], x))

        cells = 40 * count
        grid = [low + (high - low) * i / cells for i in range(cells + 1)]
        errors = [error(x) for x in grid]
        extremes, i = [], 0
        while i <= cells:
            j = best = i
            while j <= cells and (errors[j] >= 0) == (errors[i] >= 0):
                best = j if abs(errors[j]) > abs(errors[best]) else best
                j += 1
            extremes.append(best)
            i = j
        found = []
        for k in extremes:
            a, b, sign = grid[max(k - 1, 0)], grid[min(k + 1, cells)], 1 if errors[k] >= 0 else -1
            for _ in range(40):
                m, n = a + (b - a) * mp.mpf("0.382"), a + (b - a) * mp.mpf("0.618")
                a, b = (a, n) if sign * error(m) > sign * error(n) else (m, b)
            found.append((a + b) / 2)
        while len(found) > count:
            found.pop(0 if abs(error(found[0])) < abs(error(found[-1])) else -1)
        points = found
        largest = max(abs(error(x)) for x in points)
        if largest / abs(solution[degree + 1]) - 1 < 1e-3:
            break
    return coefficients, largest


def show(name, result):
    coefficients, largest = result
    rounded = [struct.unpack("f", struct.pack("f", float(c)))[0].hex() for c in coefficients]
    print(f"{name}: 2^{float(mp.log(largest, 2)):.1f}", *rounded)


def near_zero(x, value, otherwise):
    return value if abs(x) < mp.mpf(10) ** -12 else otherwise(x)


TINY = mp.mpf(10) ** -12
half_ln2 = mp.log(2) / 2 * mp.mpf("1.01")
exp_tail = lambda r: near_zero(r, mp.mpf(1) / 2 + r / 6, lambda r: (mp.expm1(r) - r) / r**2)
show("(exp(r) - 1 - r) / r^2", remez(exp_tail, lambda r: r * r / mp.exp(r) + TINY, 4, -half_ln2, half_ln2))
show("(expm1(r) - r) / r^2",
     remez(exp_tail, lambda r: near_zero(r, abs(r) + TINY, lambda r: abs(r * r / mp.expm1(r))), 5, -half_ln2, half_ln2))
quarter_ln2 = half_ln2 / 2
tanh_tail = lambda s: near_zero(s, 1 + 2 * s / 3, lambda s: (mp.expm1(2 * s) / 2 - s) / s**2)
show("(expm1(2 s) / 2 - s) / s^2", remez(
    tanh_tail, lambda s: near_zero(s, abs(s) + TINY, lambda s: abs(2 * s * s / mp.expm1(2 * s))), 4, -quarter_ln2, quarter_ln2))
third = mp.mpf("1.0001") / 3
log_tail = lambda f: near_zero(f, -mp.mpf(1) / 2 + f / 3, lambda f: (mp.log1p(f) - f) / f**2)
show("(log1p(f) - f) / f^2",
     remez(log_tail, lambda f: near_zero(f, TINY, lambda f: abs(f * f / mp.log1p(f))), 8, -third, third))
square = (mp.pi / 4 * mp.mpf("1.001")) ** 2
root = mp.sqrt
sin_tail = lambda z: near_zero(z, -mp.mpf(1) / 6, lambda z: (mp.sin(root(z)) / root(z) - 1) / z)
show("(sin(r) / r - 1) / z, z = r^2",
     remez(sin_tail, lambda z: near_zero(z, TINY, lambda z: z * root(z) / mp.sin(root(z))), 2, 0, square))
cos_tail = lambda z: near_zero(z, mp.mpf(1) / 24, lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2)
show("(cos(r) - 1 + z / 2) / z^2", remez(cos_tail, lambda z: z * z / mp.cos(root(z)) + TINY**2, 2, 0, square))
erf_tail = lambda z: near_zero(z, 2 / root(mp.pi) - 1, lambda z: mp.erf(root(z)) / root(z) - 1)
show("erf(x) / x - 1, z = x^2, below 1",
     remez(erf_tail, lambda z: near_zero(z, root(mp.pi) / 2, lambda z: root(z) / mp.erf(root(z))), 6, 0, mp.mpf("1.001")))
show("-log(1 - erf(x)), above 1", remez(lambda x: -mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), 6,
                                        mp.mpf("0.999"), mp.mpf("3.95")))
erfcx = lambda s: mp.erfc(2 * s / (1 - s)) * mp.exp((2 * s / (1 - s)) ** 2) / (1 - s)
show("e^(z^2) erfc(z) / (1 - s), s = z / (z + 2), z to 10.2", remez(erfcx, lambda s: 1 / erfcx(s), 9, 0, mp.mpf("10.2") / mp.mpf("12.2")))
