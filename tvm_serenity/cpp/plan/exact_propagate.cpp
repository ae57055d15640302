// The consequences of a decision in the exact search, and the states it remembers.
#include <algorithm>

#include "plan/exact.hpp"

namespace plan {

Bytes& Exact::cell(Field field, int index) {
  switch (field) {
    case Field::kLeast: return least_[index];
    case Field::kFixed: return fixed_[index];
    case Field::kPlaced: return placed_[index];
    case Field::kRefused: return refused_[index];
    default: return tie_[index];
  }
}

void Exact::set(Field field, int index, Bytes value) {
  Bytes& at = cell(field, index);
  if (at == value) return;
  trail_.push_back({field, index, at});
  at = value;
}

void Exact::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& last = trail_.back();
    cell(last.field, last.index) = last.old;
    if (last.field == Field::kPlaced) rejoin_sections(last.index);
  }
}

void Exact::touch(int buffer) {
  for (int s = in_.lower[buffer]; s < in_.upper[buffer]; ++s) {
    if (dirty_[s]) continue;
    dirty_[s] = 1;
    queue_.push_back(s);
  }
}

void Exact::calm() {
  for (int s : queue_) dirty_[s] = 0;
  queue_.clear();
}

// The buffer starts at `offset` or higher: at the next multiple of its alignment that leaves it
// clear of the fixed buffers it meets. Buffers tied to it follow.
bool Exact::raise(int buffer, Bytes offset) {
  if (offset <= least_[buffer]) return true;
  const Bytes size = in_.size[buffer];
  offset = align_up(offset, in_.alignment[buffer]);
  if (fixed_[buffer] >= 0) {
    if (offset > fixed_[buffer]) return false;
    offset = fixed_[buffer];
  }
  for (bool moved = fixed_[buffer] < 0; moved;) {
    moved = false;
    for (int other : obstacles_[buffer]) {
      const Bytes start = in_.fixed[other], end = start + in_.rise(other, buffer);
      if (offset < end && offset + in_.rise(buffer, other) > start) {
        offset = align_up(end, in_.alignment[buffer]);
        moved = true;
      }
    }
  }
  if (offset + size > capacity_) return false;
  if (offset == least_[buffer]) return true;
  set(Field::kLeast, buffer, offset);
  touch(buffer);
  for (int pair : pairs_of_[buffer]) {
    const int other = pairs_[pair].other(buffer);
    if (tie_[pair] == static_cast<Bytes>(Tie::kShared) && !placed_[other]) {
      if (!raise(other, offset) || !raise(buffer, least_[other])) return false;
    }
  }
  return true;
}

bool Exact::place(int buffer) {
  if (rules_.dominance && dominated(buffer)) return false;
  const Bytes offset = least_[buffer];
  set(Field::kPlaced, buffer, 1);
  leave_sections(buffer);
  effort_ += conflicts_[buffer].size();
  touch(buffer);
  auto put_above = [&](int other) {
    if (placed_[other]) return true;
    set(Field::kRefused, other, 0);
    for (int pair : pairs_of_[other]) {
      const int tied = pairs_[pair].other(other);
      if (tie_[pair] == static_cast<Bytes>(Tie::kShared)) set(Field::kRefused, tied, 0);
    }
    return raise(other, offset + in_.rise(buffer, other));
  };
  for (int other : conflicts_[buffer])
    if (!put_above(other)) return false;
  for (int pair : pairs_of_[buffer]) {
    const int other = pairs_[pair].other(buffer);
    if (placed_[other]) continue;
    if (tie_[pair] == static_cast<Bytes>(Tie::kApart)) {
      if (!put_above(other)) return false;
    } else {
      if (!raise(other, offset) || least_[other] != offset) return false;
      set(Field::kFixed, other, offset);
      set(Field::kRefused, other, 0);
    }
  }
  return true;
}

// Something unplaced that the buffer meets lies below it: it cannot start below the lowest end of
// any. A tied buffer may rest through its partner, so for it nothing is known but the wait.
bool Exact::refuse(int buffer) {
  set(Field::kRefused, buffer, 1);
  bool tied = false;
  Bytes lowest = capacity_ + 1;
  auto consider = [&](int other) {
    if (!placed_[other]) lowest = std::min(lowest, least_[other] + in_.rise(other, buffer));
  };
  for (int other : conflicts_[buffer]) consider(other);
  for (int pair : pairs_of_[buffer]) {
    const int other = pairs_[pair].other(buffer);
    if (tie_[pair] == static_cast<Bytes>(Tie::kShared)) tied |= !placed_[other];
    if (tie_[pair] == static_cast<Bytes>(Tie::kApart)) consider(other);
  }
  return tied || raise(buffer, lowest);
}

