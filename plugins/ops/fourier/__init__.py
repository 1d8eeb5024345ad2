"""fourier."""
