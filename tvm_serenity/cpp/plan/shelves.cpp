#include "plan/shelves.hpp"

#include <algorithm>

namespace plan {

namespace {

constexpr int kLonger = 8;  // blocks of a tier than those of the one before
constexpr int kBlocks = 3;  // in which any lifetime lies, of some tier

}  // namespace

Shelves::Shelves(const Instance& in) : in_(in) {
  std::int64_t total = 0, longest = 1;
  for (int i = 0; i < in.count(); ++i) {
    total += in.upper[i] - in.lower[i];
    longest = std::max<std::int64_t>(longest, in.upper[i] - in.lower[i]);
  }
  std::int64_t length = std::max<std::int64_t>(1, total / std::max(1, in.count()));
  for (bool last = false; !last; length *= kLonger) {
    last = (kBlocks - 1) * length >= longest;
    const std::size_t blocks = in.sections / length + 1;
    tiers_.push_back({int(length), std::vector<std::vector<Held>>(blocks),
                      std::vector<std::vector<Held>>(blocks)});
  }
}

Shelves::Held Shelves::held(int i, Bytes start) const {
  return {start, start + in_.size[i], i, in_.lower[i], in_.upper[i]};
}

// The lists that hold a buffer.
template <class Visit>
void Shelves::each(int i, Visit visit) {
  for (Tier& tier : tiers_) {
    const int block = in_.lower[i] / tier.length;
    visit(tier.starting[block]);
    for (int b = block + 1; b <= (in_.upper[i] - 1) / tier.length; ++b) visit(tier.begun[b]);
  }
}

void Shelves::fill(const std::vector<Bytes>& offsets) {
  for (Tier& tier : tiers_) {
    for (auto& list : tier.begun) list.clear();
    for (auto& list : tier.starting) list.clear();
  }
  found_.clear();
  for (int i = 0; i < in_.count(); ++i)
    if (offsets[i] >= 0) found_.push_back(held(i, offsets[i]));
  std::sort(found_.begin(), found_.end());
  for (const Held& one : found_) each(one.buffer, [&](auto& list) { list.push_back(one); });
}

void Shelves::add(int i, Bytes start) {
  const Held one = held(i, start);
  each(i, [&](auto& list) {
    list.insert(std::upper_bound(list.begin(), list.end(), one), one);
  });
}

void Shelves::remove(int i, Bytes start) {
  const Held one = held(i, start);
  each(i, [&](auto& list) {
    list.erase(std::lower_bound(list.begin(), list.end(), one));
  });
}

const std::vector<Shelves::Held>& Shelves::live(int first, int last) {
  found_.clear(), runs_.clear();
  const auto take = [&](const std::vector<Held>& list) {
    const std::size_t before = found_.size();
    for (const Held& one : list)
      if (one.upper > first && one.lower < last) found_.push_back(one);
    if (found_.size() > before) runs_.push_back(before);
  };
  const auto fits = [&](const Tier& tier) {
    return (last - 1) / tier.length - first / tier.length < kBlocks;
  };
  const Tier& tier = *std::find_if(tiers_.begin(), tiers_.end(), fits);
  take(tier.begun[first / tier.length]);
  for (int b = first / tier.length; b <= (last - 1) / tier.length; ++b) take(tier.starting[b]);
  while (runs_.size() > 1) merge();
  return found_;
}

// Merges sorted runs of found_ two by two.
void Shelves::merge() {
  merged_.resize(found_.size());
  left_.clear();
  runs_.push_back(found_.size());
  for (std::size_t k = 0; k + 1 < runs_.size(); k += 2) {
    const auto from = found_.begin();
    const std::size_t end = runs_[std::min(k + 2, runs_.size() - 1)];
    std::merge(from + runs_[k], from + runs_[k + 1], from + runs_[k + 1], from + end,
               merged_.begin() + runs_[k]);
    left_.push_back(runs_[k]);
  }
  found_.swap(merged_), runs_.swap(left_);
}

}  // namespace plan
