"""Presentation of records: tables, figures, progress."""
