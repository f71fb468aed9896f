"""What one controller can drive: the suite ``scaling``."""
