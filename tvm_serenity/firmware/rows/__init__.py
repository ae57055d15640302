"""Row streaming as C: layers that make one row at a time, walked by a table (``docs/rows.md``)."""
