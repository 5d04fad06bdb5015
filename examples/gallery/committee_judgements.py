# %% [markdown]
# # A committee's metric from judgements
#
# Nobody can say what a weight of 0.0042 should be. People who know the work can say
# how far apart the scores of two applicants may be. Here three judges answer; they
# are simulated, so that we know what they had in mind and can compare.

# %%
import numpy as np
import pandas as pd

from likewise import (
    AdditiveClassifier,
    RangesDisplay,
    TableMetric,
    audit,
    learn_metric,
    next_question,
)
from likewise.datasets import load_mortgages

mortgages = load_mortgages()
columns = ["income", "obligations", "loan_to_price", "consumer_credit"]
people = mortgages.data[columns].dropna()
approved = mortgages.target[people.index]
shown = people.head(150)

in_mind = TableMetric(
    {"income": 0.001, "obligations": 0.01, "loan_to_price": 0.2},
    {"consumer_credit": 0.15},
)
distance = 100 * in_mind.pairwise(
    shown, shown
)  # in points, which no judge could write down


# %% [markdown]
# ## Ask
#
# `next_question` picks the two people whose distance the answers so far determine
# least. A judge says "2 to 5 points": at least, and at most. (`likewise judge` and
# the workbench ask in this way.)


# %%
def answer(judge, question, leeway):
    """A judge's answer in whole points, a little more or less generous."""
    a, b = (shown.index.get_loc(person) for person in (question.a, question.b))
    points = distance[a, b] * leeway
    limits = {"at_least": np.floor(0.8 * points), "at_most": np.ceil(1.25 * points)}
    return [
        (judge, kind, question.a, question.b, min(value, 100))
        for kind, value in limits.items()
    ]


head = ["judge", "kind", "a", "b", "points"]
asked = []
for judge, leeway in {"Ann": 1.0, "Bob": 1.1, "Cem": 0.95}.items():
    own = pd.DataFrame(columns=head)
    for _ in range(8):
        question = next_question(own, shown)
        if question is None:
            break
        own = pd.DataFrame(
            [*own.itertuples(index=False), *answer(judge, question, leeway)],
            columns=head,
        )
    asked.append(own)
answers = pd.concat(asked, ignore_index=True)
print(f"{len(answers)} answers by {answers['judge'].nunique()} judges")

# %% [markdown]
# ## Learn
#
# Every weight has a range that the answers leave. A weight that could still be 0 is
# not known.

# %%
learned = learn_metric(answers, shown)
print(learned.ranges.round(4).to_string(index=False))
print(f"sets of answers that contradict one another: {len(learned.conflicts)}")
RangesDisplay.from_result(learned, shown)

# %% [markdown]
# ## Enforce the strict end
#
# The lower ends of all ranges together: a model within this metric is within every
# metric that fits the answers, the one that the judges had in mind among them.

# %%
strict = learned.strict()
model = AdditiveClassifier(strict).fit(people, approved)
print(strict.describe()[["column", "one point"]].to_string(index=False))
print(audit(model, people, strict).headline)
