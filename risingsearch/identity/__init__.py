"""Identity of objects that a user gives, by which a resumed search knows them.

``fingerprint`` has digests of values by their content, ``source_code`` the text of the
user's modules, ``comparison`` the differences between settings in words.
"""
