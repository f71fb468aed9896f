"""``RisingSearchCV`` beside the searches of other tools: the suite ``peers``."""
