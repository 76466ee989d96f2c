"""The paper's analyses as plain functions of records, or of (network, weights, data)."""
