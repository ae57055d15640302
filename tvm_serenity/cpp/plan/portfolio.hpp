// From quick greedy answers to proof: the planner as a whole.
#pragma once

#include <functional>
#include <vector>

#include "plan/exact.hpp"
#include "plan/instance.hpp"

namespace plan {

struct Request {
  Bytes bound = 0;      // proved by the caller
  Bytes capacity = -1;  // the arena asked for, or -1
  Bytes enough = 0;     // an arena of that size ends the search
  Rules rules;
  std::uint64_t seed = 0;
  bool exact = true;  // false: greedy and local search alone
};

struct Answer {
  std::vector<Bytes> offsets;  // the best placement, within the capacity or not
  Bytes arena = 0, bound = 0;
  std::uint64_t nodes = 0;
  int rounds = 0;
  bool stopped = false;
  const char* found_by = "greedy";
};

using Report = std::function<void(const Answer&)>;

// Runs until proved, or until the limit stops it; never worse than greedy.
Answer solve(const Instance& instance, const Request& request, Limit& limit, const Report& report);

// Whether a placement within `capacity` exists; offsets are set where one does.
Verdict decide(const Instance& instance, Bytes capacity, const Rules& rules, std::uint64_t seed,
               Limit& limit, std::vector<Bytes>* offsets);

}  // namespace plan
