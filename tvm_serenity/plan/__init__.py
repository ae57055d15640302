"""Memory planners: an offset for each buffer in one arena, and a proved lower bound."""

from tvm_serenity.plan.api import plan
from tvm_serenity.plan.bound import lower_bound
from tvm_serenity.plan.buffers import Buffer, Overlap, Region
from tvm_serenity.plan.check import check_plan, check_regions
from tvm_serenity.plan.columns import BufferColumns, FreeBuffers
from tvm_serenity.plan.conflict import find_conflict
from tvm_serenity.plan.csvfile import read_csv, write_csv
from tvm_serenity.plan.planners import PLANNERS
from tvm_serenity.plan.result import RULES, Plan, PlanOptions, Progress

__all__ = [
    "PLANNERS",
    "RULES",
    "Buffer",
    "BufferColumns",
    "FreeBuffers",
    "Overlap",
    "Plan",
    "PlanOptions",
    "Progress",
    "Region",
    "check_plan",
    "check_regions",
    "find_conflict",
    "lower_bound",
    "plan",
    "read_csv",
    "write_csv",
]
