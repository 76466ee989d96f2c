"""The recurrent sweeps in C: same results up to rounding, without Python at every time step."""
