"""Planning of scans, on the driver."""
