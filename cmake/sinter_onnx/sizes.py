"""Sizes that are known when a model is converted, or that are formulas of what is known when it runs.

A size is an int, or a Size: a polynomial with integer coefficients over atoms. An atom is a name of the C++ code, such as
the batch, or the rounded quotient, remainder, minimum or maximum of two sizes. Every name is at least 1.
"""
import functools


class Atom:
    """A factor that cannot be taken apart. `text` is C++; `at` says where the code that has it can first stand."""

    def __init__(self, text, at=-1, lowest=1):
        self.text, self.at, self.lowest = text, at, lowest

    def __repr__(self):
        return self.text


@functools.lru_cache(maxsize=None)
def atom(text, at=-1, lowest=1):
    return Atom(text, at, lowest)


class Size:
    """A polynomial that is no number: terms maps products of atoms, sorted tuples of them, to coefficients."""

    def __init__(self, terms):
        self.terms = terms

    def __eq__(self, other):
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def __add__(self, other):
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other):
        return add(self, mul(other, -1))

    def __rsub__(self, other):
        return add(other, mul(self, -1))

    def __mul__(self, other):
        return mul(self, other)

    __rmul__ = __mul__

    def __neg__(self):
        return mul(self, -1)

    def __floordiv__(self, other):
        return div(self, other)

    def __rfloordiv__(self, other):
        return div(other, self)

    def __mod__(self, other):
        return mod(self, other)

    def __repr__(self):
        return text(self)


def name(symbol, at=-1):
    """A size that the C++ code calls by a name."""
    return Size({(atom(symbol, at),): 1})


def _terms(x):
    if isinstance(x, Size):
        return x.terms
    return {(): int(x)} if x else {}


def _size(terms):
    terms = {product: factor for product, factor in terms.items() if factor}
    if not terms:
        return 0
    if set(terms) == {()}:
        return terms[()]
    return Size(terms)


def _sorted(product):
    return tuple(sorted(product, key=lambda a: (a.at, a.text)))


def add(a, b):
    terms = dict(_terms(a))
    for product, factor in _terms(b).items():
        terms[product] = terms.get(product, 0) + factor
    return _size(terms)


def mul(a, b):
    terms = {}
    for p, f in _terms(a).items():
        for q, g in _terms(b).items():
            product = _sorted(p + q)
            terms[product] = terms.get(product, 0) + f * g
    return _size(terms)


def _without(product, factors):
    rest = list(product)
    for factor in factors:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def exact(a, b):
    """a / b where b divides a as a polynomial, else None."""
    rest, quotient = dict(_terms(a)), 0
    divisor = _terms(b)
    if not divisor:
        return None
    order = lambda p: (len(p), [x.text for x in p])
    lead = max(divisor, key=order)
    for _ in range(64):
        if not rest:
            return quotient
        top = max(rest, key=order)
        product = _without(top, lead)
        if product is None or rest[top] % divisor[lead]:
            return None
        part = _size({product: rest[top] // divisor[lead]})
        quotient = add(quotient, part)
        rest = dict(_terms(add(_size(rest), mul(mul(part, b), -1))))
    return None


def least(x):
    """A number that x is not below, or None."""
    total = 0
    for product, factor in _terms(x).items():
        if factor < 0 and product:
            return None
        value = factor
        for a in product:
            value *= a.lowest
        total += value
    return total


def is_less(a, b):
    """Whether a < b: True, False, or None where it depends on what is not known."""
    if (low := least(add(b, mul(a, -1)))) is not None and low >= 1:
        return True
    if (low := least(add(a, mul(b, -1)))) is not None and low >= 0:
        return False
    return None


def is_equal(a, b):
    if add(a, mul(b, -1)) == 0:
        return True
    if is_less(a, b) or is_less(b, a):
        return False
    return None


def _atom_of(form, a, b, lowest):
    parts = [x for s in (a, b) for product in _terms(s) for x in product]
    return Size({(atom(form.format(text(a, 2), text(b, 2)), max((x.at for x in parts), default=-1), lowest),): 1})


def div(a, b):
    """a / b rounded down, of sizes that are not negative."""
    if not isinstance(a, Size) and not isinstance(b, Size):
        return int(a) // int(b)
    if b == 1:
        return a
    if (quotient := exact(a, b)) is not None:
        return quotient
    if isinstance(b, int) and b > 0:  # (6 n + 5) / 3 = 2 n + 5 / 3
        whole = {p: f // b for p, f in a.terms.items() if f % b == 0}
        rest = {p: f for p, f in a.terms.items() if f % b}
        if whole and set(rest) == {()}:
            return add(_size(whole), rest[()] // b)
        if len(rest) < len(a.terms) and (low := least(_size(rest))) is not None and low >= 0:
            return add(_size(whole), div(_size(rest), b))
    low = least(a)
    return _atom_of("({} / {})", a, b, low // b if isinstance(b, int) and b > 0 and low and low >= 0 else 0)


def mod(a, b):
    if not isinstance(a, Size) and not isinstance(b, Size):
        return int(a) % int(b)
    if exact(a, b) is not None:
        return 0
    return _atom_of("({} % {})", a, b, 0)


def smaller(a, b):
    less = is_less(a, b)
    if less is not None:
        return a if less else b
    if is_less(b, a):
        return b
    return _atom_of("std::min<index_t>({0}, {1})", a, b, min(least(a) or 0, least(b) or 0))


def larger(a, b):
    less = is_less(a, b)
    if less is not None:
        return b if less else a
    if is_less(b, a):
        return a
    return _atom_of("std::max<index_t>({0}, {1})", a, b, max(least(a) or 0, least(b) or 0))


def place(x):
    """The statement after which x can be computed; -1: at the beginning."""
    return max((a.at for product in _terms(x) for a in product), default=-1)


def text(x, strength=0):
    """C++ of a size. strength 1: as a factor of a product, 2: of a quotient; then sums are in parentheses."""
    if not isinstance(x, Size):
        return str(int(x))
    parts = []
    order = sorted(x.terms.items(), key=lambda t: (not t[0], [a.text for a in t[0]]))
    for product, factor in order:
        factors = [a.text for a in product]
        if abs(factor) != 1 or not factors:
            factors.insert(0, str(abs(factor)))
        parts.append(("- " if factor < 0 else "+ ") + " * ".join(factors))
    joined = " ".join(parts)
    joined = joined[2:] if joined.startswith("+ ") else "-" + joined[2:]
    single = len(parts) == 1 and not joined.startswith("-") and " * " not in joined
    if strength and not single:
        return f"({joined})"
    if strength == 0 and single and joined.startswith("(") and joined.endswith(")"):
        inner = joined[1:-1]
        if inner.count("(") == inner.count(")") and ")" not in inner.split("(")[0]:
            return inner
    return joined
