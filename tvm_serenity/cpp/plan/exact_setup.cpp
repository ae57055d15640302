// The tables of the exact search that do not change while it runs.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "plan/exact.hpp"

namespace plan {

namespace {
constexpr std::size_t kTableSize = std::size_t{1} << 19;
}

Exact::Exact(const Instance& instance, const Rules& rules, Limit& limit)
    : in_(instance), rules_(rules), limit_(limit), count_(instance.count()) {
  by_lower_.resize(count_);
  std::iota(by_lower_.begin(), by_lower_.end(), 0);
  std::stable_sort(by_lower_.begin(), by_lower_.end(),
                   [&](int i, int j) { return in_.lower[i] < in_.lower[j]; });
  first_at_.assign(in_.sections + 1, 0);
  for (int i : by_lower_) ++first_at_[in_.lower[i] + 1];
  std::partial_sum(first_at_.begin(), first_at_.end(), first_at_.begin());
  find_conflicts();
  find_members();
  find_twins();
  find_pressure();
  if (rules_.memo) table_.resize(kTableSize);
}

void Exact::find_conflicts() {
  conflicts_.resize(count_);
  obstacles_.resize(count_);
  pairs_of_.resize(count_);
  for (int at = 0; at < count_; ++at) {
    const int i = by_lower_[at];
    for (int next = at + 1; next < count_ && in_.lower[by_lower_[next]] < in_.upper[i]; ++next) {
      const int j = by_lower_[next];
      auto partner = std::find_if(in_.partners[i].begin(), in_.partners[i].end(),
                                  [&](const Partner& p) { return p.other == j; });
      if (partner == in_.partners[i].end()) {
        conflicts_[i].push_back(j);
        conflicts_[j].push_back(i);
      } else if (!partner->anywhere) {
        pairs_of_[i].push_back(static_cast<int>(pairs_.size()));
        pairs_of_[j].push_back(static_cast<int>(pairs_.size()));
        pairs_.push_back({i, j});
      }
    }
  }
  for (int i = 0; i < count_; ++i)
    for (int j : conflicts_[i])
      if (in_.fixed[j] >= 0) obstacles_[i].push_back(j);
}

// Largest first, and nobody beside a partner: a set that must be stacked.
void Exact::find_members() {
  members_.resize(in_.sections);
  for (int i : by_lower_)
    for (int s = in_.lower[i]; s < in_.upper[i]; ++s) members_[s].push_back(i);
  for (auto& members : members_) {
    std::stable_sort(members.begin(), members.end(),
                     [&](int i, int j) { return in_.size[i] > in_.size[j]; });
    std::vector<int> apart;
    for (int i : members) {
      bool beside = false;
      for (const Partner& p : in_.partners[i])
        beside |= std::find(apart.begin(), apart.end(), p.other) != apart.end();
      for (int other : in_.paired[i] ? apart : std::vector<int>())
        beside |= in_.rise(i, other) < in_.size[i] || in_.rise(other, i) < in_.size[other];
      if (!beside) apart.push_back(i);
    }
    members = apart;
  }
  seat_.resize(count_);
  for (int i = 0; i < count_; ++i) seat_[i].assign(in_.upper[i] - in_.lower[i], -1);
  for (int s = 0; s < in_.sections; ++s)
    for (std::size_t k = 0; k < members_[s].size(); ++k)
      seat_[members_[s][k]][s - in_.lower[members_[s][k]]] = static_cast<int>(k);
}

void Exact::find_twins() {
  twin_.assign(count_, -1);
  std::vector<int> order;
  for (int i = 0; i < count_; ++i)
    if (in_.fixed[i] < 0 && in_.partners[i].empty() && !in_.paired[i]) order.push_back(i);
  auto shape = [&](int i) {
    return std::make_tuple(in_.lower[i], in_.upper[i], in_.size[i], in_.alignment[i]);
  };
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return shape(i) < shape(j); });
  for (std::size_t k = 1; k < order.size(); ++k)
    if (shape(order[k - 1]) == shape(order[k])) twin_[order[k]] = order[k - 1];
}

void Exact::find_pressure() {
  std::vector<double> load(in_.sections);
  for (int s = 0; s < in_.sections; ++s)
    for (int i : members_[s]) load[s] += static_cast<double>(in_.size[i]);
  pressure_.assign(count_, 0);
  for (int i = 0; i < count_; ++i)
    pressure_[i] = *std::max_element(load.begin() + in_.lower[i], load.begin() + in_.upper[i]);
}

double Exact::rank_of(int i, Priority priority) const {
  const double width = in_.upper[i] - in_.lower[i], size = static_cast<double>(in_.size[i]);
  switch (priority) {
    case Priority::kArea: return -width * size;
    case Priority::kLifetime: return -width;
    case Priority::kSize: return -size;
    case Priority::kStart: return in_.lower[i] - in_.sections;
    case Priority::kEnd: return -in_.upper[i];
    case Priority::kWide: return -width * std::sqrt(size);
    case Priority::kTall: return -size * std::sqrt(width);
    default: return -pressure_[i] - size * 1e-6;
  }
}

void Exact::rank(const Strategy& strategy) {
  rank_.resize(count_);
  for (int i = 0; i < count_; ++i) {
    rank_[i] = rank_of(i, strategy.priority);
    if (strategy.seed) {
      const std::uint64_t dice = mix(strategy.seed * 0x9e3779b97f4a7c15ull + i);
      rank_[i] *= 0.5 + static_cast<double>(dice >> 11) * 0x1p-53;
    }
  }
}

bool Exact::reset(Bytes capacity) {
  capacity_ = capacity;
  trail_.clear();
  left_.resize(in_.sections);
  for (int s = 0; s < in_.sections; ++s) left_[s] = static_cast<int>(members_[s].size());
  queue_.clear();
  dirty_.assign(in_.sections, 0);
  placed_.assign(count_, 0);
  refused_.assign(count_, 0);
  tie_.assign(pairs_.size(), static_cast<Bytes>(Tie::kOpen));
  offset_.assign(count_, 0);
  least_.assign(count_, -1);
  fixed_ = in_.fixed;
  for (int i = 0; i < count_; ++i)
    if (!raise(i, std::max<Bytes>(0, in_.fixed[i]))) return false;
  return true;
}

}  // namespace plan
