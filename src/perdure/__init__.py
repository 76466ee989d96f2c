"""Perdure: continual learning for recurrent networks and sequential data."""
