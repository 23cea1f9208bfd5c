"""Drop-in replacements for peers' APIs: a user changes one import."""
