"""Problems with published answers, written as NumPy users write them."""
