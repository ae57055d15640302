"""Claims about the peak of a network and about measures that lower it.

Each claim holds a sentence and the computed numbers of the sentence.
"""

from tvm_serenity.explain.best import build_claims, least_claims, unbuilt_claim
from tvm_serenity.explain.claims import Claim
from tvm_serenity.explain.fit import fit_claims
from tvm_serenity.explain.measures import Measure, measure_claims, measures_of
from tvm_serenity.explain.peak import OpNeed, needs_of, peak_claims

__all__ = [
    "Claim",
    "Measure",
    "OpNeed",
    "build_claims",
    "fit_claims",
    "least_claims",
    "measure_claims",
    "measures_of",
    "needs_of",
    "peak_claims",
    "unbuilt_claim",
]
