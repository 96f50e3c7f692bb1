"""xoe in Amaranth: one block a file, each with its golden model of the same name in ``xoe``."""
