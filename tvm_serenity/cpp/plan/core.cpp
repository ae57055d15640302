#include "plan/core.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/many.hpp"

namespace plan {

namespace {

constexpr int kShare = 4;  // of the buffers one is in the core

// All buffers, fixed ones first, then by size and root of lifetime.
std::vector<int> by_weight(const Instance& in) {
  std::vector<int> order(in.count());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> weight;
  for (int i = 0; i < in.count(); ++i)
    weight.push_back(in.fixed[i] >= 0 ? HUGE_VAL
                                      : in.size[i] * std::sqrt(in.upper[i] - in.lower[i]));
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return weight[i] > weight[j]; });
  return order;
}

// The buffers `chosen` alone, in the same sections.
Instance part_of(const Instance& in, const std::vector<int>& chosen) {
  Instance part;
  part.sections = in.sections;
  for (int i : chosen) {
    part.lower.push_back(in.lower[i]), part.upper.push_back(in.upper[i]);
    part.size.push_back(in.size[i]), part.alignment.push_back(in.alignment[i]);
    part.fixed.push_back(in.fixed[i]);
  }
  part.partners.resize(chosen.size()), part.below.resize(chosen.size());
  part.paired.resize(chosen.size());
  return part;
}

}  // namespace

void lower_core(const Instance& in, const std::vector<Bytes>& offsets, Bytes goal,
                std::uint64_t seed, Limit& limit, const Found& found) {
  const std::vector<int> order = by_weight(in);
  std::ptrdiff_t many = in.count() / kShare, fixed = 0;
  for (Bytes at : in.fixed) fixed += at >= 0;
  const std::vector<int> chosen(order.begin(), order.begin() + std::max(many, fixed));
  const Instance core = part_of(in, chosen);
  const auto fill = [&](const std::vector<Bytes>& placed) {
    Instance rest = in;
    for (std::size_t k = 0; k < chosen.size(); ++k) rest.fixed[chosen[k]] = placed[k];
    const std::vector<Bytes> all = place_among_many(rest, order, limit);
    if (!all.empty()) found(all);
  };
  std::vector<Bytes> placed;
  for (int i : chosen) placed.push_back(offsets[i]);
  if (arena_of(core, placed) <= goal) fill(placed);
  lower(core, std::move(placed), goal, chosen.size(), seed, limit, fill);
}

}  // namespace plan
