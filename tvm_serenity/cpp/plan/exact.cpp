// The exact search: place the next buffer at its lowest offset, or decide that it waits.
//
// In a canonical placement every buffer rests on 0 or on another one (moving anything down that
// does not rest keeps a placement valid), and the buffers can be placed in an order in which
// nothing is ever put below what is there. A node takes one buffer b: either b comes now, at its
// lowest offset with nothing unplaced below it, or it is refused: then something unplaced lies
// below b, and b waits until a buffer that it meets has been placed.
#include "plan/exact.hpp"

#include <algorithm>
#include <tuple>

namespace plan {

namespace {


constexpr int kNobody = -1;  // all are placed
constexpr int kPatience = 32;
constexpr int kStuck = -2;   // the ones left all wait for each other

}  // namespace

Verdict Exact::run(Bytes capacity, const Strategy& strategy, std::uint64_t effort,
                   Bytes ceiling) {
  ceiling_ = ceiling;
  strategy_ = strategy;
  rank(strategy);
  most_effort_ = effort_ + effort;
  if (!reset(capacity)) return Verdict::kImpossible;
  const Verdict verdict = count_ > kMaxDepth ? loop() : search(0, in_.sections, 0);
  if (verdict == Verdict::kPlaced) offset_ = least_;
  return verdict;
}

// The same tree as search(), depth first, without splits and memory of states. Every kPatience
// steps back the capacity gives way, up to the ceiling: then a placement is still a placement, but
// an exhausted tree proves nothing.
Verdict Exact::loop() {
  choices_.clear();
  const Bytes asked = capacity_;
  int steps_back = 0;
  for (bool sound = propagate();; sound = propagate()) {
    if (effort_ >= most_effort_ || limit_.tick()) return Verdict::kStopped;
    const int buffer = sound ? choose(0, in_.sections) : kStuck;
    if (buffer == kNobody) return Verdict::kPlaced;
    if (buffer != kStuck) {
      ++nodes_;
      const int pair = open_pair(buffer);
      choices_.push_back({trail_.size(), buffer, pair});
      if (pair < 0 ? place(buffer) : decide(pair, Tie::kShared)) continue;
    }
    if (!step_back()) return capacity_ > asked ? Verdict::kStopped : Verdict::kImpossible;
    if (capacity_ < ceiling_ && ++steps_back % kPatience == 0)
      capacity_ = std::min(ceiling_, capacity_ + capacity_ / 1024 + 1);
  }
}

// Undoes the last choice that has another way and takes that; false if there is none.
bool Exact::step_back() {
  while (!choices_.empty()) {
    const Choice last = choices_.back();
    choices_.pop_back();
    calm();
    undo(last.mark);
    if (last.pair < 0 ? refuse(last.buffer) : decide(last.pair, Tie::kApart)) return true;
  }
  return false;
}

Verdict Exact::search(int from, int to, int depth) {
  const std::size_t mark = trail_.size();
  Verdict verdict = Verdict::kImpossible;
  Key entry;
  for (bool first = true; propagate(); first = false) {
    bool split = false;
    if (rules_.split) verdict = search_parts(&from, &to, depth, &split);
    if (split) break;
    if (rules_.memo && first) {
      entry = key(from, to);
      if (seen(entry)) break;
    }
    if (effort_ >= most_effort_ || depth > kMaxDepth || limit_.tick()) return Verdict::kStopped;
    ++nodes_, effort_ += to - from;
    const int buffer = choose(from, to);
    if (buffer == kNobody) return Verdict::kPlaced;
    if (buffer == kStuck) break;
    bool decided = false;
    verdict = branch(from, to, depth, buffer, &decided);
    if (verdict != Verdict::kImpossible) return verdict;
    if (decided || !refuse(buffer)) break;
  }
  if (verdict != Verdict::kImpossible) return verdict;
  calm();
  undo(mark);
  if (entry.low | entry.high) remember(entry);
  return Verdict::kImpossible;
}

// Below this node with `buffer` placed, or, where it may share a start with a buffer that is not
// placed yet, with that question decided either way (then nothing else is left to try).
Verdict Exact::branch(int from, int to, int depth, int buffer, bool* decided) {
  const std::size_t mark = trail_.size();
  const int pair = open_pair(buffer);
  Verdict verdict = Verdict::kImpossible;
  if (pair < 0) {
    if (place(buffer)) verdict = search(from, to, depth + 1);
  } else {
    *decided = true;
    for (Tie tie : {Tie::kShared, Tie::kApart}) {
      if (decide(pair, tie)) verdict = search(from, to, depth + 1);
      if (verdict != Verdict::kImpossible) return verdict;
      calm();
      undo(mark);
    }
  }
  if (verdict == Verdict::kImpossible) {
    calm();
    undo(mark);
  }
  return verdict;
}

// Narrows the stretch to the buffers that are left; where none of them spans some boundary, the
// parts cannot disturb each other: each is solved once, and one that fails fails them all.
Verdict Exact::search_parts(int* from, int* to, int depth, bool* split) {
  std::vector<std::pair<int, int>> parts;
  for (int at = first_at_[*from]; at < first_at_[*to]; ++at) {
    const int i = by_lower_[at];
    if (placed_[i]) continue;
    if (parts.empty() || in_.lower[i] >= parts.back().second)
      parts.emplace_back(in_.lower[i], in_.upper[i]);
    parts.back().second = std::max(parts.back().second, in_.upper[i]);
  }
  if (parts.empty()) return Verdict::kImpossible;
  if (parts.size() == 1) {
    std::tie(*from, *to) = parts[0];
    return Verdict::kImpossible;
  }
  *split = true;
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.second - a.first < b.second - b.first;
  });
  for (const auto& [begin, end] : parts) {
    const Verdict verdict = search(begin, end, depth + 1);
    if (verdict != Verdict::kPlaced) return verdict;
  }
  return Verdict::kPlaced;
}

