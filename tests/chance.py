"""Statistical checks with one false-alarm rate.

The suite as a whole should raise a false alarm at most once in a million runs with fresh seeds. It makes fewer
than 1,000 statistical checks, so each gets 1e-9 (union bound). Seeds are fixed, so in practice a check that
passes goes on passing; the rate says that the fixed seeds were not chosen to make it pass.
"""

from scipy import stats

PER_CHECK = 1e-6 / 1000


def too_many(count, n, probability):
    """Whether `count` of `n` is implausibly large for a probability of at most `probability`."""
    return stats.binom.sf(count - 1, n, probability) < PER_CHECK


def too_few(count, n, probability):
    return stats.binom.cdf(count, n, probability) < PER_CHECK


def fits(sample, law):
    """Whether a sample is plausible under a continuous law (Kolmogorov-Smirnov)."""
    return stats.kstest(sample, law.cdf).pvalue >= PER_CHECK
