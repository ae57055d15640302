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
  std::vector<Held> all;
  for (int i = 0; i < in_.count(); ++i)
    if (offsets[i] >= 0) all.push_back(held(i, offsets[i]));
  std::sort(all.begin(), all.end());
  for (const Held& one : all) each(one.buffer, [&](auto& list) { list.push_back(one); });
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

void Shelves::gather(int first, int last) {
  const auto fits = [&](const Tier& tier) {
    return (last - 1) / tier.length - first / tier.length < kBlocks;
  };
  const Tier& tier = *std::find_if(tiers_.begin(), tiers_.end(), fits);
  lists_.clear();
  const auto add = [&](const std::vector<Held>& list) {
    if (!list.empty()) lists_.push_back({list.data(), list.data() + list.size()});
  };
  add(tier.begun[first / tier.length]);
  for (int b = first / tier.length; b <= (last - 1) / tier.length; ++b) add(tier.starting[b]);
}

// The gap rises above all that begins below its end and ends above its start, until nothing more of
// any list does: each is read once, from the front.
Bytes Shelves::lowest_gap(int i) {
  const int first = in_.lower[i], last = in_.upper[i];
  const Bytes size = in_.size[i], step = in_.alignment[i];
  gather(first, last);
  Bytes at = 0;
  for (Bytes before = -1; before < at;) {
    before = at;
    for (Range& list : lists_) {
      const Held* const from = list.first;
      for (; list.first != list.last && list.first->start < at + size; ++list.first) {
        const Held& one = *list.first;  // no branch on whether it is live
        const Bytes end = one.end & -Bytes((one.upper > first) & (one.lower < last));
        if (step == 1) at = std::max(at, end);
        else if (end > at) at = align_up(end, step);
      }
      read_ += list.first - from;
    }
  }
  return at;
}

Shelves::Range Shelves::live(int first, int last) {
  gather(first, last);
  std::size_t most = 0;
  for (const Range& list : lists_) most += list.size();
  if (found_.size() < most) found_.resize(most), merged_.resize(most);
  read_ += most;
  runs_.assign(1, 0);
  for (const Range& list : lists_) {
    std::size_t end = runs_.back();
    for (const Held& one : list) {  // written over by the next one if it is not live
      found_[end] = one;
      end += (one.upper > first) & (one.lower < last);
    }
    if (end > runs_.back()) runs_.push_back(end);
  }
  while (runs_.size() > 2) merge();
  return {found_.data(), found_.data() + runs_.back()};
}

// Merges sorted runs of found_ two by two.
void Shelves::merge() {
  left_.assign(1, 0);
  for (std::size_t k = 0; k + 1 < runs_.size(); k += 2) {
    const std::size_t last = std::min(k + 2, runs_.size() - 1);
    const Held *one = found_.data() + runs_[k], *other = found_.data() + runs_[k + 1];
    const Held *const middle = other, *const end = found_.data() + runs_[last];
    Held* to = merged_.data() + runs_[k];
    while (one != middle && other != end) {  // without a branch on what is next
      const bool second = other->start < one->start;
      *to++ = *(second ? other : one);
      other += second, one += !second;
    }
    std::copy(other, end, std::copy(one, middle, to));
    left_.push_back(runs_[last]);
  }
  found_.swap(merged_), runs_.swap(left_);
}

}  // namespace plan