bool Exact::candidate(int b) const {
  return !placed_[b] && !refused_[b] && (!rules_.twins || twin_[b] < 0 || placed_[twin_[b]]);
}

// Who is tried first: by the strategy's priority, then larger, then earlier in the list.
bool Exact::before(int i, int j) const {
  if (rank_[i] != rank_[j]) return rank_[i] < rank_[j];
  return in_.size[i] != in_.size[j] ? in_.size[i] > in_.size[j] : i < j;
}

// The candidate of a section with the lowest offset; ties by the strategy's priority.
int Exact::best_in(int section) const {
  int best = kStuck;
  for (int k = 0; k < left_[section]; ++k) {
    const int i = members_[section][k];
    if (!candidate(i)) continue;
    if (best == kStuck || least_[i] < least_[best] ||
        (least_[i] == least_[best] && before(i, best)))
      best = i;
  }
  return best;
}

Bytes Exact::load(int section) const {
  Bytes total = 0;
  for (int k = 0; k < left_[section]; ++k) total += in_.size[members_[section][k]];
  return total;
}

// The section with the least room to waste that has a candidate, or -1.
int Exact::tightest(int from, int to) const {
  int best = -1;
  std::pair<Bytes, Bytes> least;
  for (int s = from; s < to; ++s) {
    Bytes lowest = capacity_ + 1;
    bool able = false;
    for (int k = 0; k < left_[s]; ++k) {
      const int i = members_[s][k];
      lowest = std::min(lowest, least_[i]);
      able = able || candidate(i);
    }
    const std::pair<Bytes, Bytes> now{capacity_ - load(s) - lowest, lowest};
    if (able && (best < 0 || now < least)) best = s, least = now;
  }
  return best;
}

// A section of the lowest candidate: its first one, or the one with the most left to place; or -1.
int Exact::lowest(int from, int to) const {
  int lowest = -1;
  for (int at = first_at_[from]; at < first_at_[to]; ++at) {
    const int i = by_lower_[at];
    if (candidate(i) && (lowest < 0 || least_[i] < least_[lowest])) lowest = i;
  }
  if (lowest < 0) return -1;
  int section = in_.lower[lowest];
  if (strategy_.focus == Focus::kLowest) return section;
  Bytes most = -1;
  for (int s = in_.lower[lowest]; s < in_.upper[lowest]; ++s) {
    const Bytes left = load(s);
    if (left > most) most = left, section = s;
  }
  return section;
}

int Exact::choose(int from, int to) const {
  const bool tight = strategy_.focus == Focus::kTightest;
  const int section = tight ? tightest(from, to) : lowest(from, to);
  const int best = section < 0 ? kStuck : best_in(section);
  if (best >= 0) return best;
  bool done = true;
  for (int at = first_at_[from]; at < first_at_[to]; ++at) {
    if (candidate(by_lower_[at])) return by_lower_[at];
    done &= placed_[by_lower_[at]] != 0;
  }
  return done ? kNobody : kStuck;
}

}  // namespace plan
