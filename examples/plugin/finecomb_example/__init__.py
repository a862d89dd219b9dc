"""Example plugin of Finecomb: a format, a statistic and a provider."""
