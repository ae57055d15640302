"""Why the peak of a network is where it is, and what would lower it, in words and numbers.

Every sentence is made from numbers that were computed for it; they stand beside it in the claim.
"""

from tvm_serenity.explain.claims import Claim
from tvm_serenity.explain.fit import fit_claims
from tvm_serenity.explain.measures import Measure, measure_claims, measures_of
from tvm_serenity.explain.peak import OpNeed, needs_of, peak_claims

__all__ = [
    "Claim",
    "Measure",
    "OpNeed",
    "fit_claims",
    "measure_claims",
    "measures_of",
    "needs_of",
    "peak_claims",
]
