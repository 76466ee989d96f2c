"""What people see of records: tables, figures, progress."""
