"""Every synchronisation method; importing this package registers them all."""
