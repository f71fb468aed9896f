"""Identity of objects that a user gives: are they the same when a search is resumed?

``fingerprint`` has digests of values by their content, ``source_code`` the text of the
user's modules, ``comparison`` the differences between settings in words.
"""
