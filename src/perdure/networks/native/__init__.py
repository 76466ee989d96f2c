"""The recurrent sweeps in C: the same results up to rounding, without Python at every time step."""
