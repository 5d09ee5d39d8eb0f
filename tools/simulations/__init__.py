"""Simulations behind what the documentation says of intervals and tests, one module each.

A developer's tool. A module has ``ABOUT``, a sentence, ``DRAWS``, how many draws its table takes,
and ``rows(draws, seed)``, the lines of the table. Slow tests run them with fewer draws.

    python -m tools.simulations pairs --draws 1000
"""
