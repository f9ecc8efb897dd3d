"""Tables: scored pairs in and clusters out, and columns of text or Parquet read and written at once."""
