"""Statistics beyond reductions: quantiles, covariance, weighted means, histograms."""
