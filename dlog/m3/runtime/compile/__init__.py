"""From M3 triggers to instructions of the machine."""
