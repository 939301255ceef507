"""Problems with published returns, written as NumPy users write them."""