bool Exact::decide(int pair, Tie tie) {
  const auto [one, two] = std::make_pair(pairs_[pair].one, pairs_[pair].two);
  set(Field::kTie, pair, static_cast<Bytes>(tie));
  if (tie == Tie::kApart) return true;
  set(Field::kRefused, one, 0);
  set(Field::kRefused, two, 0);
  return raise(one, least_[two]) && raise(two, least_[one]);
}

int Exact::open_pair(int buffer) const {
  for (int pair : pairs_of_[buffer])
    if (tie_[pair] == static_cast<Bytes>(Tie::kOpen)) return pair;
  return -1;
}

// Some buffer under the same roof fits below: moving it there keeps every placement valid, so
// whatever is found here is found below the refusal too.
bool Exact::dominated(int buffer) const {
  if (!in_.partners[buffer].empty() || in_.paired[buffer]) return false;
  for (int other : conflicts_[buffer]) {
    if (placed_[other] || fixed_[other] >= 0 || !in_.partners[other].empty()) continue;
    if (in_.paired[other]) continue;
    if (in_.lower[other] >= in_.lower[buffer] && in_.upper[other] <= in_.upper[buffer] &&
        least_[other] + in_.size[other] <= least_[buffer])
      return true;
  }
  return false;
}

bool Exact::propagate() {
  while (!queue_.empty()) {
    const int section = queue_.back();
    queue_.pop_back();
    dirty_[section] = 0;
    if (!tighten(section)) {
      calm();
      return false;
    }
  }
  return true;
}

bool Exact::tighten(int section) {
  const int* members = members_[section].data();
  const int count = static_cast<int>(left_[section]);
  if (count == 0) return true;
  effort_ += count;
  Bytes total = 0, least = capacity_;
  for (int k = 0; k < count; ++k) {
    total += in_.size[members[k]];
    least = std::min(least, least_[members[k]]);
  }
  if (rules_.stack && least + total > capacity_) return false;
  const Bytes latest = capacity_ - total;  // whoever is lowest starts here or below
  scratch_.clear();
  Bytes end = capacity_ + 1;
  for (int k = 0; k < count; ++k) {
    const int i = members[k];
    if (least_[i] > latest)
      scratch_.emplace_back(least_[i], i);
    else
      end = std::min(end, least_[i] + in_.size[i]);
  }
  if (rules_.suffix && !suffixes_fit()) return false;
  if (!rules_.first || scratch_.empty()) return true;
  late_.assign(scratch_.begin(), scratch_.end());
  for (const auto& late : late_)
    if (!raise(late.second, end)) return false;
  return true;
}

// Of the late ones in scratch_: each with all that come no earlier fits above its least offset.
// (For those that are not late this holds by the definition of latest.)
bool Exact::suffixes_fit() {
  std::sort(scratch_.begin(), scratch_.end());
  Bytes above = 0;
  for (std::size_t k = scratch_.size(); k-- > 0;) {
    above += in_.size[scratch_[k].second];
    if (scratch_[k].first + above > capacity_) return false;
  }
  return true;
}

// Keeps the unplaced members of a section in front; undone in reverse, so positions hold.
void Exact::leave_sections(int buffer) {
  for (int s = in_.lower[buffer]; s < in_.upper[buffer]; ++s) {
    int& at = seat_[buffer][s - in_.lower[buffer]];
    if (at < 0) continue;
    auto& members = members_[s];
    const int last = static_cast<int>(--left_[s]), other = members[last];
    std::swap(members[at], members[last]);
    std::swap(at, seat_[other][s - in_.lower[other]]);
  }
}

void Exact::rejoin_sections(int buffer) {
  for (int s = in_.lower[buffer]; s < in_.upper[buffer]; ++s)
    if (seat_[buffer][s - in_.lower[buffer]] >= 0) ++left_[s];
}

// Two 64-bit sums over the unplaced buffers; the chance that two of 10^12 states share both is
// about 10^-15.
Exact::Key Exact::key(int from, int to) const {
  Key key{mix(static_cast<std::uint64_t>(capacity_)), static_cast<std::uint64_t>(capacity_)};
  for (int at = first_at_[from]; at < first_at_[to]; ++at) {
    const int i = by_lower_[at];
    if (placed_[i]) continue;
    std::uint64_t x = mix((static_cast<std::uint64_t>(i) << 1 | refused_[i]) + 0x632be59bd9b4e019ull);
    x = mix(x ^ static_cast<std::uint64_t>(least_[i]));
    x = mix(x + static_cast<std::uint64_t>(fixed_[i]));
    for (int pair : pairs_of_[i]) x = mix(x * 3 + static_cast<std::uint64_t>(tie_[pair]));
    key.low += x;
    key.high += mix(x ^ 0xd1b54a32d192ed03ull);
  }
  return key;
}

bool Exact::seen(const Key& key) const {
  const Key& there = table_[key.low & (table_.size() - 1)];
  return there.low == key.low && there.high == key.high;
}

void Exact::remember(const Key& key) { table_[key.low & (table_.size() - 1)] = key; }

}  // namespace plan
