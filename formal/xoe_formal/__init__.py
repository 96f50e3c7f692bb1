"""Proofs about the hardware, on its own netlist: ``python -m xoe_formal``, or ``make formal``."""
