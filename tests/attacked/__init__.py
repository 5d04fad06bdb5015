"""Every method to enforce, under attack: the cases, and the long run of ``make attack``."""
